/* What a unit does, pass by pass: bring what the pass needs, compute, take away what it made. */
#ifndef SPILLWAY_PLANNER_EMIT_PASS_H
#define SPILLWAY_PLANNER_EMIT_PASS_H

#include "planner/spill/emit/emit_unit.h"

/* The operations of v->pass for its shard. v->origin, v->stays: of passes that train or evaluate. */
void emit_pass(struct emitter *e, const struct shard_view *v);

#endif
