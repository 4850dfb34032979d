/*
 * The operations that are issued and not yet done with: the part of a plan that is in memory.
 *
 * Operations come from plan_walk.h in plan order. A window record says what the operation is, whom
 * it waits for and what memory it uses. Numbers are kept in 32 bits: those in the window differ by
 * less than 2^31, so the low half tells them apart.
 */
#ifndef SPILLWAY_SIM_WINDOW_H
#define SPILLWAY_SIM_WINDOW_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "planner/walk/plan_walk.h"
#include "sim/lifetime.h"
#include "sim/network/joining.h"

/* Stream, waiter and minibatch of a record take 64 bits together. */
enum { SIM_STREAM_BITS = 19, SIM_MINIBATCH_BITS = 26 };

/* 32 bytes: two in a cache line. */
struct sim_op {
    uint32_t op;          /* index into plan->ops */
    uint32_t group;       /* COLLECTIVE: what joins its devices, as sim_collectives_group() numbers them */
    uint32_t peer;        /* P2P: the device that is copied from; COLLECTIVE: see SIM_JOINS */
    uint32_t next;        /* low number of the next one of its stream, once that is issued */
    uint32_t first_wait;  /* in the ring of waits; up to that of the next record */
    uint32_t first_use;   /* likewise */
    uint64_t stream : SIM_STREAM_BITS;
    uint64_t waiter : SIM_STREAM_BITS; /* a stream whose first waits for this one, SIM_NO_STREAM or SIM_DONE */
    uint64_t minibatch : SIM_MINIBATCH_BITS; /* of later ones SIM_MINIBATCH_LAST */
};

enum {
    SIM_NO_STREAM = (1 << SIM_STREAM_BITS) - 1,
    SIM_DONE = SIM_NO_STREAM - 1,
    SIM_STREAMS_MAX = SIM_DONE - 1,
    SIM_MINIBATCH_LAST = (1 << SIM_MINIBATCH_BITS) - 1
};

/*
 * The operations of a collective that are one follow each other. The first of them counts: its `peer` is how
 * many they are * SIM_JOINED + how many their streams have not come to yet. That of the others is SIM_JOINS
 * + how far behind the first they are.
 */
#define SIM_JOINS 0x80000000u
enum { SIM_JOINED = 1 << 16, SIM_JOINED_MAX = (1 << 15) - 1 };

/* Open for the functions below; changed by those of window.c alone. Rings have a power of two. */
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
    uint32_t wait_end, use_end; /* positions, running on; the record behind the last has them too */
    uint32_t wait_first, use_first; /* nothing before is needed; not always up to date */
    uint64_t base;        /* everything before is done */
    uint64_t issued;      /* the next number */
    uint64_t peak;        /* most records at once */
};

/* `walk` becomes the window's, unless there is an error; all else is borrowed. */
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

/* The record after `op`, of which first_wait and first_use are always right. */
static inline const struct sim_op *sim_window_behind(const struct sim_window *window, uint32_t low)
{
    return sim_window_op(window, low + 1);
}

/* The device memory that it uses. */
static inline struct sim_uses sim_window_uses(const struct sim_window *window, uint32_t low)
{
    return (struct sim_uses){window->uses, window->use_mask, sim_window_op(window, low)->first_use,
                             sim_window_behind(window, low)->first_use};
}

/*
 * Issue the next operation of the plan. *low is its low number, *some false at the end.
 * Errors: STATUS_NO_MEMORY; STATUS_LIMIT when 2^30 operations are in the window.
 */
MUST_CHECK enum status sim_window_issue(struct sim_window *window, bool *some, uint32_t *low,
                                        struct error *err);

/* The operation is over. */
void sim_window_finish(struct sim_window *window, uint32_t low);

#endif
