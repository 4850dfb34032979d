/*
 * `solve` for shard schedules (planner/solve/certify/certify.h).
 *
 * The integer program asks for at most the value found: it has a solution, its optimum is the instance's, and its
 * windows are tight. Files are written last: a failed write loses no answer.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/try.h"
#include "cli/common/cli_table.h"
#include "cli/plan/cli_solve.h"
#include "planner/solve/certify/certify.h"
#include "planner/solve/exact/formulation.h"
#include "planner/solve/exact/stream_program.h"
#include "planner/solve/instance/instance_io.h"
#include "planner/solve/instance/timetable_io.h"

enum { ROWS_MAX = 32 }; /* of a table */

struct solve_instance_answer {
    const struct cli_solve_request *request;
    const struct instance *in;
    struct timetable timetable;
    struct certificate certificate;
    int64_t *ends; /* (job_count), with copies out */
};

/* --- figures --------------------------------------------------------------------------------- */

struct device_figures {
    uint32_t tasks;
    int64_t computes, end; /* ticks; of the last task, with its copy out */
};

static struct device_figures device_figures(const struct solve_instance_answer *a, uint32_t device)
{
    struct device_figures figures = {0};
    uint32_t class = a->in->device_class[device];
    for (uint32_t t = a->timetable.device_first[device]; t < a->timetable.device_first[device + 1]; t++) {
        const struct timetable_task *task = &a->timetable.tasks[t];
        uint32_t unit = instance_unit_at(&a->in->jobs[task->job], task->position);
        int64_t compute = instance_compute(a->in, unit, class);
        int64_t end = task->start + compute + a->in->units[unit].out;
        figures.tasks++;
        figures.computes += compute;
        if (end > figures.end) figures.end = end;
        if (end > a->ends[task->job]) a->ends[task->job] = end;
    }
    return figures;
}

/* --- report ---------------------------------------------------------------------------------- */

static struct cli_solved solved_of(const struct solve_instance_answer *a, char proof[CERTIFICATE_TEXT_BYTES])
{
    const struct certificate *c = &a->certificate;
    return (struct cli_solved){.problem = "instance",
                               .name = a->in->name,
                               .objective = instance_objective_names[a->in->objective],
                               .status = c->status,
                               .value = c->value,
                               .bound = c->bound,
                               .gap = certificate_gap(c),
                               .bound_kind = instance_bound_names[c->proved_by],
                               .proof = certificate_text(a->in, c, proof)};
}

static struct cli_solve_work work_of(const struct certificate *c)
{
    return (struct cli_solve_work){.iterations = c->iterations,
                                   .nodes = c->nodes,
                                   .bound_s = c->bound_s,
                                   .search_s = c->search_s,
                                   .exact_s = c->exact_s,
                                   .solver_s = c->solver_s,
                                   .solver = c->solver};
}

static enum status print_devices(struct solve_instance_answer *a, FILE *out, struct error *err)
{
    struct cli_table table;
    char share[CLI_PERCENT_BYTES];
    cli_table_begin(&table, (const char *[]){"DEVICE", "CLASS", ">TASKS", ">COMPUTES", ">BUSY", ">ENDS", NULL});
    for (uint32_t g = 0; g < a->in->device_count; g++) {
        struct device_figures d = device_figures(a, g);
        if (g >= ROWS_MAX) continue;
        cli_table_cell(&table, "%u", g);
        cli_table_cell(&table, "%s", a->in->classes[a->in->device_class[g]].name);
        cli_table_cell(&table, "%u", d.tasks);
        cli_table_cell(&table, "%" PRId64, d.computes);
        cli_table_cell(&table, "%s", cli_percent(d.end > 0 ? (double)d.computes / (double)d.end : 0, share));
        cli_table_cell(&table, "%" PRId64, d.end);
    }
    TRY(cli_table_end(&table, out, err));
    if (a->in->device_count > ROWS_MAX) fprintf(out, "... and %u more\n", a->in->device_count - ROWS_MAX);
    return STATUS_OK;
}

static enum status print_jobs(const struct solve_instance_answer *a, FILE *out, struct error *err)
{
    struct cli_table table;
    cli_table_begin(&table, (const char *[]){"JOB", ">TASKS", ">WEIGHT", ">ENDS", ">DEADLINE", NULL});
    for (uint32_t j = 0; j < a->in->job_count && j < ROWS_MAX; j++) {
        const struct instance_job *job = &a->in->jobs[j];
        cli_table_cell(&table, "%.40s", job->name);
        cli_table_cell(&table, "%u", instance_length(job));
        cli_table_cell(&table, "%u", job->weight);
        cli_table_cell(&table, "%" PRId64, a->ends[j]);
        if (job->deadline < INSTANCE_HORIZON_MAX)
            cli_table_cell(&table, "%" PRId64 "%s", job->deadline, a->ends[j] > job->deadline ? " missed" : "");
        else cli_table_cell(&table, "-");
    }
    TRY(cli_table_end(&table, out, err));
    if (a->in->job_count > ROWS_MAX) fprintf(out, "... and %u more\n", a->in->job_count - ROWS_MAX);
    return STATUS_OK;
}

