/*
 * Policies on jobs: planned, simulated and optionally run, in the planned order or live. A child process plans with a
 * user's policy.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json/json_in.h"
#include "base/process/contain.h"
#include "base/size.h"
#include "base/try.h"
#include "cli/bench/cli_bench.h"
#include "cli/process/cli_child.h"
#include "cli/ways/cli_optimal.h"
#include "cli/ways/cli_predict_live.h"
#include "planner/files/plan_io.h"
#include "planner/policy/policies.h"
#include "planner/policy/policy_load.h"

static const uint64_t memory_limit = UINT64_C(8) << 30;

struct bench_jobs_planning {
    const struct bench *bench;
    const char *path, *policy, *plan_path;
    uint64_t seed;
};

struct bench_jobs_planned {
    enum status status;
    char text[BENCH_REASON_BYTES];
    double makespan_s, bound_s;
};

/* Plans with `searched` (orders at the planner's cut), `optimal` (cuts too), or a policy. */
static enum status make(const struct bench_jobs_planning *planning, struct bench_jobs_planned *out, struct error *err)
{
    bool optimal = strcmp(planning->policy, bench_optimal) == 0;
    struct planner_options options = {
        .policy = bench_is_search(planning->policy) ? policy_optimal.name : planning->policy,
        .seed = planning->seed,
        .activations = PLANNER_AUTO,
        .optimizer = PLANNER_AUTO,
        .iterations = BENCH_ITERATIONS};
    struct job_set jobs = {0};
    struct cli_source source = {.jobs = &jobs,
                                .machine = planning->bench->options.machine,
                                .parallel = CLI_PARALLEL_NONE,
                                .contained = policy_is_file(planning->policy),
                                .order = planning->seed == 1 ? 0 : planning->seed};
    bool live = planning->bench->options.dispatch > 0;
    options.live = live;
    if (live && bench_is_search(planning->policy))
        return error_set(err, STATUS_INFEASIBLE, "'%s' is a search and cannot decide live", planning->policy);
    struct cli_field *field = alloc_zeroed(1, sizeof *field);
    if (!field) return error_memory(err, "plans", sizeof *field);
    struct cli_candidate *made = &field->kept;
    enum status status = cli_jobs_read(planning->path, &jobs, err);
    if (status == STATUS_OK)
        status = optimal ? cli_optimal(&source, &options, field, err)
                         : cli_candidate_make(&source, &options, made, err);
    if (status == STATUS_OK && planning->plan_path)
        status = plan_write(&made->plan, planning->plan_path, err);
    if (status == STATUS_OK && live) {
        cli_prediction_release(&made->prediction);
        made->prediction = (struct cli_prediction){.tokens_per_s = 0};
        const struct cli_predict_options how = {.seed = planning->seed};
        status = cli_predict_live(&made->plan, NULL, planning->policy, &how, &made->prediction, err);
    }
    out->makespan_s = made->prediction.result.makespan_s;
    out->bound_s = made->plan.lower_bound_s;
    cli_field_release(field);
    free(field);
    job_set_release(&jobs);
    return status;
}

static void make_and_tell(void *context, struct contain_sink *sink)
{
    struct error err = {0};
    struct bench_jobs_planned planned = {0};
    planned.status = make(context, &planned, &err);
    snprintf(planned.text, sizeof planned.text, "%.*s", BENCH_REASON_BYTES - 1, err.text);
    contain_write(sink, &planned, sizeof planned);
}

