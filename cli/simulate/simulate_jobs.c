/* FILE of `simulate`, and planning of jobs. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json/json_stream.h"
#include "base/size.h"
#include "base/try.h"
#include "cli/simulate/cli_simulate.h"
#include "cli/ways/cli_candidate.h"
#include "cli/ways/cli_saturn.h"
#include "cli/ways/cli_ways.h"
#include "models/jobs/jobs_file.h"
#include "planner/strategy/planner.h"

/* --- the contents of the file ---------------------------------------------------------------- */

struct simulate_jobs_kind {
    const char *key; /* its version key */
    enum cli_simulate_subject subject;
};

static const struct simulate_jobs_kind kinds[] = {
    {"spillway_plan", SIMULATE_PLAN},
    {"spillway_jobs", SIMULATE_JOBS},
    {"spillway_instance", SIMULATE_INSTANCE},
};

static const struct simulate_jobs_kind *kind_of(const json_t *root)
{
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
        if (json_object_get(root, kinds[i].key)) return &kinds[i];
    return NULL;
}

static enum status refuse_kind(const struct json_input *input, bool live, struct error *err)
{
    TRY(json_refuse_kind(input, live ? "an instance, jobs or a plan" : "a plan or jobs", err));
    return live
             ? json_fail_key(input, json_input_root(input), NULL, err,
                             "nothing that can be dispatched live (expected the key spillway_instance, spillway_jobs "
                             "or spillway_plan)")
             : STATUS_OK; /* the reader of plans reports */
}

/* Returns true for a written plan's beginning, so that large plans are parsed only once. */
static bool begins_as_plan(const char *path)
{
    char begin[64];
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    size_t length = fread(begin, 1, sizeof begin - 1, file);
    fclose(file);
    begin[length] = '\0';
    return strstr(begin, "\"spillway_plan\"") != NULL;
}

enum status simulate_find_subject(const char *path, bool live, enum cli_simulate_subject *out, struct error *err)
{
    static const char *const long_arrays[] = {"jobs", "units", "segments", "buffers", NULL};
    struct json_stream *file;
    struct error unread = {0};
    *out = SIMULATE_PLAN;
    if (!live && (strcmp(path, "-") == 0 || begins_as_plan(path))) return STATUS_OK;
    if (json_stream_open(path, long_arrays, &file, live ? err : &unread) != STATUS_OK) return err->status;
    const struct json_input *input = json_stream_head(file);
    const json_t *root = json_input_root(input);
    const struct simulate_jobs_kind *kind = kind_of(root);
    enum status status = STATUS_OK;
    if (kind) *out = kind->subject;
    if (!live && kind && kind->subject == SIMULATE_INSTANCE)
        status = json_fail_key(input, root, kind->key, err, "an instance (expected a plan or jobs): try 'spillway "
                               "simulate %.200s --dispatch live --policy NAME'", path);
    if (!kind) status = refuse_kind(input, live, err);
    json_stream_close(file);
    return status;
}

/* --- jobs ------------------------------------------------------------------------------------ */

/* Plans by Saturn, or a rule to compare. */
static enum status plan_by_saturn(const struct cli_simulate_request *request, struct job_set *jobs,
                                  enum saturn_rule rule, struct plan *plan, struct error *err)
{
    struct cli_candidate candidate = {0};
    struct saturn_report report = {0};
    const struct cli_source source = {.jobs = jobs, .machine = request->machine, .parallel = request->parallel};
    const struct planner_options spilled = {
        .activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO, .seed = request->seed};
    const struct saturn_options options = {
        .spilled = &spilled, .rule = rule, .interval_s = -1, .threshold_s = -1, .restart_s = -1};
    if (cli_saturn(&source, &options, &candidate, &report, err) == STATUS_OK) {
        *plan = candidate.plan;
        candidate.plan = (struct plan){0};
    }
    cli_candidate_release(&candidate);
    return err->status;
}

/* Plans without a policy. */
static enum status plan_by_default(const struct cli_simulate_request *request, struct job_set *jobs,
                                   const struct planner_options *options, struct plan *plan, struct error *err)
{
    struct cli_field *field = alloc_zeroed(1, sizeof *field);
    if (!field) return error_memory(err, "plans", sizeof *field);
    const struct cli_source source = {.jobs = jobs, .machine = request->machine, .parallel = request->parallel};
    if (cli_ways(&source, &(struct cli_ways_options){.fixed = options}, field, err) == STATUS_OK) {
        *plan = field->kept.plan;
        field->kept.plan = (struct plan){0};
    }
    cli_field_release(field);
    free(field);
    return err->status;
}

/* Returns true if some job leaves its parallelism open. */
static bool any_open(const struct job_set *jobs)
{
    for (uint32_t j = 0; j < jobs->count; j++)
        if (!parallel_is_set(&jobs->jobs[j].parallel)) return true;
    return false;
}

static enum status plan_by_planner(const struct cli_simulate_request *request, struct job_set *given,
                                   const struct planner_options *options, struct plan *plan, struct error *err)
{
    struct hardware hardware = {0};
    struct job_set jobs = {0};
    enum status status = job_set_share(given, &jobs, err);
    if (status == STATUS_OK) status = cli_machine_read(&request->machine, &hardware, err);
    if (status == STATUS_OK) status = cli_parallel_apply(&request->parallel, &jobs, err);
    const bool chooses = !request->live && !options->policy && !options->swap && any_open(&jobs); /* by simulation */
    if (status == STATUS_OK)
        status = chooses ? plan_by_default(request, given, options, plan, err)
                         : planner_plan(&hardware, &jobs, options, plan, err);
    hardware_release(&hardware);
    job_set_release(&jobs);
    return status;
}

enum status simulate_plan_jobs(const struct cli_simulate_request *request, struct plan *plan, struct swap_report *swap,
                               struct error *err)
{
    struct job_set given = {0};
    const struct swap_options swapped = cli_swap_options(request->rule, 0);
    const struct planner_options options = {.policy = request->live ? NULL : request->policy,
                                            .seed = request->live ? 0 : request->seed,
                                            .activations = PLANNER_AUTO,
                                            .optimizer = PLANNER_AUTO,
                                            .live = request->live,
                                            .swap = cli_simulate_swaps(request) ? &swapped : NULL,
                                            .swap_report = swap};
    enum saturn_rule rule;
    const bool by_saturn = saturn_rule_find(options.policy, &rule);
    enum status status = job_set_read(request->path, &given, err);
    if (status == STATUS_OK && by_saturn) status = plan_by_saturn(request, &given, rule, plan, err);
    if (status == STATUS_OK && !by_saturn) status = plan_by_planner(request, &given, &options, plan, err);
    job_set_release(&given);
    return status;
}
