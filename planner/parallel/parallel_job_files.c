/* Parallel jobs that are in their files before and after they run. */
#include "planner/parallel/parallel_job_units.h"

#include "base/size.h"
#include "planner/parallel/parallel_job_gang.h"

enum status parallel_job_files_begin(const struct parallel_job *all, uint32_t count, struct plan *plan,
                                     struct error *err)
{
    bool may = hardware_host_count(&plan->hardware) == 1; /* the states of all ranks are in one range */
    for (uint32_t j = 0; j < count; j++) may = may && all[j].carried_out && !all[j].parallel->storage;
    return may ? ARENA_NEW(&plan->arena, count, plan->host_ranges, err) : STATUS_OK;
}

static void emit_chunk(struct parallel_job *s, uint32_t r, bool open)
{
    const enum plan_pass pass = open ? PLAN_OPEN : PLAN_CLOSE;
    struct gang_unit u = gang_begin(s, r, pass, false);
    struct gang_accesses a = {0};
    gang_access(&a, gang_state_on_host(&u), open ? ACCESS_WRITE : ACCESS_READ);
    if (!open && s->job->keep_best) gang_access(&a, gang_best_on_host(&u), ACCESS_READ);
    gang_host_stream(&u, STREAM_FILE, pass, &a);
    gang_end(&u);
}

void parallel_job_files_emit(struct parallel_job *all, uint32_t count, bool open)
{
    for (uint32_t j = 0; j < count && all[j].plan->host_ranges; j++)
        for (uint32_t r = 0; r < all[j].chunks; r++) emit_chunk(&all[j], r, open);
}

void parallel_job_files_end(struct plan *plan)
{
    uint64_t end = 0;
    for (uint32_t b = 0; b < plan->buffer_count && plan->host_ranges; b++) {
        const struct plan_buffer *buffer = &plan->buffers[b];
        if (buffer->on_device) continue;
        plan->host_ranges[buffer->job].bytes += size_align(buffer->bytes, PLAN_HOST_ALIGNMENT) *
                                                plan_buffer_ranks(plan, buffer);
    }
    for (uint32_t j = 0; j < plan->jobs.count && plan->host_ranges; j++) {
        plan->host_ranges[j].offset_bytes = end;
        end += plan->host_ranges[j].bytes;
    }
}
