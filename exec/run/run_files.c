/*
 * A range is cleared when its job is opened and then filled as run_setup.c does: a job computes the same bits in every
 * range and after every other job.
 *
 * A complete or failed job is closed: its last checkpoint is written, then its weights. Jobs that a stop ends stay in
 * memory, to be kept after all work has ended.
 */
#include "exec/run/run_files.h"

#include <string.h>

#include "base/try.h"
#include "exec/run/run_moves.h"
#include "exec/state/run_faults.h"
#include "exec/state/run_saver.h"

/* --- on the stream's thread ------------------------------------------------------------------- */

struct file_call {
    struct run *run;
    uint32_t job, shard;
    bool whole; /* opens all shards at once */
    bool last;  /* of the job's operations of this kind */
};

/* Returns false after a stop or the job's failure. */
static bool may_open(struct run *run, uint32_t job)
{
    pthread_mutex_lock(&run->lock);
    const bool may = atomic_load(&run->jobs[job].limit) > 0 && run->fatal.status == STATUS_OK;
    if (may) run->jobs[job].opened = true;
    pthread_mutex_unlock(&run->lock);
    return may;
}

/* Makes states with which another job ended, or those from before the first minibatch. */
static enum status make_states(const struct file_call *call, struct error *err)
{
    struct run *const run = call->run;
    const struct plan *const plan = run->plan;
    const struct job *const job = &plan->jobs.jobs[call->job];
    const uint32_t all = plan_job_shards(plan, call->job), count = call->whole ? all : 1,
                   step = job_fills_at_once(job) ? count : 1;
    if (run_moves_awaits(run, call->job)) return run_moves_take(run, call->job, err);
    for (uint32_t s = call->shard; s < call->shard + count; s += step)
        TRY(run_fill_shards(run, call->job, plan->job_first_shard[call->job] + s, step, err));
    if (parallel_is_set(&job->parallel)) run_fill_copies(run, call->job);
    return STATUS_OK;
}

static void call_open(void *argument)
{
    const struct file_call *const call = argument;
    struct run *const run = call->run;
    const struct plan_host_range *const range = &run->plan->host_ranges[call->job];
    struct error why = {0};
    if (call->whole && call->shard > 0) return;
    if (call->shard == 0 && !run_moves_may_take(run, call->job)) return;
    if (!may_open(run, call->job)) return;
    if (call->shard == 0) memset(run->host + run->ranges_offset + range->offset_bytes, 0, range->bytes);
    if (make_states(call, &why) != STATUS_OK)
        run_fail_job(run, call->job, false, &why);
}

/* Returns true if the job is complete, or was ended early by a fault. */
static bool has_ended(struct run *run, uint32_t job)
{
    const struct run_progress *const progress = &run->jobs[job];
    pthread_mutex_lock(&run->lock);
    const bool complete = progress->losses == run->plan->jobs.jobs[job].minibatches;
    const bool ended = complete || progress->failure.status != STATUS_OK || progress->diverged;
    const bool may = progress->opened && run->fatal.status == STATUS_OK;
    pthread_mutex_unlock(&run->lock);
    return ended && may;
}

static void call_close(void *argument)
{
    const struct file_call *const call = argument;
    struct run *const run = call->run;
    const struct plan_host_range *const range = &run->plan->host_ranges[call->job];
    if (!call->last || !has_ended(run, call->job)) return;
    run_saver_close_job(run->saver, call->job);
    run_count_minibatches(run, call->job);
    run_moves_leave(run, call->job);
    run_keep_job(run, call->job);
    if (run->options->poison) memset(run->host + run->ranges_offset + range->offset_bytes, 0xff, range->bytes);
    pthread_mutex_lock(&run->lock);
    run->jobs[call->job].closed = true;
    pthread_mutex_unlock(&run->lock);
}

/* --- public ------------------------------------------------------------------------------------ */

void run_files_enqueue(struct run *run, const struct plan_walk_op *op, struct device_timing *timing)
{
    const struct plan *const plan = run->plan;
    const uint32_t job = op->unit->job, shard = op->unit->shard;
    const struct job *const of = &plan->jobs.jobs[job];
    const uint32_t ranks = op->gang == PLAN_NONE ? 1 : plan_gang_size(&plan->gangs[op->gang]);
    const struct file_call call = {
        .run = run,
        .job = job,
        .shard = shard,
        .whole = parallel_is_set(&of->parallel) || job_fills_at_once(of),
        .last = shard + 1 == plan_job_shards(plan, job) && op->rank + 1 == ranks,
    };
    device_call(run->streams[op->stream], op->op->pass == PLAN_OPEN ? call_open : call_close, &call, sizeof call,
                timing);
}

enum status run_files_start(struct run *run, struct error *err)
{
    if (!run->plan->host_ranges) return STATUS_OK;
    const struct device_options options = {
        .index = hardware_cpu(&run->plan->hardware) + 3, /* the storage's streams have the numbers below */
        .threads = 1,
        .compute_only = true,
        .delay_seed = run->options->delay_seed,
    };
    const enum status status = device_open_host(&options, &run->files, err);
    if (status != STATUS_OK) return error_add(err, "the stream of files");
    run->streams[plan_stream(run->plan, 0, STREAM_FILE)] = device_stream(run->files, STREAM_COMPUTE);
    return STATUS_OK;
}

void run_files_stop(struct run *run)
{
    device_stop(run->files);
}
