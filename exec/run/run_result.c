#include "exec/run/run_result.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/try.h"
#include "exec/run/run.h"
#include "exec/run/run_ranks.h"
#include "exec/state/run_faults.h"
#include "exec/state/run_peers.h"
#include "exec/state/run_saver.h"
#include "models/hardware/hardware_dilate.h"

static enum status sum_up_failures(struct run *run, uint32_t job, struct error *err)
{
    struct run_job_result *const result = &run->result->jobs[job];
    const struct error *const failure = &run->jobs[job].failure;
    enum status status = STATUS_OK;
    if (failure->status != STATUS_OK)
        status = arena_string(&run->result->arena, failure->text, &result->failure, err);
    if (result->failure) run->result->failed++;
    return status;
}

/* Names the first job that lacks its last checkpoint, and counts the others. */
static void sum_up_checkpoints(struct run *run)
{
    struct run_result *const result = run->result;
    struct error unwritten = {0};
    uint32_t first = PLAN_NONE, lacking = 0;
    for (uint32_t j = 0; j < run->plan->jobs.count; j++) {
        if (!result->jobs[j].checkpoint_failure) continue;
        if (first == PLAN_NONE) first = j;
        lacking++;
    }
    if (lacking == 0) return;
    (void)!error_set(&unwritten, STATUS_IO, "no last checkpoint of %" PRIu32 " of %" PRIu32 " jobs%s '%s': %s",
                     lacking, run->plan->jobs.count, lacking == 1 ? ":" : ", the first of them",
                     run->plan->jobs.jobs[first].name, result->jobs[first].checkpoint_failure);
    run_result_unwritten(result, &unwritten);
}

static enum status sum_up_streams(const struct run_loop *loop, struct error *err)
{
    struct run_result *const result = loop->run->result;
    const uint32_t streams = plan_stream_count(loop->plan);
    TRY(ARENA_NEW(&result->arena, streams, result->busy_s, err));
    for (uint32_t s = 0; s < streams; s++) result->busy_s[s] = run_record_busy_s(loop->record, s);
    return STATUS_OK;
}

static enum status sum_up_memory(const struct run_loop *loop, struct error *err)
{
    const struct run *const run = loop->run;
    struct run_result *const result = run->result;
    const uint32_t devices = loop->plan->hardware.device_count;
    TRY(ARENA_NEW(&result->arena, devices, result->devices, err));
    for (uint32_t d = 0; d < devices; d++) {
        const uint8_t *const uses = run->slot_uses + (size_t)d * loop->plan->slot_count;
        result->devices[d].taken = device_memory(run->devices[d]);
        TRY(plan_memory_count(loop->plan, uses, &result->devices[d].memory, err));
    }
    result->host_bytes = run->host_bytes;
    result->pinned = run->pinned;
    return STATUS_OK;
}

static void add_pacing(const struct device *device, struct device_pacing *all)
{
    const struct device_pacing own = device_pacing(device);
    all->asked_s += own.asked_s;
    all->late_s += own.late_s;
}

static void sum_up_jobs(const struct run_loop *loop, struct trace *trace)
{
    struct run *const run = loop->run;
    trace->complete = true;
    for (uint32_t j = 0; j < loop->plan->jobs.count; j++) {
        const struct job *const job = &loop->plan->jobs.jobs[j];
        struct run_job_result *const result = &run->result->jobs[j];
        struct trace_job *const traced = &trace->jobs[j];
        const uint64_t limit = run->jobs[j].limit; /* none without a stop or a failure */
        uint64_t completed = loop->walked[j] < limit ? loop->walked[j] : limit;
        if (run->jobs[j].damaged) completed = run->jobs[j].losses;
        assert(run->jobs[j].losses == completed);
        /* an unreadable checkpoint's content is unknown */
        const bool known = job->first_minibatch == 0 || result->checkpoint > 0 || run->jobs[j].taken;
        result->minibatches = known ? job->first_minibatch + completed : 0;
        if (completed < job->minibatches) {
            trace->complete = false;
            if (run->jobs[j].failure.status == STATUS_OK) run->result->stopped = true;
        }
        traced->minibatches = completed;
        traced->samples = job_makes_outputs(job) ? 0 : completed * job_samples(job);
        traced->tokens = traced->samples * job->sequence;
        for (uint64_t i = 0; i < result->minibatches; i++)
            if (!isfinite(result->losses[i])) result->nonfinite++;
        if (result->minibatches == 0 || job_makes_outputs(job)) continue;
        result->first_loss = result->losses[0];
        result->final_loss = result->losses[result->minibatches - 1];
        traced->has_loss = completed > 0 && isfinite(result->final_loss);
        traced->final_loss = traced->has_loss ? result->final_loss : 0;
    }
}

/* Everything that other ranks have a part in. */
static enum status sum_up_ranks(struct run_loop *loop, struct trace *trace, struct error *err)
{
    struct run *const run = loop->run;
    struct run_result *const result = run->result;
    for (uint32_t d = 0; d < run->plan->hardware.device_count; d++) add_pacing(run->devices[d], &result->pacing);
    if (run->cpu) add_pacing(run->cpu, &result->pacing);
    TRY(sum_up_streams(loop, err));
    TRY(sum_up_memory(loop, err));
    TRY(run_ranks_gather_report(loop, trace, err));
    result->makespan_s = trace->makespan_s;
    trace->load = load_taken(&result->load);
    if (hardware_dilation(&run->plan->hardware) <= 1) return STATUS_OK;
    trace->late = device_pacing_late(&result->pacing);
    trace->load = 0; /* what others took shows in `late` */
    return STATUS_OK;
}

enum status run_sum_up(struct run_loop *loop, struct trace *trace, struct error *err)
{
    struct run *const run = loop->run;
    TRY(run_record_finish(loop->record, err));
    run_saver_finish(run->saver);
    run_saver_stop(run->saver);
    sum_up_jobs(loop, trace);
    enum status status = sum_up_ranks(loop, trace, err);
    if (status == STATUS_OK && (!run->peers || run->peers->own == 0)) run_keep_weights(run);
    for (uint32_t j = 0; j < loop->plan->jobs.count && status == STATUS_OK; j++)
        status = sum_up_failures(run, j, err);
    sum_up_checkpoints(run);
    run_tell_notes(run);
    if (status == STATUS_OK && run->fatal.status != STATUS_OK)
        status = error_set(err, run->fatal.status, "%s", run->fatal.text);
    return status;
}

void run_result_unwritten(struct run_result *result, const struct error *why)
{
    const size_t used = strlen(result->unwritten);
    snprintf(result->unwritten + used, sizeof result->unwritten - used, "%s%s", used > 0 ? "; " : "", why->text);
}

void run_result_release(struct run_result *result)
{
    arena_release(&result->arena);
    *result = (struct run_result){0};
}
