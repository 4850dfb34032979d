/* With run_options.keep_going, an error of one job is that job's failure only. */
#include "exec/run/run_checks.h"

#include <inttypes.h>

#include "base/size.h"
#include "base/text/quantity.h"
#include "base/try.h"
#include "exec/device/host_memory.h"
#include "exec/files/adapter.h"
#include "exec/files/weights.h"
#include "exec/network/unit.h"
#include "exec/run/run.h"
#include "exec/run/run_ranks.h"
#include "exec/state/run_faults.h"
#include "exec/state/run_storage.h"
#include "models/jobs/job_files.h"
#include "planner/plan_runnable.h"

static enum status refuse_job(const struct job *job, const char *reason, struct error *err)
{
    return error_set(err, STATUS_BAD_INPUT, "job '%s' cannot be trained here: %s", job->name, reason);
}

enum status run_check_plan(const struct plan *plan, uint32_t processes, struct error *err)
{
    enum status status = plan_runnable_by(plan, processes, err);
    for (uint32_t j = 0; j < plan->jobs.count && status == STATUS_OK; j++) {
        const char *const reason = unit_unsupported(&plan->jobs.jobs[j]);
        if (reason) status = refuse_job(&plan->jobs.jobs[j], reason, err);
    }
    return status;
}

enum status run_check_machine(struct run *run, struct error *err)
{
    const struct hardware *const hardware = &run->plan->hardware;
    run->backend = backend_find(hardware->backend);
    if (!run->backend)
        return error_set(err, STATUS_DEVICE,
                         "the plan is for '%s', whose backend is '%s' (this program was built with %s)",
                         hardware->name, hardware->backend, backend_names());
    uint32_t count = 0;
    const enum status status = run->backend->count(&count, err);
    if (status != STATUS_OK) return error_add(err, "the plan is for '%s'", hardware->name);
    if (count < hardware->device_count)
        return error_set(err, STATUS_DEVICE,
                         "the plan is for '%s' with %" PRIu32 " devices of backend '%s', and there %s "
                         "%" PRIu32, hardware->name, hardware->device_count, hardware->backend,
                         count == 1 ? "is" : "are", count);
    return STATUS_OK;
}

/* Refuses a job whose stale weights are never the newest, of which no checkpoint can be taken. */
static enum status check_flushes(const struct job *job, struct error *err)
{
    if (!parallel_is_stale(&job->parallel) || job->parallel.flush > 0 || job->evaluation.every > 0) return STATUS_OK;
    if (job->parallel.delayed)
        return error_set(err, STATUS_BAD_INPUT,
                         "job '%s' has delayed updates without a flush, "
                         "whose minibatches never begin with the newest weights, "
                         "so it has no checkpoints (expected 'flush', a run without them, or no 'delayed')", job->name);
    return error_set(err, STATUS_BAD_INPUT,
                     "job '%s' has the asynchronous schedule '%s' without a flush, whose stages are never in the same "
                     "minibatch, so it has no checkpoints (expected 'flush', a run without them, or another schedule)",
                     job->name, pipeline_schedule_names[job->parallel.schedule]);
}

enum status run_check_jobs(struct run *run, struct error *err)
{
    const struct plan *const plan = run->plan;
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const struct job *const job = &plan->jobs.jobs[j];
        const char *const reason = run->backend->unsupported(job);
        if (reason) return refuse_job(job, reason, err);
        if (job->outputs.layers > 0 && !run->backend->arena_on_host)
            return refuse_job(job, "kept outputs are made and taken on host devices only", err);
        const uint32_t from = plan_goes_on_from(plan, j);
        if (from != PLAN_NONE && run->options->checkpoints)
            return error_set(err, STATUS_BAD_INPUT,
                             "job '%s' goes on from job '%s' elsewhere, "
                             "and such jobs have no checkpoints (expected a run "
                             "without them)", job->name, plan->jobs.jobs[from].name);
        if (from == PLAN_NONE && job->first_minibatch > 0 && !run->options->checkpoints)
            return error_set(err, STATUS_BAD_INPUT,
                             "job '%s' begins at minibatch %" PRIu64
                             ", and there is no folder of checkpoints to continue from",
                             job->name, job->first_minibatch);
        if (run->options->checkpoints) TRY(check_flushes(job, err));
        if (run->options->checkpoints && job->parallel.storage)
            return error_set(err, STATUS_BAD_INPUT,
                             "job '%s' is parallel with states in storage, "
                             "and such jobs have no checkpoints (expected a run "
                             "without them, or no 'storage')", job->name);
        if (run->options->on_nan == RUN_NAN_SKIP && !job_clips(job))
            return error_set(err, STATUS_BAD_INPUT,
                             "job '%s' makes a part of a step before it is known whether to skip it "
                             "(expected \"clip\" in its optimizer, or another --on-nan)",
                             job->name);
        if (run->options->save_weights && job_files_declare(job, true, err) != STATUS_OK &&
            run_fail_early(run, j, err) != STATUS_OK)
            return err->status;
    }
    return STATUS_OK;
}

