/*
 * A walk's tables, made once and cleared for another walk.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "planner/plan_gang.h"
#include "planner/walk/plan_walk_state.h"

/* Returns the buffer's shard, numbered over all jobs; a number after these for buffers of no shard. */
static uint32_t shard_of(const struct plan *plan, const struct plan_buffer *buffer)
{
    if (buffer->shard == PLAN_NONE) return plan->shard_count;
    uint32_t shard = plan->job_first_shard[buffer->job] + buffer->shard;
    return shard < plan->shard_count ? shard : plan->shard_count;
}

static bool number_device_buffers(struct plan_walk *w)
{
    const struct plan *plan = w->plan;
    uint32_t *next = alloc_zeroed((size_t)plan->shard_count + 2, sizeof *next); /* by shard: its next number */
    if (!next) return false;
    for (uint32_t b = 0; b < plan->buffer_count; b++)
        if (plan->buffers[b].on_device) next[shard_of(plan, &plan->buffers[b]) + 1]++;
    for (uint32_t s = 0; s <= plan->shard_count; s++) next[s + 1] += next[s];
    w->device_buffer_count = next[plan->shard_count + 1];
    for (uint32_t b = 0; b < plan->buffer_count; b++)
        if (plan->buffers[b].on_device) w->place_of[b] = next[shard_of(plan, &plan->buffers[b])]++ | WALK_ON_DEVICE;
    free(next);
    return true;
}

static void number_places(struct plan_walk *w)
{
    bool staged = false; /* by ranks of gangs */
    for (uint32_t b = 0; b < w->plan->buffer_count; b++) {
        const struct plan_buffer *buffer = &w->plan->buffers[b];
        if (!buffer->on_device) w->place_of[b] = w->host_count;
        if (!buffer->on_device) w->host_count += plan_buffer_ranks(w->plan, buffer);
        if (buffer->kind == BUFFER_STAGED) w->place_of[b] |= WALK_STAGED;
        if (!buffer->on_device && plan_buffer_is_shared(&w->plan->jobs.jobs[buffer->job], buffer))
            w->place_of[b] |= WALK_SHARED;
        staged |= buffer->kind == BUFFER_STAGED && parallel_is_set(&w->plan->jobs.jobs[buffer->job].parallel);
    }
    w->arenas = w->plan->hardware.device_count * (staged ? 2 : 1) + hardware_host_count(&w->plan->hardware);
}

/* Adds a group's members that no earlier device stands for; none if an earlier group stands for the first member,
 * because it does the same. `seen`: per device, it stands for a member of an earlier group. */
static void add_group(struct plan_walk *w, const struct plan_gang *gang, uint32_t group, const uint32_t *places,
                      uint32_t size, bool *seen, struct walk_members *out)
{
    const uint32_t *devices = w->plan->gang_devices + gang->first;
    uint32_t begun = out->count;
    if (seen[walk_device_for(w, devices[places[0]])]) return;
    for (uint32_t i = 0; i < size; i++) {
        uint32_t device = walk_device_for(w, devices[places[i]]);
        bool *before = &seen[device];
        if (*before) continue;
        *before = true;
        out->of[out->count] = (struct walk_member){.place = places[i], .device = device, .group = group,
                                                   .join_at = out->count - begun};
        out->count++;
    }
    for (uint32_t k = begun; k < out->count; k++) out->of[k].join_count = out->count - begun;
}

static bool list_gang(struct plan_walk *w, uint32_t index, uint32_t axes, uint32_t *places, bool *seen)
{
    const struct plan_gang *gang = &w->plan->gangs[index];
    uint32_t size = plan_gang_size(gang), joined = plan_gang_group_size(gang, axes);
    struct walk_members *members = &w->members[index * WALK_AXES_SETS + axes];
    members->of = alloc_zeroed(size, sizeof *members->of);
    if (!members->of) return false;
    plan_gang_order(gang, axes, places);
    for (uint32_t i = 0; i < size; i += joined) add_group(w, gang, i / joined, places + i, joined, seen, members);
    for (uint32_t i = 0; i < size; i++) seen[walk_device_for(w, w->plan->gang_devices[gang->first + i])] = false;
    return true;
}

static bool list_members(struct plan_walk *w)
{
    const struct plan *plan = w->plan;
    bool complete = true;
    if (plan->gang_count == 0) return true;
    w->members = alloc_zeroed((size_t)plan->gang_count * WALK_AXES_SETS, sizeof *w->members);
    uint32_t *places = alloc_zeroed(plan->hardware.device_count, sizeof *places);
    bool *seen = alloc_zeroed(plan->hardware.device_count, sizeof *seen);
    for (uint32_t g = 0; g < plan->gang_count; g++)
        for (uint32_t axes = 0; axes < WALK_AXES_SETS; axes++)
            complete = complete && w->members && places && seen && list_gang(w, g, axes, places, seen);
    free(places);
    free(seen);
    return complete;
}

static uint32_t largest_access_count(const struct plan *plan)
{
    uint32_t largest = 0;
    for (uint32_t o = 0; o < plan->op_count; o++)
        if (plan->ops[o].access_count > largest) largest = plan->ops[o].access_count;
    return largest;
}

static void sum_operations(struct plan_walk *w)
{
    const struct plan *plan = w->plan;
    for (uint32_t i = 0; i < plan->task_count; i++)
        w->ops_before[i + 1] = w->ops_before[i] + plan->units[plan->tasks[i].unit].op_count;
    uint64_t position = 0, number = 0;
    for (uint32_t s = 0; s < plan->segment_count; s++) {
        const struct plan_segment *segment = &plan->segments[s];
        w->segment_positions[s] = position;
        w->segment_numbers[s] = number;
        position += (uint64_t)segment->task_count * segment->repeat_count;
        number += walk_segment_ops(w, s) * segment->repeat_count;
    }
}