static enum status report_text(struct cli *cli, struct solve_instance_answer *a, struct error *err)
{
    const struct certificate *c = &a->certificate;
    char text[CERTIFICATE_TEXT_BYTES];
    struct cli_solved solved = solved_of(a, text);
    struct cli_solve_work work = work_of(c);
    FILE *out = cli->out;
    fprintf(out, "%s: %s, %s on %s\n\n", a->in->name, CLI_COUNT(a->in->job_count, "job"),
            CLI_COUNT(a->in->task_count, "task"), CLI_COUNT(a->in->device_count, "device"));
    TRY(print_devices(a, out, err));
    fputc('\n', out);
    TRY(print_jobs(a, out, err));
    fprintf(out, "\n%-9s  %" PRId64 "\n", instance_objective_names[a->in->objective], c->value);
    cli_solved_text(&solved, out);
    cli_solve_work_text(&work, out);
    return STATUS_OK;
}

static enum status report_json(struct cli *cli, struct solve_instance_answer *a, struct error *err)
{
    const struct certificate *c = &a->certificate;
    char text[CERTIFICATE_TEXT_BYTES];
    struct cli_solved solved = solved_of(a, text);
    struct cli_solve_work work = work_of(c);
    struct json_out *json;
    TRY(cli_report_begin(cli, "solve", &json, err));
    cli_solved_json(&solved, a->request, json);
    cli_solve_work_json(&work, json);
    if (c->solver) {
        json_out_string(json, "solver", c->solver);
        json_out_string(json, "formulation", c->formulation);
        json_out_double(json, "solver_s", c->solver_s);
        if (c->solver_error.status) json_out_string(json, "solver_error", c->solver_error.text);
    }
    json_out_array_begin(json, "devices", false);
    for (uint32_t g = 0; g < a->in->device_count; g++) {
        struct device_figures d = device_figures(a, g);
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "class", a->in->classes[a->in->device_class[g]].name);
        json_out_u64(json, "tasks", d.tasks);
        json_out_u64(json, "compute_ticks", (uint64_t)d.computes);
        json_out_u64(json, "end_ticks", (uint64_t)d.end);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    json_out_array_begin(json, "jobs", false);
    for (uint32_t j = 0; j < a->in->job_count; j++) {
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "name", a->in->jobs[j].name);
        json_out_u64(json, "end_ticks", (uint64_t)a->ends[j]);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    return cli_report_end(cli, json, err);
}

/* --- files ----------------------------------------------------------------------------------- */

/* Writes the program of all tasks of an instance with streams. */
static enum status write_streams(const struct solve_instance_answer *a, struct error *err)
{
    struct dispatch *empty = NULL;
    struct stream_program *program = NULL;
    struct dispatch_step *steps = alloc_zeroed(a->in->task_count, sizeof *steps);
    uint32_t made = 0;
    if (!steps) return error_memory(err, "a program", a->in->task_count * sizeof *steps);
    for (uint32_t j = 0; j < a->in->job_count; j++)
        for (uint32_t t = 0; t < instance_length(&a->in->jobs[j]); t++) steps[made++].job = j;
    struct stream_program_request request = {.steps = steps, .count = made, .limit = a->certificate.value};
    if (!dispatch_create(a->in, &empty, err)) {
        request.before = empty;
        if (!stream_program_create(&request, &program, err))
            (void)!cli_solve_write_milp(a->request, stream_program_milp(program), err);
    }
    stream_program_destroy(program);
    dispatch_destroy(empty);
    free(steps);
    return err->status;
}

static enum status write_model(const struct solve_instance_answer *a, struct error *err)
{
    if (a->in->streams) return write_streams(a, err);
    struct instance_bounds bounds = {0};
    struct formulation *f = NULL;
    enum formulation_kind kind = formulation_suitable(a->in, a->certificate.value);
    if (instance_bounds_make(a->in, &bounds, err) ||
        formulation_create(a->in, &bounds, kind, a->certificate.value, &f, err))
        goto out;
    if (cli_solve_write_milp(a->request, formulation_milp(f), err)) goto out;
out:
    formulation_destroy(f);
    instance_bounds_release(&bounds);
    return err->status;
}

static enum status write_files(const struct solve_instance_answer *a, struct error *err)
{
    char text[CERTIFICATE_TEXT_BYTES];
    if (a->request->output)
        TRY(timetable_write(a->in, &a->timetable, a->certificate.bound, certificate_text(a->in, &a->certificate, text),
                            a->request->output, err));
    return a->request->lp || a->request->mps ? write_model(a, err) : STATUS_OK;
}

/* --- the problem ----------------------------------------------------------------------------- */

/* Returns two searches under a time limit; one for a number of iterations, to be repeatable. */
static uint32_t search_count(const struct cli_solve_request *request)
{
    return request->iterations == 0 && sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 2 : 1;
}

enum status solve_instance(struct cli *cli, const struct cli_solve_request *request,
                           struct json_stream *file, struct error *err)
{
    struct instance in = {0};
    struct solve_instance_answer a = {.request = request, .in = &in};
    struct certify_options options = {.seed = request->seed, .solver = request->solver,
                                      .iterations = request->iterations ? (uint32_t)request->iterations
                                                                        : UINT32_MAX};
    if (instance_parse_stream(file, &in, err)) goto out;
    a.ends = alloc_zeroed(in.job_count, sizeof *a.ends);
    if (!a.ends) {
        error_memory(err, "a report", in.job_count * sizeof *a.ends);
        goto out;
    }
    certify_divide(&in, request->limit_s, &options);
    options.searches = search_count(request);
    if (certify(&in, &options, &a.timetable, &a.certificate, err) ||
        (cli->json ? report_json(cli, &a, err) : report_text(cli, &a, err)))
        goto out;
    const struct error *solver = &a.certificate.solver_error;
    if (!write_files(&a, err) && solver->status) error_set(err, solver->status, "%s", solver->text);
out:
    free(a.ends);
    timetable_release(&a.timetable);
    instance_release(&in);
    return err->status;
}
