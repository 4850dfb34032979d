/*
 * `solve` for a chain (planner/chain/chain_certify.h), compared with other planners' rules. Files are written last: a
 * failed write loses no answer.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/try.h"
#include "cli/common/cli_table.h"
#include "cli/plan/cli_solve.h"
#include "planner/chain/chain_certify.h"
#include "planner/chain/chain_formulation.h"
#include "planner/chain/chain_io.h"

enum { ROWS_MAX = 128 }; /* of a table */

struct solve_chain_answer {
    const struct cli_solve_request *request;
    const struct chain *chain;
    struct chain_schedule schedule;
    struct chain_certificate certificate;
};

/* --- report ---------------------------------------------------------------------------------- */

static struct cli_solved solved_of(const struct solve_chain_answer *a, char proof[CERTIFICATE_TEXT_BYTES])
{
    const struct chain_certificate *c = &a->certificate;
    return (struct cli_solved){.problem = "chain",
                               .name = a->chain->name,
                               .status = c->status,
                               .value = c->value,
                               .bound = c->bound,
                               .gap = chain_certificate_gap(c),
                               .bound_kind = c->proved_by,
                               .proof = chain_certificate_text(c, proof)};
}

/* Prints consecutive layers with equal treatment as one row. */
static enum status print_layers(const struct solve_chain_answer *a, FILE *out, struct error *err)
{
    const struct chain_schedule *s = &a->schedule;
    struct cli_table table;
    uint32_t rows = 0, count;
    cli_table_begin(&table, (const char *[]){"LAYERS", "CHOICE", ">FORWARD", ">BACKWARD", ">SAVED", NULL});
    for (uint32_t l = 0; l < s->layer_count && rows < ROWS_MAX; l += count, rows++) {
        uint64_t saved = 0;
        for (count = 0; l + count < s->layer_count && s->choices[l + count] == s->choices[l]; count++)
            saved += a->chain->layers[l + count].saved;
        if (count > 1) cli_table_cell(&table, "%u-%u", l, l + count - 1);
        else cli_table_cell(&table, "%u", l);
        cli_table_cell(&table, "%s", chain_choice_names[s->choices[l]]);
        cli_table_cell(&table, "%" PRId64, s->forward[l]);
        cli_table_cell(&table, "%" PRId64, s->backward[l + count - 1]);
        cli_table_cell(&table, "%" PRIu64, saved);
    }
    TRY(cli_table_end(&table, out, err));
    if (rows == ROWS_MAX) fprintf(out, "... and more\n");
    return STATUS_OK;
}

static enum status print_rules(const struct solve_chain_answer *a, FILE *out, struct error *err)
{
    const struct chain_certificate *c = &a->certificate;
    struct cli_table table;
    cli_table_begin(&table, (const char *[]){"RULE", ">MAKESPAN", ">ABOVE COMPUTATION", NULL});
    for (uint32_t r = 0; r < CHAIN_RULES; r++) {
        if (!c->rule_fits[r]) continue;
        double above = (double)(c->rule_values[r] - a->chain->compute) / (double)a->chain->compute;
        cli_table_cell(&table, "%s", chain_rule_names[r]);
        cli_table_cell(&table, "%" PRId64, c->rule_values[r]);
        cli_table_cell(&table, "%.2f %%", 100 * above);
    }
    return cli_table_end(&table, out, err);
}

static enum status report_text(struct cli *cli, const struct solve_chain_answer *a, struct error *err)
{
    const struct chain_certificate *c = &a->certificate;
    char text[CERTIFICATE_TEXT_BYTES];
    struct cli_solved solved = solved_of(a, text);
    FILE *out = cli->out;
    fprintf(out, "%s: %s, %" PRId64 " ticks of computation, %s of memory\n\n", a->chain->name,
            CLI_COUNT(a->chain->layer_count, "layer"), a->chain->compute, CLI_COUNT(a->chain->memory, "byte"));
    TRY(print_layers(a, out, err));
    fputc('\n', out);
    TRY(print_rules(a, out, err));
    fprintf(out, "\nmakespan   %" PRId64 "\n", c->value);
    cli_solved_text(&solved, out);
    fprintf(out, "work       %s, %s, %.3f s\n", CLI_COUNT(c->states, "state"), CLI_COUNT(c->nodes, "node"), c->seconds);
    return STATUS_OK;
}

