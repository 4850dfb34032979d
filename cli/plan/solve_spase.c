/*
 * `solve` for SPASE (planner/saturn/spase/spase_certify.h), compared with other planners, the simplest of which gives
 * a node's devices to one job at a time.
 *
 * The integer program is the flow formulation for at most the value found. Files are written last: a failed write
 * loses no answer.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/try.h"
#include "cli/common/cli_table.h"
#include "cli/plan/cli_solve.h"
#include "planner/saturn/spase/spase_baseline.h"
#include "planner/saturn/spase/spase_certify.h"
#include "planner/saturn/spase/spase_formulation.h"
#include "planner/saturn/spase/spase_introspect.h"
#include "planner/saturn/spase/spase_io.h"
#include "planner/saturn/spase/spase_schedule_io.h"

enum { ROWS_MAX = 64 }; /* of a table */

struct solve_spase_answer {
    const struct cli_solve_request *request;
    const struct spase *in;
    struct spase_schedule schedule;
    struct spase_certificate certificate;
    int64_t baselines[SPASE_BASELINE_COUNT]; /* their makespans */
    struct spase_course course; /* with replanning, if requested */
    int64_t optimus_dynamic;    /* with replanning */
};

/* At each interval. */
enum { REPLAN_ITERATIONS = 20000 };

static double busy(const struct solve_spase_answer *a)
{
    double area = 0;
    for (uint32_t j = 0; j < a->in->job_count; j++)
        area += (double)a->in->configs[a->schedule.tasks[j].config].devices * (double)a->schedule.tasks[j].ticks;
    return area / ((double)a->in->device_count * (double)a->schedule.makespan);
}

/* --- report ---------------------------------------------------------------------------------- */

static struct cli_solved solved_of(const struct solve_spase_answer *a, char proof[CERTIFICATE_TEXT_BYTES])
{
    const struct spase_certificate *c = &a->certificate;
    return (struct cli_solved){.problem = "spase",
                               .name = a->in->name,
                               .objective = "makespan",
                               .status = c->status,
                               .value = c->value,
                               .bound = c->bound,
                               .gap = spase_certificate_gap(c),
                               .bound_kind = spase_proof_names[c->proved_by],
                               .proof = spase_certificate_text(c, proof)};
}

static struct cli_solve_work work_of(const struct spase_certificate *c)
{
    return (struct cli_solve_work){.iterations = c->iterations,
                                   .nodes = c->nodes,
                                   .bound_s = c->bound_s,
                                   .search_s = c->search_s,
                                   .exact_s = c->exact_s,
                                   .solver_s = c->solver_s,
                                   .solver = c->solver};
}

static enum status print_jobs(const struct solve_spase_answer *a, FILE *out, struct error *err)
{
    struct cli_table table;
    cli_table_begin(&table, (const char *[]){"JOB", "PARALLELISM", "NODE", ">DEVICES", ">STARTS", ">ENDS", NULL});
    for (uint32_t j = 0; j < a->in->job_count && j < ROWS_MAX; j++) {
        const struct spase_task *task = &a->schedule.tasks[j];
        uint32_t device = a->schedule.devices[a->schedule.device_first[j]];
        cli_table_cell(&table, "%.40s", a->in->jobs[j].name);
        cli_table_cell(&table, "%.40s", a->in->configs[task->config].parallelism);
        cli_table_cell(&table, "%.40s", a->in->nodes[spase_node_of(a->in, device)].name);
        cli_table_cell(&table, "%u", a->in->configs[task->config].devices);
        cli_table_cell(&table, "%" PRId64, task->start);
        cli_table_cell(&table, "%" PRId64, task->start + task->ticks);
    }
    TRY(cli_table_end(&table, out, err));
    if (a->in->job_count > ROWS_MAX) fprintf(out, "... and %u more\n", a->in->job_count - ROWS_MAX);
    return STATUS_OK;
}

static enum status report_text(struct cli *cli, const struct solve_spase_answer *a, struct error *err)
{
    const struct spase_certificate *c = &a->certificate;
    char text[CERTIFICATE_TEXT_BYTES], share[CLI_PERCENT_BYTES];
    struct cli_solved solved = solved_of(a, text);
    struct cli_solve_work work = work_of(c);
    FILE *out = cli->out;
    fprintf(out, "%s: %s on %s of %s\n\n", a->in->name, CLI_COUNT(a->in->job_count, "job"),
            CLI_COUNT(a->in->device_count, "device"), CLI_COUNT(a->in->node_count, "node"));
    TRY(print_jobs(a, out, err));
    fprintf(out, "\nmakespan   %" PRId64 ", devices busy %s; with a whole node for each job %" PRId64 "\n", c->value,
            cli_percent(busy(a), share), a->baselines[SPASE_BASELINE_MAX]);
    cli_solved_text(&solved, out);
    if (a->request->interval > 0)
        fprintf(out, "replanned  %s, looked at %s: makespan %" PRId64 "; by Optimus's rule %" PRId64 "\n",
                CLI_COUNT(a->course.replans, "time"), CLI_COUNT(a->course.intervals, "time"), a->course.makespan,
                a->optimus_dynamic);
    cli_solve_work_text(&work, out);
    return STATUS_OK;
}

