/*
 * A policy plans with the instance's durations. With noise, the planned order is kept with the actual durations, each
 * task as early as possible; then the policy decides live. Both are compared with a bound of the actual durations.
 * Ticks are divided first, so that a tenth of a short duration is not rounded off.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/process/progress.h"
#include "base/random.h"
#include "base/try.h"
#include "cli/bench/cli_bench.h"
#include "cli/process/cli_child.h"
#include "planner/policy/trial/policy_trial.h"
#include "planner/solve/certify/certify.h"
#include "planner/solve/instance/instance_change.h"
#include "planner/solve/instance/instance_io.h"

/* Searches count nodes and not seconds: results are equal on every machine. */
enum { OPTIMAL_ITERATIONS = 2000, OPTIMAL_NODES = 2000000 };
static const uint64_t memory_limit = UINT64_C(2) << 30;

/* --- cases ----------------------------------------------------------------------------------- */

/* Makes eight devices for Hydra's Fig. 7; else sizes of a small cluster. */
static enum status make_family(enum instance_family family, uint64_t seed, struct instance *out,
                               struct error *err)
{
    bool fig7 = family == INSTANCE_FAMILY_HOMOGENEOUS || family == INSTANCE_FAMILY_HETEROGENEOUS;
    struct instance_random options = {.family = family, .seed = seed, .devices = {4, 4},
                                      .jobs = {6, 12}, .shards = {2, 6}, .minibatches = {2, 4}};
    if (fig7) options.devices = (struct instance_range){8, 8};
    if (fig7) options.jobs = (struct instance_range){16, 16};
    return instance_random(&options, out, err);
}

static enum status read_instance(const char *path, uint64_t seed, struct instance *out, struct error *err)
{
    if (seed == 1) return instance_read(path, out, err);
    struct instance in = {0};
    if (instance_read(path, &in, err) == STATUS_OK && instance_reorder(&in, seed, out, err)) {}
    instance_release(&in);
    return err->status;
}

/* Divides ticks for the noise, if their range allows it. */
static enum status make_finer(struct instance *in, double *ticks, struct error *err)
{
    enum { FINER = 1000 };
    struct instance finer = {0};
    if (in->horizon > INSTANCE_HORIZON_MAX / FINER / 4 || in->bridge_bytes_per_tick > 0) return STATUS_OK;
    for (uint32_t i = 0; i < in->job_count; i++)
        if (in->jobs[i].deadline > INSTANCE_HORIZON_MAX / FINER &&
            in->jobs[i].deadline < INSTANCE_HORIZON_MAX)
            return STATUS_OK;
    TRY(instance_scale(in, FINER, &finer, err));
    instance_release(in);
    *in = finer;
    *ticks = FINER;
    return STATUS_OK;
}

static enum status bound_of(const struct bench_round *round, const struct instance *in, double *out,
                            struct error *err)
{
    struct instance_bounds bounds = {0};
    if (instance_bounds_make(in, &bounds, err) == STATUS_OK)
        *out = (double)instance_bounds_best(&bounds) / round->ticks;
    instance_bounds_release(&bounds);
    return err->status;
}

struct bench_round bench_round_of(const struct bench *bench, size_t number)
{
    struct bench_round round = {.bench = bench, .workload = number / bench->seeds,
                                .seed_index = (uint32_t)(number % bench->seeds), .ticks = 1};
    round.seed = round.seed_index + UINT64_C(1);
    return round;
}

enum status bench_round_make(struct bench_round *round, struct error *err)
{
    const struct bench_workload *workload = &round->bench->workloads[round->workload];
    double noise = round->bench->options.noise;
    enum status status = workload->kind == BENCH_FAMILY
                             ? make_family(workload->family, round->seed, &round->in, err)
                             : read_instance(workload->path, round->seed, &round->in, err);
    if (status == STATUS_OK && noise > 0) status = make_finer(&round->in, &round->ticks, err);
    if (status == STATUS_OK) status = bound_of(round, &round->in, &round->bound, err);
    if (status == STATUS_OK && noise > 0)
        status = instance_perturb(&round->in, noise, random_u64(round->seed, 1), &round->actual, err);
    if (status == STATUS_OK && noise > 0) status = bound_of(round, &round->actual, &round->actual_bound, err);
    if (status != STATUS_OK || (round->bound > 0 && (round->actual_bound > 0 || !(noise > 0)))) return status;
    return error_set(err, STATUS_BAD_INPUT, "%s: its lower bound is 0, so nothing can be compared with it",
                     workload->path ? workload->path : workload->name);
}

