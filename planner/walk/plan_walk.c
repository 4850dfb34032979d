/*
 * Rule 2 of plan.h, computed while walking.
 *
 * Two observations reduce the rule to a few numbers per buffer:
 *
 *     - A stream is in order. Only the latest operation on each stream matters among those to wait for: its
 *       predecessors have ended by then. Operations of the own stream need not be named at all.
 *     - Waiting is transitive. Every reader waited for the last writer, so a writer that waits for the readers
 *       does not name the writer. Every user of a lifetime waited for the acquire, which waited for the earlier
 *       lifetimes of its range, so only the latest lifetime of each byte counts.
 *
 * Only its device's streams touch a device buffer, except a P2P copy that fetches it, which ends its life. While it
 * lives its record is
 *
 *     writer, its stream; the latest reader since, per stream [compute, h2d, d2h, p2p]; the slot
 *
 * and when it is released, its readers (or else its writer) become the *freed* range of its slot. Each device has a
 * sorted list of disjoint freed ranges, painted over by later releases.
 *
 *     release [0, 40)      by 7 (compute)              [0, 40) 7
 *     release [40, 100)    by 9 (d2h)                  [0, 40) 7   [40, 100) 9
 *     acquire [20, 60)     at 12, on h2d: waits for 7 and 9
 *     release [20, 60)     by 13 (compute)             [0, 20) 7   [20, 60) 13   [60, 100) 9
 *
 * A release removes the ranges that its acquire looked through, so the list is as short as for neighbouring buffers.
 * Lists per slot of overlapping slots would grow with the square of the slots when jobs of different shapes share a
 * device.
 *
 * Copies to any device read host buffers; two readers are in the record and the rest in chained pool nodes. Stored
 * states are tracked in the same way, and staged buffers while they live, with lists of freed ranges per host, after
 * the devices' lists. Each rank of a gang has its own record of such a buffer, and its own list per device, after the
 * hosts'.
 *
 * A gang's devices follow each other in each operation. The list of devices that do an operation is made once per gang
 * and set of axes, without represented devices.
 *
 * planner/walk/plan_walk_reservation.h knows the last operations of earlier reservations;
 * planner/walk/plan_walk_range.h what jobs with ranges of host memory wait for.
 *
 * "after" names an operation by tasks back, in plans without gangs. Its number comes from prefix sums, and from a
 * binary search over segments if it is before the current one.
 *
 * Device buffers are numbered shard by shard: a shard's are on few devices, so a device's are near each other in its
 * row of these tables, which have millions of cells in a plan for thousands of devices, hardly any ever touched.
 *
 * Cost: some 620 instructions per operation if nearly each acquires and releases (a spilled plan; callgrind), 60 to 130
 * ns. Memory: two words per device and device buffer, touched only where used, and a record per live buffer.
 */
#include "planner/walk/plan_walk_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/order.h"
#include "planner/plan_gang.h"

enum { SORT_SIMPLY_MAX = 16 };

/* --- waits ---------------------------------------------------------------------------------- */

/* Waits for `time`, number + 1 (0: none), on a stream of the operation's device. Branch-free, because nearly all waits
 * come here, unpredictably. */
static inline void wait_locally(struct plan_walk *w, uint32_t kind, uint64_t time)
{
    w->latest[kind] = w->latest[kind] > time ? w->latest[kind] : time;
}

/* The same for any stream. */
static void wait_for(struct plan_walk *w, uint32_t stream, uint64_t time)
{
    if (time == 0) return;
    if (stream - w->first_stream < w->local_count) {
        wait_locally(w, stream - w->first_stream, time);
        return;
    }
    if (stream == w->stream) return;
    uint64_t number = time - 1;
    uint32_t at = w->wait_at[stream];
    if (at < w->wait_count && w->wait_stream[at] == stream) {
        if (w->waits[at] < number) w->waits[at] = number;
        return;
    }
    w->waits[w->wait_count] = number;
    w->wait_stream[w->wait_count] = stream;
    w->wait_at[stream] = w->wait_count++;
}