static enum status report_json(struct cli *cli, const struct solve_spase_answer *a, struct error *err)
{
    const struct spase_certificate *c = &a->certificate;
    char text[CERTIFICATE_TEXT_BYTES];
    struct cli_solved solved = solved_of(a, text);
    struct cli_solve_work work = work_of(c);
    struct json_out *json;
    TRY(cli_report_begin(cli, "solve", &json, err));
    cli_solved_json(&solved, a->request, json);
    json_out_u64(json, "one_by_one", (uint64_t)a->baselines[SPASE_BASELINE_MAX]);
    json_out_object_begin(json, "other_rules", true);
    for (uint32_t b = 0; b < SPASE_BASELINE_COUNT; b++)
        json_out_u64(json, spase_baseline_names[b], (uint64_t)a->baselines[b]);
    if (a->request->interval > 0) json_out_u64(json, "optimus_dynamic", (uint64_t)a->optimus_dynamic);
    json_out_object_end(json);
    if (a->request->interval > 0) {
        json_out_object_begin(json, "introspection", true);
        json_out_u64(json, "intervals", a->course.intervals);
        json_out_u64(json, "replans", a->course.replans);
        json_out_u64(json, "value", (uint64_t)a->course.makespan);
        json_out_object_end(json);
    }
    json_out_double(json, "busy", busy(a));
    cli_solve_work_json(&work, json);
    if (c->solver) {
        json_out_string(json, "solver", c->solver);
        json_out_u64(json, "solver_nodes", c->solver_nodes);
        json_out_double(json, "solver_s", c->solver_s);
        if (c->solver_error.status) json_out_string(json, "solver_error", c->solver_error.text);
    }
    spase_schedule_write_jobs(a->in, &a->schedule, json);
    return cli_report_end(cli, json, err);
}

/* --- files ----------------------------------------------------------------------------------- */

static enum status write_files(const struct solve_spase_answer *a, struct error *err)
{
    const struct spase_certificate *c = &a->certificate;
    struct spase_formulation *f = NULL;
    char text[CERTIFICATE_TEXT_BYTES];
    if (a->request->output) TRY(spase_schedule_write(a->in, &a->schedule, c->bound, spase_certificate_text(c, text),
                                                     a->request->output, err));
    if (!a->request->lp && !a->request->mps) return STATUS_OK;
    if (spase_formulation_create(a->in, SPASE_FLOW, c->bound, c->value, &f, err) ||
        cli_solve_write_milp(a->request, spase_formulation_milp(f), err)) {} /* the error is in err */
    spase_formulation_destroy(f);
    return err->status;
}

/* --- replanning at intervals ------------------------------------------------------------------- */

static enum status run_course(const struct solve_spase_answer *a, const struct spase_step *steps, bool optimus,
                              struct spase_course *out, struct error *err)
{
    const struct cli_solve_request *request = a->request;
    uint64_t threshold = request->threshold == UINT64_MAX ? request->interval / 2 : request->threshold;
    const struct spase_introspect_options options = {.interval_ticks = (int64_t)request->interval,
                                                     .threshold_ticks = (int64_t)threshold,
                                                     .restart_ticks = (int64_t)request->restart,
                                                     .seed = request->seed,
                                                     .iterations = REPLAN_ITERATIONS,
                                                     .optimus = optimus};
    TRY(spase_introspect(a->in, steps, &options, out, err));
    return spase_course_check(a->in, out, options.restart_ticks, err);
}

/* Replans the initial schedule, and Optimus's. */
static enum status introspect(struct solve_spase_answer *a, struct spase_step *steps, struct error *err)
{
    struct spase_course optimus = {0};
    int64_t value;
    if (spase_schedule_steps(a->in, &a->schedule, steps, err) == STATUS_OK &&
        run_course(a, steps, false, &a->course, err) == STATUS_OK &&
        spase_baseline_run(a->in, SPASE_BASELINE_OPTIMUS, 0, NULL, steps, &value, err) == STATUS_OK &&
        run_course(a, steps, true, &optimus, err) == STATUS_OK)
        a->optimus_dynamic = optimus.makespan;
    spase_course_release(&optimus);
    return err->status;
}

/* --- the problem ----------------------------------------------------------------------------- */

static enum status run_rules(struct solve_spase_answer *a, struct spase_step *steps, struct error *err)
{
    for (enum spase_baseline b = 0; b < SPASE_BASELINE_COUNT; b++)
        TRY(spase_baseline_run(a->in, b, a->request->seed, NULL, steps, &a->baselines[b], err));
    return STATUS_OK;
}

enum status solve_spase(struct cli *cli, const struct cli_solve_request *request, const struct json_input *input,
                        struct error *err)
{
    struct spase in = {0};
    struct solve_spase_answer a = {.request = request, .in = &in};
    struct spase_certify_options options = {.seed = request->seed, .solver = request->solver,
                                            .iterations = request->iterations ? request->iterations : UINT64_MAX};
    struct spase_step *steps = NULL;
    if (spase_parse(input, &in, err)) goto out;
    steps = alloc_zeroed(in.job_count, sizeof *steps);
    if (!steps && error_memory(err, "a schedule", in.job_count * sizeof *steps)) goto out;
    spase_certify_divide(&in, request->limit_s, &options);
    if (run_rules(&a, steps, err) || spase_certify(&in, &options, &a.schedule, &a.certificate, err) ||
        (request->interval > 0 && introspect(&a, steps, err)) ||
        (cli->json ? report_json(cli, &a, err) : report_text(cli, &a, err)))
        goto out;
    const struct error *solver = &a.certificate.solver_error;
    if (!write_files(&a, err) && solver->status) error_set(err, solver->status, "%s", solver->text);
out:
    free(steps);
    spase_course_release(&a.course);
    spase_schedule_release(&a.schedule);
    spase_release(&in);
    return err->status;
}
