/*
 * `solve` for SPASE: planner/spase_certify.h does the work, this file asks and reports. Beside the schedule
 * stands what the simplest planner would do, all devices of a node for one job at a time.
 *
 * The integer program that is written as a file is the flow formulation for schedules of at most the
 * value that was found: it has a solution, and its optimum is the instance's. Files are written last, so
 * that what cannot be written costs no answer.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "cli/cli_solve.h"
#include "cli/cli_table.h"
#include "planner/spase_baseline.h"
#include "planner/spase_certify.h"
#include "planner/spase_formulation.h"
#include "planner/spase_introspect.h"
#include "planner/spase_io.h"
#include "planner/spase_schedule_io.h"

enum { ROWS_MAX = 64 }; /* of a table: more are for a program, which reads the schedule */

struct answer {
    const struct cli_solve_request *request;
    const struct spase *in;
    struct spase_schedule schedule;
    struct spase_certificate certificate;
    int64_t one_by_one; /* makespan of the baseline */
    struct spase_course course; /* planned again at intervals, if that was asked for */
};

/* Of the search at each interval. */
enum { REPLAN_ITERATIONS = 20000 };

static double busy(const struct answer *a)
{
    double area = 0;
    for (uint32_t j = 0; j < a->in->job_count; j++)
        area += (double)a->in->configs[a->schedule.tasks[j].config].devices * (double)a->schedule.tasks[j].ticks;
    return area / ((double)a->in->device_count * (double)a->schedule.makespan);
}

/* --- report ---------------------------------------------------------------------------------- */

static struct cli_solved solved_of(const struct answer *a, char proof[CERTIFICATE_TEXT_BYTES])
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

static enum status print_jobs(const struct answer *a, FILE *out, struct error *err)
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
    if (cli_table_end(&table, out, err)) return err->status;
    if (a->in->job_count > ROWS_MAX) fprintf(out, "... and %u more\n", a->in->job_count - ROWS_MAX);
    return STATUS_OK;
}

static enum status report_text(struct cli *cli, const struct answer *a, struct error *err)
{
    const struct spase_certificate *c = &a->certificate;
    char text[CERTIFICATE_TEXT_BYTES], share[CLI_PERCENT_BYTES];
    struct cli_solved solved = solved_of(a, text);
    struct cli_solve_work work = work_of(c);
    FILE *out = cli->out;
    fprintf(out, "%s: %s on %s of %s\n\n", a->in->name, CLI_COUNT(a->in->job_count, "job"),
            CLI_COUNT(a->in->device_count, "device"), CLI_COUNT(a->in->node_count, "node"));
    if (print_jobs(a, out, err)) return err->status;
    fprintf(out, "\nmakespan   %" PRId64 ", devices busy %s; with a whole node for each job %" PRId64 "\n", c->value,
            cli_percent(busy(a), share), a->one_by_one);
    cli_solved_text(&solved, out);
    if (a->request->interval > 0)
        fprintf(out, "replanned  %s, looked at %s: makespan %" PRId64 "\n", CLI_COUNT(a->course.replans, "time"),
                CLI_COUNT(a->course.intervals, "time"), a->course.makespan);
    cli_solve_work_text(&work, out);
    return STATUS_OK;
}

static enum status report_json(struct cli *cli, const struct answer *a, struct error *err)
{
    const struct spase_certificate *c = &a->certificate;
    char text[CERTIFICATE_TEXT_BYTES];
    struct cli_solved solved = solved_of(a, text);
    struct cli_solve_work work = work_of(c);
    struct json_out *json;
    if (cli_report_begin(cli, "solve", &json, err)) return err->status;
    cli_solved_json(&solved, a->request, json);
    json_out_u64(json, "one_by_one", (uint64_t)a->one_by_one);
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

static enum status write_files(const struct answer *a, struct error *err)
{
    const struct spase_certificate *c = &a->certificate;
    struct spase_formulation *f = NULL;
    char text[CERTIFICATE_TEXT_BYTES];
    if (a->request->output &&
        spase_schedule_write(a->in, &a->schedule, c->bound, spase_certificate_text(c, text), a->request->output, err))
        return err->status;
    if (!a->request->lp && !a->request->mps) return STATUS_OK;
    if (spase_formulation_create(a->in, SPASE_FLOW, c->bound, c->value, &f, err) ||
        cli_solve_write_milp(a->request, spase_formulation_milp(f), err)) {} /* told in err */
    spase_formulation_destroy(f);
    return err->status;
}

/* --- introspection --------------------------------------------------------------------------- */

/* The schedule begun with, and planned again; by half an interval sooner, as in the paper. */
static enum status introspect(struct answer *a, struct error *err)
{
    uint32_t jobs = a->in->job_count;
    struct spase_step *steps = alloc_zeroed(jobs, sizeof *steps);
    struct spase_introspect_options options = {.interval_ticks = (int64_t)a->request->interval,
                                               .threshold_ticks = (int64_t)a->request->interval / 2,
                                               .restart_ticks = (int64_t)a->request->restart,
                                               .seed = a->request->seed,
                                               .iterations = REPLAN_ITERATIONS};
    if (!steps) return error_memory(err, "an order", jobs * sizeof *steps);
    if (!spase_schedule_steps(a->in, &a->schedule, steps, err) &&
        !spase_introspect(a->in, steps, &options, &a->course, err))
        if (spase_course_check(a->in, &a->course, options.restart_ticks, err)) {} /* told in err */
    free(steps);
    return err->status;
}

/* --- the problem ----------------------------------------------------------------------------- */

static enum status run_one_by_one(struct answer *a, struct error *err)
{
    struct spase_step *steps = alloc_zeroed(a->in->job_count, sizeof *steps);
    if (!steps) return error_memory(err, "a schedule", a->in->job_count * sizeof *steps);
    enum status status = spase_baseline_run(a->in, SPASE_BASELINE_MAX, 0, NULL, steps, &a->one_by_one, err);
    free(steps);
    return status;
}

enum status solve_spase(struct cli *cli, const struct cli_solve_request *request, const struct json_input *input,
                        struct error *err)
{
    struct spase in = {0};
    struct answer a = {.request = request, .in = &in};
    struct spase_certify_options options = {.seed = request->seed, .solver = request->solver,
                                            .iterations = request->iterations ? request->iterations : UINT64_MAX};
    if (spase_parse(input, &in, err)) goto out;
    spase_certify_divide(&in, request->limit_s, &options);
    if (run_one_by_one(&a, err) || spase_certify(&in, &options, &a.schedule, &a.certificate, err) ||
        (request->interval > 0 && introspect(&a, err)) ||
        (cli->json ? report_json(cli, &a, err) : report_text(cli, &a, err)))
        goto out;
    const struct error *solver = &a.certificate.solver_error;
    if (!write_files(&a, err) && solver->status) error_set(err, solver->status, "%s", solver->text);
out:
    spase_course_release(&a.course);
    spase_schedule_release(&a.schedule);
    spase_release(&in);
    return err->status;
}