static void begin_waits(struct plan_walk *w, uint32_t device, uint32_t kind)
{
    w->first_stream = device * w->local_count;
    w->stream = kind < STREAM_HOST ? w->first_stream + kind : plan_stream(w->plan, device, kind);
    w->wait_count = 0;
    memset(w->latest, 0, sizeof w->latest);
}

/* Leaves out the own stream and sorts the rest. */
static void end_waits(struct plan_walk *w)
{
    for (uint32_t k = 0; k < PLAN_LOCAL_STREAMS; k++)
        if (w->latest[k] != 0 && w->first_stream + k != w->stream)
            w->waits[w->wait_count++] = w->latest[k] - 1;
    if (w->wait_count > SORT_SIMPLY_MAX) {
        qsort(w->waits, w->wait_count, sizeof *w->waits, order_u64);
        return;
    }
    for (uint32_t i = 1; i < w->wait_count; i++) {
        uint64_t number = w->waits[i];
        uint32_t at = i;
        for (; at > 0 && w->waits[at - 1] > number; at--) w->waits[at] = w->waits[at - 1];
        w->waits[at] = number;
    }
}

/* --- host buffers --------------------------------------------------------------------------- */

/* Returns the reader's entry for `stream`, made if needed; NULL without memory. */
static struct walk_host_reader *host_reader_for(struct plan_walk *w, struct walk_host_buffer *host,
                                                uint32_t stream)
{
    for (uint32_t i = 0; i < host->reader_count; i++)
        if (host->readers[i].stream == stream) return &host->readers[i];
    if (host->reader_count < WALK_HOST_READERS_INLINE) {
        struct walk_host_reader *reader = &host->readers[host->reader_count++];
        reader->stream = stream;
        return reader;
    }
    for (uint32_t i = host->more; i != PLAN_NONE; i = w->readers[i].next)
        if (w->readers[i].stream == stream) return &w->readers[i];

    uint32_t index = w->reader_free;
    if (index != PLAN_NONE) {
        w->reader_free = w->readers[index].next;
    } else {
        if (w->reader_count == w->reader_capacity) {
            uint32_t capacity = w->reader_capacity > 0 ? w->reader_capacity * 2 : 64;
            void *larger = alloc_resize(w->readers, capacity * sizeof *w->readers);
            if (!larger) return NULL;
            w->readers = larger;
            w->reader_capacity = capacity;
        }
        index = w->reader_count++;
    }
    w->readers[index] = (struct walk_host_reader){.stream = stream, .next = host->more};
    host->more = index;
    return &w->readers[index];
}

static void host_forget_readers(struct plan_walk *w, struct walk_host_buffer *host)
{
    host->reader_count = 0;
    while (host->more != PLAN_NONE) {
        uint32_t index = host->more;
        host->more = w->readers[index].next;
        w->readers[index].next = w->reader_free;
        w->reader_free = index;
    }
}

static void use_host_buffer(struct plan_walk *w, struct walk_host_buffer *host, uint32_t flags)
{
    uint64_t now = w->at.number + 1;
    if (!(flags & ACCESS_WRITE)) {
        wait_for(w, host->writer_stream, host->writer);
        struct walk_host_reader *reader = host_reader_for(w, host, w->stream);
        if (reader)
            reader->number = now;
        else
            w->failed = true;
        return;
    }
    if (host->reader_count == 0) wait_for(w, host->writer_stream, host->writer);
    for (uint32_t i = 0; i < host->reader_count; i++)
        wait_for(w, host->readers[i].stream, host->readers[i].number);
    for (uint32_t i = host->more; i != PLAN_NONE; i = w->readers[i].next)
        wait_for(w, w->readers[i].stream, w->readers[i].number);
    host_forget_readers(w, host);
    host->writer = now;
    host->writer_stream = w->stream;
}

