/*
 * Streams whose next operation is known to be far off.
 *
 * The simulator issues operations until each stream that has some left has one to look at (sim.c). A stream that is
 * first used at the end of a step, for the gradients of all ranks, would have the whole step issued before its first
 * event. But what it is used for reads what others make all the step long: its next operation cannot begin before
 * the last of them has ended, by rule 2 of planner/plan.h. So it is told here, from the instances alone:
 *
 *     compute   F0 F1 ... B510 B511          the all-reduce changes the gradient that each B changes, B511 last:
 *     data                          R        no need to look for R before 1024 operations of `compute` have ended
 *
 * An operation has a *gate* where it accesses a device's buffer, in a life that has begun before, that an operation of
 * another stream used in front of it: a number of operations that must have ended there. Gates say when to look, never
 * when to start; an operation without one is looked for at once. So nothing begins later than without them, and the
 * window is as wide as streams drift apart: 37514 operations of 589826 for the step of 3072 devices of docs/simulating.md,
 * where it was 577612.
 *
 * Only streams of a kind that has few of the plan's operations have gates, of gangs' instances that are not repeated.
 */
#ifndef SPILLWAY_SIM_GATE_H
#define SPILLWAY_SIM_GATE_H

#include <stdbool.h>

#include "planner/plan.h"

/* The operation that is next when its stream has `left` to issue waits for `count` operations of another stream. */
struct sim_gate {
    uint64_t left, count;
    uint32_t stream, awaited;
};

struct sim_gates {
    struct sim_gate *gates;  /* by stream, then in plan order */
    uint32_t count;
    uint32_t *next, *end;    /* per stream, in gates; NULL: no stream has any */
    uint32_t *first_shut;    /* per stream: a stream that waits for it, ... */
    uint32_t *next_shut;     /* ... and the next one with it; or PLAN_NONE */
};

struct sim_gate_maker; /* opaque */

/*
 * Before the operations of the plan's instances are noted; `operations`: of each kind of stream, in all instances. *out
 * is NULL where no stream has gates. Errors: STATUS_NO_MEMORY. The caller destroys it.
 */
MUST_CHECK enum status sim_gate_maker_create(const struct plan *plan, const uint64_t operations[STREAM_KIND_COUNT],
                                             struct sim_gate_maker **out, struct error *err);
void sim_gate_maker_destroy(struct sim_gate_maker *maker); /* NULL is fine */

/* May what this operation of the plan's table accesses make a gate? Others need not be noted. */
bool sim_gate_maker_concerns(const struct sim_gate_maker *maker, const struct plan_op *op);

/* The next operation in plan order, on place `place` of its instance's gang, which is on `device`, is the one of
 * `stream` that has `before` in front of it there. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status sim_gate_maker_note(struct sim_gate_maker *maker, const struct plan_instance *instance,
                                           const struct plan_op *op, uint32_t device, uint32_t place, uint32_t stream,
                                           uint64_t before, struct error *err);

/* What follows has no gate that needs what was noted so far: an instance that is repeated, or is no gang's. */
void sim_gate_maker_forget(struct sim_gate_maker *maker);

/* All are noted. `totals`: operations of each stream. Memory is the arena's. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status sim_gates_make(struct sim_gate_maker *maker, struct arena *arena, const uint64_t *totals,
                                      struct sim_gates *out, struct error *err);

/* The gate of the stream's next operation, of `left`; NULL: it has none. Calls come in the order of the plan. */
const struct sim_gate *sim_gates_next(struct sim_gates *gates, uint32_t stream, uint64_t left);

#endif