enum status run_check_weights(struct run *run, struct error *err)
{
    const struct plan *const plan = run->plan;
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const struct job *const job = &plan->jobs.jobs[j];
        const uint32_t first = plan->job_first_shard[j], count = plan_job_shards(plan, j);
        const bool resumed = job->first_minibatch > 0 && !job->network.trained;
        if (resumed || run_ranks_awaits_states(run, j)) continue;
        enum status status = job->weights_in ? weights_check(job, &run->state_tables[first], count, err) : STATUS_OK;
        if (status == STATUS_OK && job->adapter.from && job->first_minibatch == 0)
            status = adapter_check(job, &run->state_tables[first], count, err);
        if (status != STATUS_OK && run_fail_early(run, j, err) != STATUS_OK)
            return err->status;
    }
    return STATUS_OK;
}

enum status run_check_memory(const struct run *run, struct error *err)
{
    const struct plan *const plan = run->plan;
    uint64_t arenas = 0, needed = run->host_bytes;
    for (uint32_t d = 0; d < plan->hardware.device_count && run->backend->arena_on_host; d++) {
        const uint64_t bytes = run_has_device(run, d) ? plan_device_bytes(plan, d) : 0;
        if (!size_add(arenas, bytes, &arenas) || !size_add(needed, bytes, &needed))
            return error_memory(err, "the arenas", UINT64_MAX);
    }
    const uint64_t available = host_memory_available(), aside = run_storage_bytes_aside(run);
    if (!size_add(needed, aside, &needed)) return error_memory(err, "states in memory", aside);
    if (needed <= available) return STATUS_OK;
    char text[4][QUANTITY_TEXT_BYTES];
    if (!run->backend->arena_on_host)
        return error_set(err, STATUS_NO_MEMORY,
                         "the run needs %s of host memory (%" PRIu64 " bytes), but only %s (%" PRIu64
                         " bytes) are available",
                         quantity_text((double)needed, DIMENSION_BYTES, text[0]), needed,
                         quantity_text((double)available, DIMENSION_BYTES, text[1]), available);
    return error_set(err, STATUS_NO_MEMORY,
                     "the run needs %s of host memory (%" PRIu64 " bytes: host buffers %s, arenas of "
                     "%" PRIu32 " devices %s), but only %s (%" PRIu64 " bytes) are available",
                     quantity_text((double)needed, DIMENSION_BYTES, text[0]), needed,
                     quantity_text((double)run->host_bytes, DIMENSION_BYTES, text[1]),
                     plan->hardware.device_count,
                     quantity_text((double)arenas, DIMENSION_BYTES, text[2]),
                     quantity_text((double)available, DIMENSION_BYTES, text[3]), available);
}

enum status run_check(const struct plan *plan, const struct run_options *options, bool *elsewhere, struct error *err)
{
    struct run_result result = {0};
    struct run run = {.plan = plan, .options = options, .result = &result, .lock = PTHREAD_MUTEX_INITIALIZER};
    *elsewhere = false;
    enum status status = run_check_plan(plan, 1, err);
    if (status == STATUS_OK) {
        status = run_check_machine(&run, err);
        *elsewhere = status != STATUS_OK;
    }
    if (status == STATUS_OK) status = run_prepare(&run, err);
    if (status == STATUS_OK) status = run_open_inputs(&run, err);
    run_teardown(&run);
    pthread_mutex_destroy(&run.lock);
    run_result_release(&result);
    return status;
}
