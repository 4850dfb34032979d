/*
 * At most one entry per owner, in a total order by (time, order).
 *
 * An owner is a small number (a stream, a class of flows). Its entry can be set, moved both ways and removed. Owners
 * that change together should be neighbours in a block. Other growing quantities than time are ordered, too, such as
 * bytes served to a flow.
 */
#ifndef SPILLWAY_SIM_ENGINE_QUEUE_H
#define SPILLWAY_SIM_ENGINE_QUEUE_H

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "sim/engine/snapshot.h"

struct sim_queue;

struct sim_event {
    double time_s;
    uint64_t order; /* see sim_order() */
    uint32_t owner;
};

/* Order of events at equal times: by kind, then by number, the smaller first. */
enum { SIM_ORDER_NUMBER_BITS = 60 };
static inline uint64_t sim_order(uint32_t kind, uint64_t number)
{
    assert(kind < 16);
    assert(number < (uint64_t)1 << SIM_ORDER_NUMBER_BITS);
    return (uint64_t)kind << SIM_ORDER_NUMBER_BITS | number;
}

/* Owners are grouped in blocks of neighbours; the blocks' first entries play a tournament. */
enum { SIM_QUEUE_BLOCK = 8 };

/* Owners are [0, owner_count). The queue lives as long as `arena` and allocates nothing later. */
MUST_CHECK enum status sim_queue_create(struct arena *arena, uint32_t owner_count,
                                        struct sim_queue **out, struct error *err);

/* Sets the owner's entry, new or not. `time_s` is finite and not before the last popped entry. O(1); sim_queue_first()
 * replays the tournament. */
static inline void sim_queue_set(struct sim_queue *queue, uint32_t owner, double time_s, uint64_t order);

/* Removes the owner's entry, if any. O(1). */
void sim_queue_remove(struct sim_queue *queue, uint32_t owner);

/* Returns the owner's entry, which must exist. */
struct sim_event sim_queue_entry(const struct sim_queue *queue, uint32_t owner);

/* Return the first entry; false if the queue is empty. O(log owners) for each block changed since. */
bool sim_queue_first(struct sim_queue *queue, struct sim_event *out);
bool sim_queue_pop(struct sim_queue *queue, struct sim_event *out);

/* Moves the origin of time: all times decrease by `seconds`. O(owners). */
void sim_queue_shift(struct sim_queue *queue, double seconds);

/* Writes all entries, with orders relative to `first_order`. O(owners). */
void sim_queue_write(const struct sim_queue *queue, uint64_t first_order, struct sim_snapshot *out);

/* --- private to queue.c; here because sim_queue_set() must be inline ---------------------------- */

enum { SIM_QUEUE_NOTED_MAX = 4 };

struct sim_queue {
    uint64_t *times;       /* by owner, in whole blocks: keys, see sim_queue_key() */
    uint64_t *orders;      /* likewise */
    uint64_t *node_times;  /* winners: of the queue in [1], of each block from [leaf_count] on ... */
    uint32_t *node_owners; /* ... and their owners */
    uint32_t leaf_count;   /* blocks, a power of two */
    uint32_t owner_count;
    uint32_t noted[SIM_QUEUE_NOTED_MAX]; /* blocks that have changed */
    uint32_t noted_count;
    double floor_s;        /* the last time popped */
};

void sim_queue_play_noted(struct sim_queue *queue);

/* Returns an integer that compares like the double: its bits, inverted if it is negative, else with
 * the sign bit set. */
static inline uint64_t sim_queue_key(double time_s)
{
    uint64_t bits;
    time_s += 0.0; /* -0 is 0 */
    memcpy(&bits, &time_s, sizeof bits);
    return bits ^ ((uint64_t)((int64_t)bits >> 63) | UINT64_C(1) << 63);
}

static inline void sim_queue_note(struct sim_queue *queue, uint32_t block)
{
    for (uint32_t i = 0; i < queue->noted_count; i++)
        if (queue->noted[i] == block) return;
    if (queue->noted_count == SIM_QUEUE_NOTED_MAX) sim_queue_play_noted(queue);
    queue->noted[queue->noted_count++] = block;
}

static inline void sim_queue_set(struct sim_queue *queue, uint32_t owner, double time_s, uint64_t order)
{
    assert(owner < queue->owner_count);
    assert(time_s >= queue->floor_s);
    assert(time_s < INFINITY);
    queue->times[owner] = sim_queue_key(time_s);
    queue->orders[owner] = order;
    sim_queue_note(queue, owner / SIM_QUEUE_BLOCK);
}

#endif