/* --- staged buffers ------------------------------------------------------------------------- */

/* Fills in slot and address of `use`. */
static void use_staged_buffer(struct plan_walk *w, struct plan_place_use *use,
                              struct walk_host_buffer *host, const uint32_t *layout)
{
    if (use->flags & ACCESS_ACQUIRE) {
        host->slot = layout[w->at.acquire + w->acquired++];
        const struct plan_slot *slot = &w->plan->slots[host->slot];
        uint32_t row = w->staged_row;
        const struct plan_freed_list *list = &w->freed[row];
        uint64_t end = slot->offset_bytes + slot->bytes;
        uint32_t i = plan_freed_find(list, slot->offset_bytes, &host->hint);
        for (; i < list->count && list->ranges[i].first < end; i++) {
            const uint64_t *users = list->users[list->ranges[i].users].users;
            wait_for(w, (uint32_t)users[WALK_RELEASED_ON], users[WALK_RELEASED_BY]);
        }
    }
    use->slot = host->slot;
    use->address += w->plan->slots[host->slot].offset_bytes;
    use_host_buffer(w, host, use->flags);
}

static void release_staged_buffer(struct plan_walk *w, struct walk_host_buffer *host)
{
    const struct plan_slot *slot = &w->plan->slots[host->slot];
    uint32_t row = w->staged_row;
    uint64_t first = slot->offset_bytes, end = first + slot->bytes;
    struct plan_freed_users users = {.users = {[WALK_RELEASED_BY] = w->at.number + 1, [WALK_RELEASED_ON] = w->stream}};
    if (!plan_freed_paint(&w->freed[row], first, end, &users, &host->hint)) w->failed = true;
    host_forget_readers(w, host);
    host->writer = 0;
}

/* --- device buffers ------------------------------------------------------------------------- */

static void wait_for_freed(struct plan_walk *w, const struct plan_freed_list *list, uint64_t first,
                           uint64_t end, uint32_t *hint)
{
    for (uint32_t i = plan_freed_find(list, first, hint); i < list->count; i++) {
        if (list->ranges[i].first >= end) return;
        const struct plan_freed_users *by = &list->users[list->ranges[i].users];
        for (uint32_t k = 0; k < PLAN_LOCAL_STREAMS; k++) wait_locally(w, k, by->users[k]);
        wait_for(w, by->fetched_on, by->fetched);
    }
}

/* Returns a blank record; PLAN_NONE without memory. */
static uint32_t live_take(struct plan_walk *w)
{
    uint32_t index = w->live_free;
    if (index != PLAN_NONE) {
        w->live_free = w->lives[index].next_free;
    } else {
        if (w->live_count == w->live_capacity) {
            uint32_t capacity = w->live_capacity > 0 ? w->live_capacity * 2 : 64;
            void *larger = alloc_resize(w->lives, capacity * sizeof *w->lives);
            if (!larger) return PLAN_NONE;
            w->lives = larger;
            w->live_capacity = capacity;
        }
        index = w->live_count++;
    }
    w->lives[index] = (struct walk_live){0};
    return index;
}

static void use_live(struct plan_walk *w, struct walk_live *live, uint32_t flags, uint32_t kind)
{
    uint64_t now = w->at.number + 1;
    if (!(flags & ACCESS_WRITE)) {
        wait_locally(w, live->writer_kind, live->writer);
        live->readers[kind] = now;
        return;
    }
    uint64_t any_reader = 0;
    for (uint32_t k = 0; k < PLAN_LOCAL_STREAMS; k++) {
        any_reader |= live->readers[k];
        wait_locally(w, k, live->readers[k]);
        live->readers[k] = 0;
    }
    wait_locally(w, live->writer_kind, any_reader == 0 ? live->writer : 0);
    live->writer = now;
    live->writer_kind = kind;
}

static uint64_t cell_of(const struct plan_walk *w, uint32_t index, uint32_t device)
{
    return (uint64_t)device * w->device_buffer_count + index;
}