void bench_round_release(struct bench_round *round)
{
    instance_release(&round->in);
    instance_release(&round->actual);
}

/* --- competitors on instances ---------------------------------------------------------------- */

static void keep_reason(const struct bench *bench, uint32_t policy, const char *text, bool failed)
{
    struct bench_reason *reason = &bench->reasons[policy];
    if (reason->text[0] && (reason->failed || !failed)) return;
    snprintf(reason->text, sizeof reason->text, "%.*s", BENCH_REASON_BYTES - 1, text);
    reason->failed = failed;
}

/* Keeps the planned order with actual durations. */
static enum status keep_order(const struct bench_round *round, const struct dispatch_step *steps,
                              struct bench_result *out, struct error *err)
{
    struct timetable timetable = {0};
    if (!(round->bench->options.noise > 0)) return STATUS_OK;
    TRY(timetable_make(&round->actual, steps, &timetable, err));
    out->kept = (double)timetable.value / round->ticks;
    out->actual_bound = round->actual_bound;
    timetable_release(&timetable);
    return STATUS_OK;
}

struct bench_trials_started {
    int64_t start;
    uint32_t at;
    struct dispatch_step step;
};

static int compare_started(const void *a, const void *b)
{
    const struct bench_trials_started *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static enum status keep_timetable(const struct bench_round *round, const struct timetable *t,
                                  struct bench_result *out, struct error *err)
{
    struct bench_trials_started *all = alloc_zeroed(t->task_count, sizeof *all);
    struct dispatch_step *steps = alloc_zeroed(t->task_count, sizeof *steps);
    if (!all || !steps) {
        error_memory(err, "an order", t->task_count * sizeof *all);
    } else {
        for (uint32_t g = 0; g < t->device_count; g++)
            for (uint32_t i = t->device_first[g]; i < t->device_first[g + 1]; i++)
                all[i] = (struct bench_trials_started){t->tasks[i].start, i, {t->tasks[i].job, g}};
        qsort(all, t->task_count, sizeof *all, compare_started);
        for (uint32_t i = 0; i < t->task_count; i++) steps[i] = all[i].step;
        if (keep_order(round, steps, out, err)) {}
    }
    free(all);
    free(steps);
    return err->status;
}

static enum status try_search(struct bench_round *round, const char *name, struct bench_result *out,
                              struct error *err)
{
    bool optimal = strcmp(name, bench_optimal) == 0;
    struct certify_options options = {.seed = round->seed,
                                      .iterations = optimal ? OPTIMAL_ITERATIONS : BENCH_ITERATIONS,
                                      .nodes_max = OPTIMAL_NODES,
                                      .search_limit_s = HUGE_VAL,
                                      .exact_limit_s = optimal ? HUGE_VAL : 0};
    struct timetable timetable = {0};
    struct certificate certificate;
    TRY(certify(&round->in, &options, &timetable, &certificate, err));
    out->outcome = BENCH_DONE;
    out->value = (double)certificate.value / round->ticks;
    round->bound = fmax(round->bound, (double)certificate.bound / round->ticks);
    if (round->bench->options.noise > 0 && keep_timetable(round, &timetable, out, err)) {}
    timetable_release(&timetable);
    return err->status;
}

/* Runs a trial; `live`: with actual durations. */
static enum status try_policy(const struct bench_round *round, uint32_t policy, bool live,
                              struct bench_result *out, struct error *err)
{
    const struct bench *bench = round->bench;
    struct policy_trial_options options = {
        .run = {.seed = round->seed, .live = live, .actual = live ? &round->actual : NULL, .timed = true},
        .limits = {.seconds = bench->options.limit_s, .memory_bytes = memory_limit}};
    struct policy_trial trial = {0};
    TRY(policy_trial(bench->policies[policy], &round->in, &options, &trial, err));
    if (trial.status == STATUS_BAD_INPUT) {
        error_set(err, STATUS_BAD_INPUT, "%s", trial.text);
    } else if (trial.status != STATUS_OK) {
        bool failed = trial.status != STATUS_INFEASIBLE;
        keep_reason(bench, policy, trial.text, failed);
        out->outcome = failed ? BENCH_FAILED : BENCH_NONE;
    } else if (live) {
        out->live = (double)trial.run.value / round->ticks;
        out->has_live = true;
    } else {
        out->outcome = BENCH_DONE;
        out->value = (double)trial.run.value / round->ticks;
        if (keep_order(round, trial.run.steps, out, err)) {}
    }
    out->decisions += trial.run.decisions;
    out->deciding_s += trial.run.seconds;
    policy_trial_release(&trial);
    return err->status;
}

static enum status run_instance(struct bench_round *round, struct error *err)
{
    const struct bench *bench = round->bench;
    TRY(bench_round_make(round, err));
    for (uint32_t p = 0; p < bench->policy_count; p++) {
        struct bench_result *out = bench_at(bench, round->workload, round->seed_index, p);
        if (bench_is_search(bench->policies[p])) {
            TRY(try_search(round, bench->policies[p], out, err));
            continue;
        }
        TRY(try_policy(round, p, false, out, err));
        if (out->outcome == BENCH_DONE && bench->options.noise > 0) TRY(try_policy(round, p, true, out, err));
    }
    for (uint32_t p = 0; p < bench->policy_count; p++) /* a proof may have raised it */
        bench_at(bench, round->workload, round->seed_index, p)->bound = round->bound;
    return STATUS_OK;
}

/* --- competitors on jobs --------------------------------------------------------------------- */

static enum status run_jobs(struct bench_round *round, const struct bench_workload *workload, struct error *err)
{
    const struct bench *bench = round->bench;
    char plan_path[CLI_PATH_BYTES] = "";
    bool real = bench->options.real && round->seed == 1;
    if (real) TRY(cli_child_file(plan_path, err));
    for (uint32_t p = 0; p < bench->policy_count && !err->status; p++) {
        struct bench_result *out = bench_at(bench, round->workload, round->seed_index, p);
        char reason[BENCH_REASON_BYTES] = "";
        if (bench_try_jobs(bench, workload->path, bench->policies[p], round->seed, real ? plan_path : NULL,
                           out, reason, err))
            break;
        if (reason[0]) keep_reason(bench, p, reason, out->outcome == BENCH_FAILED);
        const char *asked = bench->options.dispatch ? bench->policies[p] : NULL;
        if (real && out->outcome == BENCH_DONE &&
            bench_execute(plan_path, asked, round->seed, &out->measured_s, err))
            error_add(err, "policy '%s'", bench->policies[p]);
    }
    if (real) unlink(plan_path);
    return err->status;
}

enum status bench_run(struct bench *bench, struct error *err)
{
    struct progress progress;
    size_t cases = bench->workload_count * bench->seeds;
    bench->results = alloc_zeroed(cases * bench->policy_count, sizeof *bench->results);
    bench->reasons = alloc_zeroed(bench->policy_count, sizeof *bench->reasons);
    if (!bench->results || !bench->reasons)
        return error_memory(err, "the results", cases * bench->policy_count * sizeof *bench->results);
    progress_begin(&progress, "comparing", (double)cases);
    for (size_t c = 0; c < cases && !err->status; c++) {
        struct bench_round round = bench_round_of(bench, c);
        const struct bench_workload *workload = &bench->workloads[round.workload];
        if (workload->kind == BENCH_JOBS ? run_jobs(&round, workload, err)
                                         : run_instance(&round, err)) {}
        bench_round_release(&round);
        progress_update(&progress, (double)c + 1, workload->name);
    }
    progress_end(&progress);
    return err->status;
}
