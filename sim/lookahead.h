/*
 * Lookahead limits: lower bounds on a stream's next begin, which keep the window of operations small.
 *
 * The simulator issues operations until each unfinished stream has an operation (sim.c). If a stream is first used at a
 * step's end, for the gradients of all ranks, the whole step would be issued before its first event. But this operation
 * reads buffers that others write during the step, so by rule 2 of planner/plan.h it cannot begin before the last write
 * has ended. The tasks tell this limit:
 *
 *     compute   F0 F1 ... B510 B511          the all-reduce changes the gradient that each B changes, B511 last:
 *     data                          R        R need not be issued before 1024 operations of `compute` have ended
 *
 * An operation has a *lookahead limit* if it accesses a device buffer in a lifetime that another stream used before:
 * the number of operations that must have ended on that stream. Limits delay issuing and never starting. So every
 * operation begins as without them, and the window is only as wide as streams drift apart: 37514 of 589826 operations
 * for the step of 3072 devices of docs/simulating.md, instead of 577612.
 *
 * Only kinds of streams with few operations have limits, in tasks of gangs that are not repeated.
 */
#ifndef SPILLWAY_SIM_LOOKAHEAD_H
#define SPILLWAY_SIM_LOOKAHEAD_H

#include <stdbool.h>

#include "planner/plan.h"

/* A stream's next operation with `left` to issue waits for `count` operations of the stream `awaited`. */
struct sim_lookahead_limit {
    uint64_t left, count;
    uint32_t stream, awaited;
};

struct sim_lookahead {
    struct sim_lookahead_limit *limits;  /* by stream, then in plan order */
    uint32_t count;
    uint32_t *next, *end;    /* per stream, range in lookahead limits; NULL: no limits */
    uint32_t *first_shut;    /* per stream: the first one that waits for it, ... */
    uint32_t *next_shut;     /* ... and the next that waits for the same; or PLAN_NONE */
};

struct sim_lookahead_maker; /* opaque */

/*
 * Creates a maker before any operation is noted. `operations`: of each kind of stream, in all tasks. *out is NULL
 * if no stream has limits. The caller destroys it.
 */
MUST_CHECK enum status sim_lookahead_maker_create(const struct plan *plan, const uint64_t operations[STREAM_KIND_COUNT],
                                                  struct sim_lookahead_maker **out, struct error *err);
void sim_lookahead_maker_destroy(struct sim_lookahead_maker *maker); /* NULL is fine */

/* Returns true if the operation must be noted: it may lead to a limit. */
bool sim_lookahead_maker_concerns(const struct sim_lookahead_maker *maker, const struct plan_op *op);

/* Notes the next operation in plan order: on `device`, place `place` in the gang, and `stream`, after `before`
 * others. */
MUST_CHECK enum status sim_lookahead_maker_note(struct sim_lookahead_maker *maker, const struct plan_task *task,
                                                const struct plan_op *op, uint32_t device, uint32_t place,
                                                uint32_t stream, uint64_t before, struct error *err);

/* Forgets all notes, before a task that is repeated or of no gang: they lead to no later limits. */
void sim_lookahead_maker_forget(struct sim_lookahead_maker *maker);

/* Makes the limits, after all notes. `totals`: operations of each stream. Memory is the arena's. */
MUST_CHECK enum status sim_lookahead_make(struct sim_lookahead_maker *maker, struct arena *arena,
                                          const uint64_t *totals, struct sim_lookahead *out, struct error *err);

/* Returns the limit of the stream's next operation if `left` are to be issued, or NULL. Must be called in plan
 * order. */
const struct sim_lookahead_limit *sim_lookahead_next(struct sim_lookahead *lookahead, uint32_t stream, uint64_t left);

#endif
