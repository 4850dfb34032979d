/*
 * Operations that are issued and not finished, the only part of a plan in memory.
 *
 * They come from plan_walk.h in plan order. A record has the operation, its waits and its memory uses. Numbers in the
 * window differ by less than 2^31, so the low 32 bits are unique.
 */
#ifndef SPILLWAY_SIM_WINDOW_H
#define SPILLWAY_SIM_WINDOW_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "planner/walk/plan_walk.h"
#include "sim/lifetime.h"
#include "sim/network/collective_times.h"

/* Stream, waiter and minibatch of a record share 64 bits. */
enum { SIM_STREAM_BITS = 19, SIM_MINIBATCH_BITS = 26 };

/* 32 bytes: two in a cache line. */
struct sim_op {
    uint32_t op;          /* index into plan->ops */
    uint32_t group;       /* COLLECTIVE: the group, by sim_collectives_group() */
    uint32_t peer;        /* P2P: the source device; COLLECTIVE: see SIM_JOINS */
    uint32_t next;        /* low number of its stream's next operation, once issued */
    uint32_t first_wait;  /* in the ring of waits, up to the next record's first_wait */
    uint32_t first_use;   /* likewise */
    uint64_t stream : SIM_STREAM_BITS;
    uint64_t waiter : SIM_STREAM_BITS; /* a stream whose first operation waits for this, SIM_NO_STREAM or SIM_DONE */
    uint64_t minibatch : SIM_MINIBATCH_BITS; /* SIM_MINIBATCH_LAST stands for all later ones */
};

enum {
    SIM_NO_STREAM = (1 << SIM_STREAM_BITS) - 1,
    SIM_DONE = SIM_NO_STREAM - 1,
    SIM_STREAMS_MAX = SIM_DONE - 1,
    SIM_MINIBATCH_LAST = (1 << SIM_MINIBATCH_BITS) - 1
};

/*
 * A collective's operations follow each other. The first one's `peer` is their number * SIM_JOINED + the streams that
 * have not reached it yet; each other one's is SIM_JOINS + its distance from the first.
 */
#define SIM_JOINS 0x80000000u
enum { SIM_JOINED = 1 << 16, SIM_JOINED_MAX = (1 << 15) - 1 };

/* Open for the inline functions; only window.c changes it. Ring sizes are powers of two. */
struct sim_window {
    struct plan_walk *walk;
    const struct plan *plan;
    struct sim_lifetimes *lifetimes;
    const struct sim_collectives *collectives;
    uint32_t *unit_of;    /* per operation of the plan's table */
    struct sim_op *ops;
    uint32_t *waits;      /* low numbers */
    sim_use *uses;
    uint32_t op_mask, wait_mask, use_mask;
    uint32_t wait_end, use_end; /* running positions, the ends of the last record's lists */
    uint32_t wait_first, use_first; /* entries before are free; not always up to date */
    uint64_t base;        /* all operations before are done */
    uint64_t issued;      /* the number of the next issued operation */
    uint64_t peak;        /* largest number of records */
};

/* Takes `walk` over unless there is an error; borrows the rest. */
MUST_CHECK enum status sim_window_create(const struct plan *plan, struct plan_walk *walk,
                                         struct sim_lifetimes *lifetimes,
                                         const struct sim_collectives *collectives,
                                         struct sim_window *window, struct error *err);
void sim_window_release(struct sim_window *window); /* a zeroed one is fine */
uint64_t sim_window_bytes(const struct sim_window *window);

static inline struct sim_op *sim_window_op(const struct sim_window *window, uint32_t low)
{
    return &window->ops[low & window->op_mask];
}

static inline const struct plan_unit *sim_window_unit(const struct sim_window *window,
                                                      const struct sim_op *op)
{
    return &window->plan->units[window->unit_of[op->op]];
}

static inline uint64_t sim_window_number(const struct sim_window *window, uint32_t low)
{
    return window->base + (uint32_t)(low - (uint32_t)window->base);
}

static inline bool sim_window_done(const struct sim_window *window, uint32_t low)
{
    if ((int32_t)(low - (uint32_t)window->base) < 0) return true;
    return sim_window_op(window, low)->waiter == SIM_DONE;
}

/* Returns the record after `op`; its first_wait and first_use are always valid. */
static inline const struct sim_op *sim_window_behind(const struct sim_window *window, uint32_t low)
{
    return sim_window_op(window, low + 1);
}

/* Returns the device memory uses of an operation. */
static inline struct sim_uses sim_window_uses(const struct sim_window *window, uint32_t low)
{
    return (struct sim_uses){window->uses, window->use_mask, sim_window_op(window, low)->first_use,
                             sim_window_behind(window, low)->first_use};
}

/*
 * Issues the plan's next operation. *low is its low number; *some is false at the end. Errors: STATUS_LIMIT with 2^30
 * operations in the window.
 */
MUST_CHECK enum status sim_window_issue(struct sim_window *window, bool *some, uint32_t *low,
                                        struct error *err);

/* Finishes an operation. */
void sim_window_finish(struct sim_window *window, uint32_t low);

#endif