static bool allocate(struct plan_walk *w)
{
    const struct plan *plan = w->plan;
    uint32_t streams = plan_stream_count(plan);
    w->place_of = alloc_zeroed(plan->buffer_count, sizeof *w->place_of);
    if (!w->place_of) return false;
    number_places(w);
    if (!number_device_buffers(w)) return false;
    if (!list_members(w)) return false;
    w->minibatches = alloc_zeroed(plan->jobs.count, sizeof *w->minibatches);
    w->hosts = alloc_zeroed(w->host_count, sizeof *w->hosts);
    size_t cells = (size_t)w->device_buffer_count * plan->hardware.device_count;
    w->cells = alloc_zeroed(cells, sizeof *w->cells);
    w->freed = alloc_zeroed(w->arenas, sizeof *w->freed);
    w->waits = alloc_zeroed(streams, sizeof *w->waits);
    w->wait_stream = alloc_zeroed(streams, sizeof *w->wait_stream);
    w->wait_at = alloc_zeroed(streams, sizeof *w->wait_at);
    w->uses = alloc_zeroed(largest_access_count(plan), sizeof *w->uses);
    w->held_out = alloc_zeroed(plan->jobs.count, sizeof *w->held_out);
    if (!w->minibatches || !w->held_out || !w->hosts || !w->cells || !w->freed ||
        !w->waits || !w->wait_stream || !w->wait_at || !w->uses)
        return false;
    if (plan->reservation_count > 0 && !(w->reservations = reservation_ends_create(plan))) return false;
    if (plan->host_ranges && !(w->ranges = range_users_create(plan))) return false;
    if (plan->after_count == 0) return true;
    w->ops_before = alloc_zeroed((size_t)plan->task_count + 1, sizeof *w->ops_before);
    w->segment_positions = alloc_zeroed(plan->segment_count, sizeof *w->segment_positions);
    w->segment_numbers = alloc_zeroed(plan->segment_count, sizeof *w->segment_numbers);
    if (!w->ops_before || !w->segment_positions || !w->segment_numbers) return false;
    sum_operations(w);
    return true;
}

enum status plan_walk_create(const struct plan *plan, const uint32_t *stands_for, struct plan_walk **out,
                             struct error *err)
{
    struct plan_walk *walk = alloc_zeroed(1, sizeof *walk);
    if (!walk) return error_memory(err, "walking a plan", sizeof *walk);
    walk->plan = plan;
    walk->stands_for = stands_for;
    walk->local_count = plan_device_streams(plan);
    if (!allocate(walk)) {
        plan_walk_destroy(walk);
        return error_set(err, STATUS_NO_MEMORY, "no memory for walking a plan of %u buffers",
                         plan->buffer_count);
    }
    plan_walk_rewind(walk);
    *out = walk;
    return STATUS_OK;
}

enum status plan_walk_create_open(const struct plan *plan, struct plan_walk **out, struct error *err)
{
    assert(plan_is_open(plan));
    enum status status = plan_walk_create(plan, NULL, out, err);
    if (status == STATUS_OK) (*out)->open = true;
    return status;
}

void plan_walk_destroy(struct plan_walk *walk)
{
    if (!walk) return;
    for (uint32_t a = 0; walk->freed && a < walk->arenas; a++) plan_freed_release(&walk->freed[a]);
    for (size_t m = 0; walk->members && m < (size_t)walk->plan->gang_count * WALK_AXES_SETS; m++)
        free(walk->members[m].of);
    free(walk->members);
    reservation_ends_destroy(walk->reservations);
    range_users_destroy(walk->ranges);
    free(walk->minibatches);
    free(walk->held_out);
    free(walk->place_of);
    free(walk->hosts);
    free(walk->cells);
    free(walk->lives);
    free(walk->freed);
    free(walk->readers);
    free(walk->ops_before);
    free(walk->segment_positions);
    free(walk->segment_numbers);
    free(walk->waits);
    free(walk->wait_stream);
    free(walk->wait_at);
    free(walk->uses);
    free(walk);
}

/* Only cells of live records are cleared, because most of many are untouched. Released records' cells are 0, or belong
 * to a live record. */
void plan_walk_rewind(struct plan_walk *walk)
{
    const struct plan *plan = walk->plan;
    for (uint32_t i = 0; i < walk->live_count; i++) walk->cells[walk->lives[i].cell].live = 0;
    walk->live_count = 0;
    walk->live_free = PLAN_NONE;
    walk->reader_count = 0;
    walk->reader_free = PLAN_NONE;
    memset(walk->hosts, 0, walk->host_count * sizeof *walk->hosts);
    for (uint32_t h = 0; h < walk->host_count; h++) walk->hosts[h].more = PLAN_NONE;
    for (uint32_t a = 0; a < walk->arenas; a++) plan_freed_clear(&walk->freed[a]);
    memset(walk->minibatches, 0, plan->jobs.count * sizeof *walk->minibatches);
    memset(walk->held_out, 0, plan->jobs.count * sizeof *walk->held_out);
    if (walk->reservations) reservation_ends_clear(walk->reservations);
    if (walk->ranges) range_users_clear(walk->ranges);
    walk->at = (struct walk_cursor){0};
    walk->pushed = NULL;
    if (walk->skipped && walk->ops_before) sum_operations(walk);
    walk->skipped = false;
    walk->failed = false;
}