static enum status report_json(struct cli *cli, const struct solve_chain_answer *a, struct error *err)
{
    const struct chain_certificate *c = &a->certificate;
    char text[CERTIFICATE_TEXT_BYTES];
    struct cli_solved solved = solved_of(a, text);
    struct json_out *json;
    TRY(cli_report_begin(cli, "solve", &json, err));
    cli_solved_json(&solved, a->request, json);
    json_out_u64(json, "compute_ticks", (uint64_t)a->chain->compute);
    json_out_u64(json, "states", c->states);
    json_out_u64(json, "nodes", c->nodes);
    json_out_double(json, "seconds", c->seconds);
    if (c->fluid_bound) json_out_u64(json, "fluid_bound", (uint64_t)c->fluid_bound);
    if (c->fluid_bound) json_out_bool(json, "fluid_optimal", c->fluid_proven);
    if (c->sets) json_out_u64(json, "sets", c->sets);
    if (c->solver) json_out_string(json, "solver", c->solver);
    if (c->solver_error.status) json_out_string(json, "solver_error", c->solver_error.text);
    json_out_object_begin(json, "rules", true);
    for (uint32_t r = 0; r < CHAIN_RULES; r++)
        if (c->rule_fits[r]) json_out_u64(json, chain_rule_names[r], (uint64_t)c->rule_values[r]);
    json_out_object_end(json);
    json_out_array_begin(json, "choices", true);
    for (uint32_t l = 0; l < a->schedule.layer_count; l++)
        json_out_string(json, NULL, chain_choice_names[a->schedule.choices[l]]);
    json_out_array_end(json);
    return cli_report_end(cli, json, err);
}

/* --- files ----------------------------------------------------------------------------------- */

static enum status write_model(const struct solve_chain_answer *a, struct error *err)
{
    struct milp *milp = chain_fluid(a->chain, NULL);
    if (!milp) return error_memory(err, "an integer program", 0);
    enum status status = cli_solve_write_milp(a->request, milp, err);
    milp_destroy(milp);
    return status;
}

static enum status write_files(const struct solve_chain_answer *a, struct error *err)
{
    char text[CERTIFICATE_TEXT_BYTES];
    if (a->request->output) TRY(chain_schedule_write(a->chain, &a->schedule, a->certificate.bound,
                                                     chain_certificate_text(&a->certificate, text), a->request->output,
                                                     err));
    return a->request->lp || a->request->mps ? write_model(a, err) : STATUS_OK;
}

/* --- the problem ----------------------------------------------------------------------------- */

enum status solve_chain(struct cli *cli, const struct cli_solve_request *request,
                        const struct json_input *input, struct error *err)
{
    struct chain chain = {0};
    struct solve_chain_answer a = {.request = request, .chain = &chain};
    const struct chain_certify_options options = {.limit_s = request->limit_s, .solver = request->solver};
    if (request->iterations)
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--iterations' is not for chains: their search has no iterations");
    if (chain_parse(input, &chain, err) ||
        chain_certify(&chain, &options, &a.schedule, &a.certificate, err) ||
        (cli->json ? report_json(cli, &a, err) : report_text(cli, &a, err)))
        goto out;
    const struct error *solver = &a.certificate.solver_error;
    if (!write_files(&a, err) && solver->status) error_set(err, solver->status, "%s", solver->text);
out:
    chain_schedule_release(&a.schedule);
    chain_release(&chain);
    return err->status;
}
