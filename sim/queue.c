/*
 * A heap whose entries can be found again.
 *
 * A simulated finish is a guess that changes whenever something else starts or ends, so most calls
 * move an entry that is already there. Three ways are common: leave the old entry in and skip it
 * when it comes up (the queue fills with stale entries), remember its address (not possible when
 * entries move), or remember its position. Here every owner has one entry at most and position[]
 * says where:
 *
 *     owner      0   1   2   3   4          entries   [ 2 ][ 0 ][ 4 ]
 *     position   1   -   0   -   2           index       0    1    2
 *
 * The heap has four children per node: the four lie beside each other in memory, and half as many
 * levels are touched on the way down as in a binary heap, at two comparisons more per level. With
 * the 200 to 3000 entries of a large machine that is 4 to 6 levels of 96 bytes.
 *
 * Ties. Two events at the same time are ordered by `order` (kind, then operation number), never by
 * where they lie in the heap; with numbers unique the order is total and the run reproducible.
 *
 * Time does not go back: an entry before the last one popped is a mistake of the caller and asserted.
 *
 * Cost: a set that moves nothing is one comparison with the parent and four with the children. No
 * allocation after creation.
 * Source: Williams, Algorithm 232 (CACM 7(6), 1964); d-ary heaps: Johnson, Inf. Process. Lett. 4(3),
 * 1975. Position kept by the owner: as in libuv's heap-inl.h, with indexes instead of pointers.
 */
#include "sim/queue.h"

#include <math.h>

enum { CHILDREN = 4, ABSENT = -1 };

struct sim_queue {
    struct sim_event *entries; /* a heap of `count` */
    int32_t *position;         /* by owner; ABSENT when it has no entry */
    uint32_t count;
    uint32_t owner_count;
    double floor_s; /* the last time popped */
};

/* --- the heap ------------------------------------------------------------------------------- */

static inline bool before(const struct sim_event *a, const struct sim_event *b)
{
    if (a->time_s < b->time_s) return true;
    if (a->time_s > b->time_s) return false;
    return a->order < b->order;
}

static inline void place(struct sim_queue *queue, uint32_t index, struct sim_event entry)
{
    queue->entries[index] = entry;
    queue->position[entry.owner] = (int32_t)index;
}

/* Move `entry` from the hole at `index` towards the root; true when it moved. */
static bool sift_up(struct sim_queue *queue, uint32_t index, struct sim_event entry)
{
    uint32_t start = index;
    while (index > 0) {
        uint32_t parent = (index - 1) / CHILDREN;
        if (!before(&entry, &queue->entries[parent])) break;
        place(queue, index, queue->entries[parent]);
        index = parent;
    }
    place(queue, index, entry);
    return index != start;
}

static void sift_down(struct sim_queue *queue, uint32_t index, struct sim_event entry)
{
    for (;;) {
        uint32_t child = index * CHILDREN + 1;
        if (child >= queue->count) break;
        uint32_t end = child + CHILDREN;
        if (end > queue->count) end = queue->count;
        uint32_t least = child;
        while (++child < end)
            if (before(&queue->entries[child], &queue->entries[least])) least = child;
        if (!before(&queue->entries[least], &entry)) break;
        place(queue, index, queue->entries[least]);
        index = least;
    }
    place(queue, index, entry);
}

static void remove_at(struct sim_queue *queue, uint32_t index)
{
    queue->position[queue->entries[index].owner] = ABSENT;
    struct sim_event last = queue->entries[--queue->count];
    if (index == queue->count) return;
    if (!sift_up(queue, index, last)) sift_down(queue, index, last);
}

/* --- public --------------------------------------------------------------------------------- */

enum status sim_queue_create(struct arena *arena, uint32_t owner_count, struct sim_queue **out,
                             struct error *err)
{
    assert(owner_count <= INT32_MAX);
    void *queue_memory, *entries, *position;
    enum status status = arena_array(arena, 1, sizeof(struct sim_queue), &queue_memory, err);
    if (status != STATUS_OK) return status;
    status = arena_array(arena, owner_count, sizeof(struct sim_event), &entries, err);
    if (status != STATUS_OK) return status;
    status = arena_array(arena, owner_count, sizeof(int32_t), &position, err);
    if (status != STATUS_OK) return status;

    struct sim_queue *queue = queue_memory;
    queue->entries = entries;
    queue->position = position;
    queue->owner_count = owner_count;
    queue->floor_s = -INFINITY;
    for (uint32_t owner = 0; owner < owner_count; owner++) queue->position[owner] = ABSENT;
    *out = queue;
    return STATUS_OK;
}

void sim_queue_set(struct sim_queue *queue, uint32_t owner, double time_s, uint64_t order)
{
    assert(owner < queue->owner_count);
    assert(isfinite(time_s));
    assert(time_s >= queue->floor_s);
    struct sim_event entry = {.time_s = time_s, .order = order, .owner = owner};
    int32_t position = queue->position[owner];
    uint32_t index = position == ABSENT ? queue->count++ : (uint32_t)position;
    if (!sift_up(queue, index, entry)) sift_down(queue, index, entry);
}

void sim_queue_remove(struct sim_queue *queue, uint32_t owner)
{
    assert(owner < queue->owner_count);
    int32_t position = queue->position[owner];
    if (position != ABSENT) remove_at(queue, (uint32_t)position);
}

bool sim_queue_first(const struct sim_queue *queue, struct sim_event *out)
{
    if (queue->count == 0) return false;
    *out = queue->entries[0];
    return true;
}

bool sim_queue_pop(struct sim_queue *queue, struct sim_event *out)
{
    if (!sim_queue_first(queue, out)) return false;
    assert(out->time_s >= queue->floor_s);
    queue->floor_s = out->time_s;
    remove_at(queue, 0);
    return true;
}

uint32_t sim_queue_count(const struct sim_queue *queue)
{
    return queue->count;
}

void sim_queue_shift(struct sim_queue *queue, double seconds)
{
    assert(isfinite(seconds));
    for (uint32_t i = 0; i < queue->count; i++) queue->entries[i].time_s -= seconds;
    queue->floor_s -= seconds;
    /* Rounding may have made times equal that were not; their order decides now. */
    for (uint32_t i = queue->count / CHILDREN + 1; i-- > 0;)
        if (i < queue->count) sift_down(queue, i, queue->entries[i]);
}