/* Fills in slot and address of `use`. */
static void use_device_buffer(struct plan_walk *w, struct plan_place_use *use, uint32_t index,
                              uint32_t device, uint32_t kind, const uint32_t *layout)
{
    uint64_t at = cell_of(w, index, device);
    struct walk_cell *cell = &w->cells[at];
    assert(kind < PLAN_LOCAL_STREAMS);
    if (use->flags & ACCESS_ACQUIRE) {
        uint32_t taken = live_take(w);
        if (taken == PLAN_NONE) {
            w->failed = true;
            return;
        }
        assert(cell->live == 0);
        cell->live = taken + 1;
        w->lives[taken].cell = at;
        w->lives[taken].slot = layout[w->at.acquire + w->acquired++];
        const struct plan_slot *slot = &w->plan->slots[w->lives[taken].slot];
        wait_for_freed(w, &w->freed[device], slot->offset_bytes,
                       slot->offset_bytes + slot->bytes, &cell->hint);
    }
    assert(cell->live != 0);
    struct walk_live *live = &w->lives[cell->live - 1];
    use->slot = live->slot;
    use->life = cell->live - 1;
    use->address += w->plan->slots[live->slot].offset_bytes;
    use_live(w, live, use->flags, kind);
}

/* Fetches the source of a P2P copy: the buffer's life on `peer` ends after it. */
static void fetch_from_peer(struct plan_walk *w, struct plan_place_use *use, uint32_t index,
                            uint32_t peer)
{
    const struct walk_cell *cell = &w->cells[cell_of(w, index, peer)];
    assert(cell->live != 0);
    const struct walk_live *live = &w->lives[cell->live - 1];
    uint32_t first_stream = peer * w->local_count;
    use->slot = live->slot;
    use->life = cell->live - 1;
    use->address += w->plan->slots[live->slot].offset_bytes;
    wait_for(w, first_stream + live->writer_kind, live->writer);
}

static void release_device_buffer(struct plan_walk *w, uint32_t index, uint32_t device, bool fetched)
{
    struct walk_cell *cell = &w->cells[cell_of(w, index, device)];
    uint32_t record = cell->live - 1;
    struct walk_live *live = &w->lives[record];
    const struct plan_slot *slot = &w->plan->slots[live->slot];
    uint64_t first = slot->offset_bytes, end = first + slot->bytes, any_reader = 0;
    struct plan_freed_users by = {.fetched = 0};
    for (uint32_t k = 0; k < PLAN_LOCAL_STREAMS; k++) any_reader |= by.users[k] = live->readers[k];
    if (fetched) {
        by.fetched = w->at.number + 1;
        by.fetched_on = w->stream;
    } else if (any_reader == 0) {
        by.users[live->writer_kind] = live->writer;
    }
    if (!plan_freed_paint(&w->freed[device], first, end, &by, &cell->hint)) w->failed = true;
    cell->live = 0;
    live->next_free = w->live_free;
    w->live_free = record;
}

/* --- after ---------------------------------------------------------------------------------- */

