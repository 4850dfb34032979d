#include "exec/state/run_base.h"

#include <assert.h>
#include <string.h>

#include "base/try.h"
#include "exec/state/run_faults.h"
#include "models/jobs/job_base.h"

/* Sets where the shards of a job find the base's buffer, which is the owner's. */
static void place(struct run *run, uint32_t buffer, uint32_t job)
{
    const struct plan_buffer *const b = &run->plan->buffers[buffer];
    const uint32_t s = run->plan->job_first_shard[job] + b->shard;
    struct state_layout *const layout = &run->whole_tables[s].layout;
    const char *const base = run_host_buffer(run, buffer), *const state = (const char *)run->states[s];
    assert(base >= state);
    layout->parts[STATE_FROZEN].offset_bytes = (uint64_t)(base - state);
    layout->parts[STATE_FROZEN].bytes = b->bytes;
}

enum status run_base_create(struct run *run, struct error *err)
{
    const struct plan *const plan = run->plan;
    TRY(ARENA_NEW(&run->arena, plan->shard_count, run->whole_tables, err));
    memcpy(run->whole_tables, run->state_tables, plan->shard_count * sizeof *run->whole_tables);
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        const struct plan_buffer *const buffer = &plan->buffers[b];
        if (buffer->kind != BUFFER_BASE || buffer->on_device) continue;
        for (uint32_t j = buffer->job; j < plan->jobs.count; j++)
            if (job_base_owner(&plan->jobs, j) == buffer->job) place(run, b, j);
    }
    return STATUS_OK;
}

uint32_t run_base_filler(struct run *run, uint32_t job)
{
    const struct job_set *const jobs = &run->plan->jobs;
    if (!jobs->jobs[job].shares_base) return job;
    for (uint32_t j = job_base_owner(jobs, job); j < jobs->count; j++)
        if (job_base_owner(jobs, j) == job_base_owner(jobs, job) && !run_job_failed(run, j)) return j;
    return PLAN_NONE;
}

bool run_base_fills(struct run *run, uint32_t job)
{
    return run_base_filler(run, job) == job;
}
