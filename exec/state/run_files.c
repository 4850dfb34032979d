/*
 * A range is cleared when its job is opened and then filled as run_setup.c does: a job computes the same bits in every
 * range and after every other job.
 *
 * A complete or failed job is closed: its last checkpoint is written, then its weights. Jobs that a stop ends stay in
 * memory, to be kept after all work has ended.
 */
#include "exec/state/run_files.h"

#include <string.h>

#include "exec/state/run_faults.h"
#include "exec/state/run_saver.h"

/* --- on the stream's thread ------------------------------------------------------------------- */

struct file_call {
    struct run *run;
    uint32_t job, shard;
    bool last; /* of the job's shards */
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

static void call_open(void *argument)
{
    const struct file_call *const call = argument;
    struct run *const run = call->run;
    const struct plan *const plan = run->plan;
    const struct job *const job = &plan->jobs.jobs[call->job];
    const uint32_t first = plan->job_first_shard[call->job], count = plan_job_shards(plan, call->job);
    const bool whole = job->weights_in || job->first_minibatch > 0; /* a file is read at once */
    const struct plan_host_range *const range = &plan->host_ranges[call->job];
    struct error why = {0};
    if (!may_open(run, call->job)) return;
    if (call->shard == 0) memset(run->host + run->ranges_offset + range->offset_bytes, 0, range->bytes);
    if (whole && call->shard > 0) return;
    if (run_fill_shards(run, call->job, first + call->shard, whole ? count : 1, &why) != STATUS_OK)
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
    const uint32_t job = op->unit->job;
    const struct file_call call = {
        .run = run,
        .job = job,
        .shard = op->unit->shard,
        .last = plan->job_first_shard[job] + op->unit->shard + 1 == plan->job_first_shard[job + 1],
    };
    device_call(run->streams[op->stream], op->op->pass == PLAN_OPEN ? call_open : call_close, &call, sizeof call, timing);
}

bool run_job_is_open(const struct run *run, uint32_t job)
{
    return !plan_has_range(run->plan, job) || (run->jobs[job].opened && !run->jobs[job].closed);
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
