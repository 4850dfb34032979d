/*
 * A stream's room:
 *
 *     all-reduce       [ values, then the sums   ]
 *     reduce-scatter   [ whole values            | the member's share of the sums, without gaps ]
 *     all-gather       [ the member's share, without gaps ]
 */
#include "exec/group/run_staged.h"

#include "base/extreme.h"
#include "base/size.h"
#include "base/try.h"
#include "exec/group/run_library.h"
#include "planner/plan_gang.h"

enum { ROOM_ALIGNMENT = 4096 };

/* --- layout ----------------------------------------------------------------------------------- */

/* Returns room for any collective of the job; whole values and a share of them are never larger. */
static uint64_t job_room(const struct run *run, uint32_t job)
{
    const struct job *const about = &run->plan->jobs.jobs[job];
    uint64_t most = job_clips(about) ? memory_norm_bytes(&about->network) : 0;
    for (uint32_t s = run->plan->job_first_shard[job]; s < run->plan->job_first_shard[job + 1]; s++) {
        const struct chunk_tables *const tables = &run->chunks[s];
        const uint64_t gradient = size_align(max_u64(tables->memory.gradient_bytes,
                                                     tables->memory.whole_gradient_bytes),
                                             ROOM_ALIGNMENT);
        most = max_u64(most, tables->shares ? 2 * gradient : gradient);
        most = max_u64(most, tables->state.layout.parts[STATE_WEIGHTS].bytes);
    }
    return size_align(most, ROOM_ALIGNMENT);
}

/* Returns room for the exchanges during passes of a tensor group: sums over all rows of a microbatch, of its width or
 * of the loss's numbers for each row. */
static uint64_t group_room(const struct job *job)
{
    const uint64_t rows = job->microbatch * network_tokens(&job->network, job->sequence);
    const uint64_t bytes = rows * max_u64(job->network.width, 2) * sizeof(float);
    return size_align(max_u64(bytes, job_clips(job) ? memory_norm_bytes(&job->network) : 0), ROOM_ALIGNMENT);
}

static void note_room(const struct run *run, const struct plan_task *task, uint32_t kind, uint64_t bytes,
                      uint64_t *rooms)
{
    for (uint32_t m = 0; m < plan_task_members(run->plan, task); m++) {
        uint64_t *const room = &rooms[plan_stream(run->plan, plan_task_device(run->plan, task, m), kind)];
        *room = max_u64(*room, bytes);
    }
}

/* Notes the room that each stream needs. */
static void find_rooms(const struct run *run, uint64_t *rooms)
{
    const struct plan *const plan = run->plan;
    for (uint32_t i = 0; i < plan->task_count; i++) {
        const struct plan_task *const task = &plan->tasks[i];
        const struct plan_unit *const unit = &plan->units[task->unit];
        for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++) {
            const bool stages = plan->ops[o].kind == OP_COLLECTIVE &&
                                !run_library_takes(run, task->gang, unit, &plan->ops[o]);
            if (stages) note_room(run, task, plan->ops[o].stream, job_room(run, unit->job), rooms);
        }
        const struct job *const job = &plan->jobs.jobs[unit->job];
        if (job->parallel.tensor > 1) note_room(run, task, STREAM_COMPUTE, group_room(job), rooms);
    }
}

enum status run_staged_lay_out(struct run *run, struct error *err)
{
    const uint32_t streams = plan_stream_count(run->plan);
    uint64_t *rooms;
    if (run->backend->arena_on_host || run->plan->gang_count == 0) return STATUS_OK;
    TRY(ARENA_NEW(&run->arena, streams, run->staged_offset, err));
    TRY(ARENA_NEW(&run->arena, streams, rooms, err));
    find_rooms(run, rooms);
    for (uint32_t s = 0; s < streams; s++) {
        run->staged_offset[s] = run->host_bytes;
        if (!size_add(run->host_bytes, rooms[s], &run->host_bytes))
            return error_memory(err, "the host buffers", UINT64_MAX);
    }
    return STATUS_OK;
}

char *run_staged_of(const struct run *run, uint32_t stream)
{
    return run->staged_offset ? run->host + run->staged_offset[stream] : NULL;
}

void run_staged_give_rooms(struct run *run)
{
    const struct plan *const plan = run->plan;
    for (uint32_t i = 0; run->staged_offset && i < plan->task_count; i++) {
        const struct plan_task *const task = &plan->tasks[i];
        const struct plan_unit *const unit = &plan->units[task->unit];
        if (task->gang == PLAN_NONE) continue;
        struct unit_split *const splits = run->splits[plan->job_first_shard[unit->job] + unit->shard];
        for (uint32_t m = 0; splits && m < plan_task_members(plan, task); m++)
            splits[plan_gang_first_rank(plan, task) + m].room =
                run_staged_of(run, plan_stream(plan, plan_task_device(plan, task, m), STREAM_COMPUTE));
    }
}

/* --- copies ----------------------------------------------------------------------------------- */

/* Puts the ranges of the share one after the other. */
static void pack(struct run_collective_data *data)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < data->range_count; i++) {
        data->ranges[i].share = bytes;
        bytes += data->ranges[i].bytes;
    }
}

void run_staged_bring(struct device_stream *stream, uint32_t kind, uint64_t size, struct run_collective_data *data,
                      char *room)
{
    const struct run_collective_data on_device = *data;
    const uint64_t bytes = data->count * size;
    data->from = room;
    if (kind == COLLECTIVE_ALL_GATHER) {
        pack(data);
        for (uint32_t i = 0; i < data->range_count; i++)
            device_move(stream, room + data->ranges[i].share, on_device.from + on_device.ranges[i].share,
                        data->ranges[i].bytes);
        return;
    }
    device_move(stream, room, on_device.from, bytes);
    data->to = room;
    if (kind != COLLECTIVE_REDUCE_SCATTER) return;
    data->to = room + size_align(bytes, ROOM_ALIGNMENT);
    pack(data);
    for (uint32_t i = 0; data->adds && i < data->range_count; i++)
        device_move(stream, data->to + data->ranges[i].share, on_device.to + on_device.ranges[i].share,
                    data->ranges[i].bytes);
}

void run_staged_return(struct device_stream *stream, uint32_t kind, uint64_t size,
                       const struct run_collective_data *data, const struct run_collective_data *on_device)
{
    if (kind == COLLECTIVE_ALL_GATHER) return;
    if (kind != COLLECTIVE_REDUCE_SCATTER) {
        device_move(stream, on_device->to, data->to, data->count * size);
        return;
    }
    for (uint32_t i = 0; i < data->range_count; i++)
        device_move(stream, on_device->to + on_device->ranges[i].share, data->to + data->ranges[i].share,
                    data->ranges[i].bytes);
}
