/* The operations of a unit, pass by pass: fetch the pass's data, compute, bring back the results. */
#ifndef SPILLWAY_PLANNER_SPILL_EMIT_EMIT_PASS_H
#define SPILLWAY_PLANNER_SPILL_EMIT_EMIT_PASS_H

#include "planner/spill/emit/emit_unit.h"

/* Emits the operations of v->pass for its shard. v->origin, v->stays: for passes that train or evaluate. */
void emit_pass(struct emit_context *e, const struct emit_shard_view *v);

#endif
