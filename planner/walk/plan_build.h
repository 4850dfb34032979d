/*
 * Builds a plan piece by piece: equal units, slots, layouts and works are stored once; repetitions are folded at the
 * end.
 *
 * Calls in order: plan_builder_create; for each job and shard plan_builder_shard; then any mix of buffer, slot, work; a
 * unit is unit_begin, ops with their accesses, unit_end; tasks in plan order; finish. Errors are remembered: later
 * calls do nothing, and plan_builder_finish() reports them.
 */
#ifndef SPILLWAY_PLANNER_WALK_PLAN_BUILD_H
#define SPILLWAY_PLANNER_WALK_PLAN_BUILD_H

#include "planner/plan.h"

struct plan_builder; /* opaque */

/* Creates a builder. Moves hardware and jobs into the plan and zeroes them, also after an error. */
MUST_CHECK enum status plan_builder_create(struct hardware *hardware, struct job_set *jobs,
                                           struct plan_builder **out, struct error *err);
void plan_builder_destroy(struct plan_builder *builder);

/* Returns the plan under construction, borrowed: jobs and hardware may be read, bounds and names set. */
struct plan *plan_builder_plan(struct plan_builder *builder);

/* Adds a shard: shards of a job in order, jobs in order. Returns the shard's index in the plan. */
uint32_t plan_builder_shard(struct plan_builder *builder, uint32_t job, uint64_t first_layer,
                            uint64_t layer_count, bool inputs_only);

uint32_t plan_builder_work(struct plan_builder *builder, const struct work_item *items,
                           uint32_t count);

/* Returns the buffer with these fields, made on first use. A later call with larger `bytes` enlarges it. */
uint32_t plan_builder_buffer(struct plan_builder *builder, const struct plan_buffer *buffer);

/* Returns the slot with this range, made on first use. */
uint32_t plan_builder_slot(struct plan_builder *builder, uint64_t offset_bytes, uint64_t bytes);

/* Begins a unit. The builder fills in the `op` fields first_access, access_count, first_after and after_count. */
void plan_builder_unit_begin(struct plan_builder *builder, uint32_t job, uint32_t shard,
                             enum plan_pass pass, bool ends_minibatch);
void plan_builder_op(struct plan_builder *builder, const struct plan_op *op,
                     const struct plan_access *accesses, uint32_t access_count,
                     const struct plan_after *afters, uint32_t after_count);
/* Ends the unit and returns its index; an equal unit made before is returned instead of a copy. */
uint32_t plan_builder_unit_end(struct plan_builder *builder);

/* Appends a task to the plan order. `slots`: one per ACQUIRE of the unit, in order. */
void plan_builder_task(struct plan_builder *builder, uint32_t unit, uint32_t device,
                       const uint32_t *slots, uint32_t slot_count);

/* Appends an earlier task again, on the same devices. */
void plan_builder_again(struct plan_builder *builder, uint32_t task);

/* Repeats the `count` tasks appended last `times` times more in the plan order. */
void plan_builder_repeat(struct plan_builder *builder, uint32_t count, uint64_t times);

/* Adds a choice for a unit on a device, after all tasks of the plan order. */
void plan_builder_choice(struct plan_builder *builder, uint32_t unit, uint32_t device,
                         const uint32_t *slots, uint32_t slot_count);

/* Sets the peer of the last task, which has P2P copies: a device or, for a gang's task, a gang. */
void plan_builder_peer(struct plan_builder *builder, uint32_t peer);

/* Adds a gang of the product of extents[] devices, before the first unit. Returns its number. */
uint32_t plan_builder_gang(struct plan_builder *builder, const uint32_t extents[AXIS_COUNT],
                           const uint32_t *devices);

/* Appends a task as plan_builder_task(), on each of the gang's devices. */
void plan_builder_gang_task(struct plan_builder *builder, uint32_t unit, uint32_t gang,
                            const uint32_t *slots, uint32_t slot_count);

/* Makes a segment of the tasks since the last call or the first task, with `repeat_count` repetitions. Then
 * every task must be in a segment, and the builder folds nothing. */
void plan_builder_segment(struct plan_builder *builder, uint32_t repeat_count);

/* Folds repetitions into segments and moves the result to *out. The builder can only be destroyed afterwards. */
MUST_CHECK enum status plan_builder_finish(struct plan_builder *builder, struct plan *out,
                                           struct error *err);

#endif