/* *crashed: the child failed, and out->text says how. */
static enum status make_in_child(struct bench_jobs_planning *planning, struct bench_jobs_planned *out, bool *crashed,
                                 struct error *err)
{
    struct contain_limits limits = {.seconds = planning->bench->options.limit_s,
                                    .memory_bytes = memory_limit};
    struct contain_end end;
    char why[CONTAIN_TEXT_BYTES];
    void *result;
    size_t length;
    TRY(contain_run(make_and_tell, planning, &limits, sizeof *out, &result, &length, &end, err));
    *crashed = !result || length != sizeof *out;
    if (*crashed) {
        out->status = STATUS_CHECK;
        snprintf(out->text, sizeof out->text, "the process of the policy %s",
                 contain_text(&end, &limits, why));
    } else {
        memcpy(out, result, sizeof *out);
        out->text[sizeof out->text - 1] = '\0';
    }
    free(result);
    return STATUS_OK;
}

/* Returns true if the user's policy is at fault: its name begins the text. */
static bool is_policys(const char *text)
{
    return strncmp(text, "policy '", 8) == 0;
}

enum status bench_try_jobs(const struct bench *bench, const char *path, const char *policy, uint64_t seed,
                           const char *plan_path, struct bench_result *out,
                           char reason[BENCH_REASON_BYTES], struct error *err)
{
    struct bench_jobs_planning planning = {
        .bench = bench, .path = path, .policy = policy, .plan_path = plan_path, .seed = seed};
    struct bench_jobs_planned planned = {0};
    bool crashed = false;
    if (policy_is_file(policy)) {
        TRY(make_in_child(&planning, &planned, &crashed, err));
    } else {
        struct error why = {0};
        planned.status = make(&planning, &planned, &why);
        snprintf(planned.text, sizeof planned.text, "%.*s", BENCH_REASON_BYTES - 1, why.text);
    }
    if (planned.status == STATUS_OK && planned.bound_s > 0 && planned.makespan_s > 0) {
        out->outcome = BENCH_DONE;
        out->value = planned.makespan_s;
        out->bound = planned.bound_s;
        return STATUS_OK;
    }
    bool failed = crashed || (policy_is_file(policy) && is_policys(planned.text));
    if (planned.status != STATUS_INFEASIBLE && !failed)
        return error_set(err, planned.status, "%s", planned.text);
    out->outcome = failed ? BENCH_FAILED : BENCH_NONE;
    memcpy(reason, planned.text, BENCH_REASON_BYTES);
    return STATUS_OK;
}

/* --- running --------------------------------------------------------------------------------- */

static enum status read_makespan(const char *path, double *out, struct error *err)
{
    struct json_input *in = NULL;
    struct json_object object;
    bool stopped = false;
    TRY(json_input_read(path, &in, err));
    if (json_object_open(&object, in, json_input_root(in), "the result of a run", err) == STATUS_OK) {
        json_object_ignore_others(&object);
        if (json_take_bool(&object, "stopped", JSON_REQUIRED, &stopped, err) == STATUS_OK &&
            json_take_double(&object, "makespan_s", JSON_REQUIRED, 0, 1e15, out, err) == STATUS_OK && stopped)
            error_set(err, STATUS_INTERRUPTED, "the run was stopped");
    }
    json_input_destroy(in);
    return err->status;
}

enum status bench_execute(const char *plan_path, const char *policy, uint64_t seed, double *measured_s,
                          struct error *err)
{
    char program[CLI_PATH_BYTES], result[CLI_PATH_BYTES], number[24];
    struct cli_child_end end;
    size_t count = 0;
    TRY(cli_child_find(program, err));
    TRY(cli_child_file(result, err));
    const char *words[16] = {program, "run", "--result", result, "--no-weights", "--quiet"};
    while (words[count]) count++;
    snprintf(number, sizeof number, "%" PRIu64, seed);
    const char *const live[] = {"--dispatch", "live", "--policy", policy, "--seed", number};
    for (size_t i = 0; policy && i < ARRAY_COUNT(live); i++) words[count++] = live[i];
    words[count++] = "--";
    words[count++] = plan_path;
    enum status status = cli_child_run(words, &end, err);
    if (status == STATUS_OK) status = cli_child_status(&end, "run", err);
    if (status == STATUS_OK) status = read_makespan(result, measured_s, err);
    unlink(result);
    return status;
}