/* Returns the last segment that begins at `position` or before. */
static uint32_t find_segment(const struct plan_walk *w, uint64_t position)
{
    uint32_t low = 0, high = w->at.segment + 1;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (w->segment_positions[middle] <= position)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void wait_for_after(struct plan_walk *w, const struct plan_after *after)
{
    assert(after->tasks <= w->at.position);
    uint64_t position = w->at.position - after->tasks;
    uint32_t s = find_segment(w, position);
    const struct plan_segment *segment = &w->plan->segments[s];
    uint64_t inside = position - w->segment_positions[s];
    uint32_t index = segment->first_task + (uint32_t)(inside % segment->task_count);
    uint64_t number = w->segment_numbers[s] +
                      inside / segment->task_count * walk_segment_ops(w, s) +
                      w->ops_before[index] - w->ops_before[segment->first_task] + after->op;
    const struct plan_task *task = &w->plan->tasks[index];
    const struct plan_unit *unit = &w->plan->units[task->unit];
    assert(after->op < unit->op_count);
    assert(number < w->at.number && task->gang == PLAN_NONE);
    uint32_t kind = w->plan->ops[unit->first_op + after->op].stream;
    wait_for(w, plan_stream(w->plan, task->device, kind), number + 1);
}

/* --- reservations ---------------------------------------------------------------------------------- */

static void wait_for_reservations(struct plan_walk *w, const struct plan_unit *unit, const struct plan_op *op)
{
    const struct reservation_end *ends;
    if (plan_stream_is_host(op->stream)) return;
    uint32_t reservation = w->plan->job_reservation[unit->job];
    uint32_t count = reservation_ends_note(w->reservations, reservation, w->device, op->stream, w->at.number + 1,
                                           &ends);
    for (uint32_t i = 0; i < count; i++) wait_for(w, ends[i].stream, ends[i].time);
}

/* --- ranges of host memory ------------------------------------------------------------------- */

static void wait_for_range(struct plan_walk *w, const struct plan_unit *unit)
{
    const uint64_t *times;
    uint32_t count = range_users_note(w->ranges, unit, w->stream, w->at.number + 1, &times);
    if (count == UINT32_MAX) w->failed = true;
    for (uint32_t s = 0; !w->failed && s < count; s++) wait_for(w, s, times[s]);
}

/* --- the walk ------------------------------------------------------------------------------- */

/* Counts the acquires of an operation that was skipped. */
static uint32_t acquires(const struct plan *plan, const struct plan_op *op)
{
    uint32_t count = 0;
    for (uint32_t a = 0; a < op->access_count; a++)
        count += (plan->accesses[op->first_access + a].flags & ACCESS_ACQUIRE) != 0;
    return count;
}

static bool is_last_shard(const struct plan *plan, const struct plan_unit *unit)
{
    return plan->job_first_shard[unit->job] + unit->shard + 1 ==
           plan->job_first_shard[unit->job + 1];
}

static const struct walk_members *members_of(const struct plan_walk *w, const struct plan_task *task,
                                             const struct plan_op *op)
{
    uint32_t axes = op->kind == OP_COLLECTIVE ? op->axes : 0;
    return &w->members[(size_t)task->gang * WALK_AXES_SETS + axes];
}

uint32_t plan_walk_members(const struct plan_walk *walk, const struct plan_task *task,
                           const struct plan_op *op)
{
    if (task->gang != PLAN_NONE) return members_of(walk, task, op)->count;
    return walk_device_for(walk, task->device) == task->device;
}

uint32_t plan_walk_sole(const struct plan_walk *walk, uint32_t gang)
{
    const struct walk_members *members = &walk->members[(size_t)gang * WALK_AXES_SETS];
    return members->count == 1 ? members->of[0].device : PLAN_NONE;
}

/* An operation, and the devices of the gang that do it. */
struct plan_walk_step {
    const struct plan_task *task;
    const struct plan_unit *unit;
    const struct plan_op *op;
    const struct walk_members *members; /* NULL: one device */
};

/* Moves to the task's next operation that some device does. Returns false at the end, with the cursor at the next
 * task's first. */
static inline bool next_of_task(struct plan_walk *w, const struct plan_task *task, struct plan_walk_step *out)
{
    const struct plan *plan = w->plan;
    struct walk_cursor *at = &w->at;
    const struct plan_unit *unit = &plan->units[task->unit];
    bool single = task->gang == PLAN_NONE;
    for (; at->op < unit->op_count; at->op++, at->member = 0) {
        const struct plan_op *op = &plan->ops[unit->first_op + at->op];
        const struct walk_members *members = single ? NULL : members_of(w, task, op);
        if (at->member < (members ? members->count : walk_device_for(w, task->device) == task->device)) {
            *out = (struct plan_walk_step){task, unit, op, members};
            return true;
        }
        at->acquire += at->member > 0 ? w->acquired : acquires(plan, op);
    }
    if (unit->ends_minibatch) w->minibatches[unit->job]++;
    if (unit->pass == PLAN_EVALUATE && is_last_shard(plan, unit)) w->held_out[unit->job]++;
    at->op = 0;
    at->acquire = 0;
    at->position++;
    return false;
}

/* Returns false at the end of the plan, or of the pushed task. */
static inline bool next_step(struct plan_walk *w, struct plan_walk_step *out)
{
    const struct plan *plan = w->plan;
    struct walk_cursor *at = &w->at;
    if (w->open) {
        if (w->pushed && next_of_task(w, w->pushed, out)) return true;
        w->pushed = NULL;
        return false;
    }
    while (at->segment < plan->segment_count) {
        const struct plan_segment *segment = &plan->segments[at->segment];
        if (at->index < segment->task_count) {
            if (next_of_task(w, &plan->tasks[segment->first_task + at->index], out)) return true;
            at->index++;
        } else if (at->repeat + 1 < segment->repeat_count) {
            at->repeat++;
            at->index = 0;
        } else {
            at->segment++;
            at->repeat = 0;
            at->index = 0;
        }
    }
    return false;
}

/* Returns the operation at one of the step's devices. */
static inline struct plan_walk_member member_at(const struct plan_walk *w, const struct plan_task *task,
                                                const struct walk_members *members, uint32_t at)
{
    const struct plan *plan = w->plan;
    uint32_t peer = task->peer;
    if (!members)
        return (struct plan_walk_member){walk_device_for(w, task->device),
                                         peer == PLAN_NONE ? PLAN_NONE : walk_device_for(w, peer), 0};
    const struct walk_member *member = &members->of[at];
    if (peer != PLAN_NONE) peer = walk_device_for(w, plan->gang_devices[plan->gangs[peer].first + member->place]);
    return (struct plan_walk_member){member->device, peer, member->place};
}

struct plan_walk_member plan_walk_member(const struct plan_walk *walk, const struct plan_task *task,
                                         const struct plan_op *op, uint32_t at)
{
    return member_at(walk, task, task->gang == PLAN_NONE ? NULL : members_of(walk, task, op), at);
}

static void use_buffers(struct plan_walk *w, const struct plan_op *op,
                        const struct plan_task *task)
{
    const struct plan *plan = w->plan;
    const struct plan_access *accesses = plan->accesses + op->first_access;
    uint32_t released = 0, first, end;
    plan_gang_own_accesses(plan, task, op, w->rank, &first, &end);
    w->acquired = 0;
    w->use_count = end - first;
    for (uint32_t i = first; i < end; i++) {
        uint32_t place = w->place_of[accesses[i].buffer];
        struct plan_place_use *use = &w->uses[i - first];
        use->buffer = accesses[i].buffer;
        use->flags = accesses[i].flags;
        use->life = PLAN_NONE;
        use->address = accesses[i].offset_bytes;
        released |= use->flags & ACCESS_RELEASE;
        if (op->stream == STREAM_P2P && i == 0) {
            use->place = 1 + w->peer;
            fetch_from_peer(w, use, place & ~WALK_ON_DEVICE, w->peer);
        } else if (place & WALK_ON_DEVICE) {
            use->place = 1 + w->device;
            use_device_buffer(w, use, place & ~WALK_ON_DEVICE, w->device, op->stream,
                              plan->layouts + task->layout);
            if (w->failed) return;
        } else if (place & WALK_STAGED) {
            use->place = 0;
            use_staged_buffer(w, use, &w->hosts[(place & ~WALK_STAGED) + w->rank],
                              plan->layouts + task->layout);
        } else {
            bool stored = plan->buffers[use->buffer].kind == BUFFER_STORED;
            use->place = stored ? PLAN_NONE : 0;
            use->slot = PLAN_NONE;
            const uint32_t rank = plan_buffer_rank(plan, &plan->buffers[use->buffer], w->rank);
            use_host_buffer(w, &w->hosts[place & WALK_SHARED ? place & ~WALK_SHARED : place + rank], use->flags);
        }
    }
    /* An operation's released slots are free after it, not for its own acquires. */
    for (uint32_t i = 0; released && i < op->access_count; i++) {
        if (!(accesses[i].flags & ACCESS_RELEASE)) continue;
        uint32_t place = w->place_of[accesses[i].buffer];
        bool fetched = op->stream == STREAM_P2P && i == 0;
        if (place & WALK_STAGED)
            release_staged_buffer(w, &w->hosts[(place & ~WALK_STAGED) + w->rank]);
        else
            release_device_buffer(w, place & ~WALK_ON_DEVICE, fetched ? w->peer : w->device, fetched);
    }
}

/* Returns the units in which the last shard makes the loss of a held-out minibatch: one per microbatch of parallel
 * jobs, or per slice of its tokens. */
static uint64_t held_out_units(const struct plan *plan, uint32_t job)
{
    const struct job *of = &plan->jobs.jobs[job];
    if (!parallel_is_set(&of->parallel) || of->evaluation.every == 0) return 1;
    return of->microbatches / of->parallel.data * parallel_slices(&of->parallel);
}

bool plan_walk_next(struct plan_walk *walk, struct plan_walk_op *out)
{
    const struct plan *plan = walk->plan;
    struct plan_walk_step step;
    if (walk->failed || !next_step(walk, &step)) return false;
    const struct plan_task *task = step.task;
    const struct plan_unit *unit = step.unit;
    const struct plan_op *op = step.op;

    struct plan_walk_member member = member_at(walk, task, step.members, walk->at.member);
    walk->device = member.device;
    walk->peer = member.peer;
    walk->rank = plan_gang_first_rank(plan, task) + member.place;
    walk->staged_row = plan->hardware.device_count + (task->gang == PLAN_NONE
                                                          ? plan->hardware.devices[member.device].host
                                                          : hardware_host_count(&plan->hardware) + member.device);
    begin_waits(walk, walk->device, op->stream);
    use_buffers(walk, op, task);
    for (uint32_t i = 0; i < op->after_count; i++)
        wait_for_after(walk, &plan->afters[op->first_after + i]);
    if (walk->reservations) wait_for_reservations(walk, unit, op);
    if (walk->ranges) wait_for_range(walk, unit);
    if (walk->failed) return false;
    end_waits(walk);

    out->number = walk->at.number;
    out->minibatch = walk->minibatches[unit->job];
    out->held_out = walk->held_out[unit->job] / held_out_units(plan, unit->job);
    out->op = op;
    out->unit = unit;
    out->op_index = walk->at.op;
    out->ends_unit = walk->at.op + 1 == unit->op_count && (!step.members || walk->at.member + 1 == step.members->count);
    out->device = walk->device;
    out->peer = op->stream == STREAM_P2P ? walk->peer : PLAN_NONE;
    out->gang = task->gang;
    out->rank = walk->rank;
    out->join_count = 1;
    out->join_at = 0;
    if (op->kind == OP_COLLECTIVE) {
        const struct walk_member *joins = &step.members->of[walk->at.member];
        out->group = joins->group;
        out->join_count = joins->join_count;
        out->join_at = joins->join_at;
    }
    out->stream = walk->stream;
    out->waits = walk->waits;
    out->wait_count = walk->wait_count;
    out->uses = walk->uses;
    out->use_count = walk->use_count;
    walk->at.number++;
    walk->at.member++;
    return true;
}

bool plan_walk_failed(const struct plan_walk *walk)
{
    return walk->failed;
}

void plan_walk_push(struct plan_walk *walk, const struct plan_task *task)
{
    assert(walk->open && !walk->pushed);
    walk->pushed = task;
}
