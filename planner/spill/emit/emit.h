/* Writes a schedule as a plan: units with their copies, and the slots of each task. */
#ifndef SPILLWAY_PLANNER_SPILL_EMIT_EMIT_H
#define SPILLWAY_PLANNER_SPILL_EMIT_EMIT_H

#include "planner/spill/order/schedule.h"
#include "planner/walk/plan_build.h"

/* Adds shards, buffers, units and tasks to the builder. Errors: STATUS_LIMIT; the builder's own errors appear at
 * plan_builder_finish(). */
MUST_CHECK enum status emit_plan(struct plan_builder *builder, struct footprints *footprints,
                                 const struct partition *partition,
                                 const struct schedule *schedule, struct error *err);

#endif
