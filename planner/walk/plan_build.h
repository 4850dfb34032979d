/*
 * Building a plan piece by piece: the arrays grow, equal units, slots, layouts and works are stored
 * once, and repetitions are found and folded at the end.
 *
 * Calls in order: plan_builder_create; for each job and shard plan_builder_shard; then any mix of
 * buffer, slot, work; a unit is unit_begin, ops with their accesses, unit_end; instances in plan
 * order; finish. Errors are remembered: every call after the first failed one does nothing and
 * plan_builder_finish() reports it, so that policies need not check each call.
 */
#ifndef SPILLWAY_PLANNER_PLAN_BUILD_H
#define SPILLWAY_PLANNER_PLAN_BUILD_H

#include "planner/plan.h"

struct plan_builder; /* opaque */

/* Takes hardware and jobs over (they are moved into the plan and zeroed), also on failure. */
MUST_CHECK enum status plan_builder_create(struct hardware *hardware, struct job_set *jobs,
                                           struct plan_builder **out, struct error *err);
void plan_builder_destroy(struct plan_builder *builder);

/* The plan under construction: jobs and hardware may be read, bounds and names set. Borrowed. */
struct plan *plan_builder_plan(struct plan_builder *builder);

/* Shards of a job in order, jobs in order. Returns the shard's index in the plan. */
uint32_t plan_builder_shard(struct plan_builder *builder, uint32_t job, uint64_t first_layer,
                            uint64_t layer_count, bool inputs_only);

uint32_t plan_builder_work(struct plan_builder *builder, const struct work_item *items,
                           uint32_t count);

/* The buffer with these fields, made on first use. Asking again with larger `bytes` enlarges it. */
uint32_t plan_builder_buffer(struct plan_builder *builder, const struct plan_buffer *buffer);

/* The slot with this range, made on first use. */
uint32_t plan_builder_slot(struct plan_builder *builder, uint64_t offset_bytes, uint64_t bytes);

/* Begin a unit; `op` fields first_access, access_count, first_after, after_count are filled in. */
void plan_builder_unit_begin(struct plan_builder *builder, uint32_t job, uint32_t shard,
                             enum plan_pass pass, bool ends_minibatch);
void plan_builder_op(struct plan_builder *builder, const struct plan_op *op,
                     const struct plan_access *accesses, uint32_t access_count,
                     const struct plan_after *afters, uint32_t after_count);
/* The unit's index; an equal unit made before is returned instead of a copy. */
uint32_t plan_builder_unit_end(struct plan_builder *builder);

/* Append to the plan order. `slots`: one per ACQUIRE of the unit, in order. */
void plan_builder_instance(struct plan_builder *builder, uint32_t unit, uint32_t device,
                           const uint32_t *slots, uint32_t slot_count);

/* Append an instance that was appended before, whatever it is on. */
void plan_builder_again(struct plan_builder *builder, uint32_t instance);

/* A choice for a unit on a device; behind all instances of the plan order. */
void plan_builder_choice(struct plan_builder *builder, uint32_t unit, uint32_t device,
                         const uint32_t *slots, uint32_t slot_count);

/* The instance appended last fetches from `peer`, a device, or of a gang's instance a gang: it has P2P
 * copies. */
void plan_builder_peer(struct plan_builder *builder, uint32_t peer);

/* A gang of the product of extents[] devices; its number. In front of the first unit. */
uint32_t plan_builder_gang(struct plan_builder *builder, const uint32_t extents[AXIS_COUNT],
                           const uint32_t *devices);

/* As plan_builder_instance(), on each of the gang's devices. */
void plan_builder_gang_instance(struct plan_builder *builder, uint32_t unit, uint32_t gang,
                                const uint32_t *slots, uint32_t slot_count);

/* The instances since the last call, or since the first one, are a segment, `repeat_count` times over. Where
 * this is used at all every instance is in one, and nothing is folded. */
void plan_builder_segment(struct plan_builder *builder, uint32_t repeat_count);

/* Fold repetitions into segments and move the result to *out. The builder can only be destroyed
 * afterwards. Folding is exact: expanding the segments gives the instances appended. */
MUST_CHECK enum status plan_builder_finish(struct plan_builder *builder, struct plan *out,
                                           struct error *err);

#endif
