/* The work of a plan's compute operation, from its job's layers: planners put it into plans and plan_check()
 * compares. */
#ifndef SPILLWAY_PLANNER_PLAN_WORK_H
#define SPILLWAY_PLANNER_PLAN_WORK_H

#include "planner/plan.h"

enum { PLAN_WORK_ITEMS_MAX = 256 };

/*
 * Computes the items of a pass; equal items are merged. Returns the count.
 *
 *     FORWARD, EVALUATE   forward of the layers
 *     LOSS                forward, backward, update
 *     BACKWARD            forward again unless the activations were kept (`how` has UNIT_KEEP,
 *                         models/job/memory.h), backward, update
 *     NORM                squares of all gradients
 *     RECALL              the rows of a minibatch's samples are copied
 *
 * With UNIT_GRADIENTS_OUT in `how`, LOSS and BACKWARD have no update; it is the work of the UPDATE. An embedding's
 * forward is never recomputed. row_count > 0: a slice of an embedding's rows: its share of the table sweep and update,
 * and, in the slice with row 0, the gathering or adding of the tokens.
 */
uint32_t plan_work_items(const struct job *job, uint64_t first_layer, uint64_t layer_count,
                         enum plan_pass pass, uint32_t how, uint64_t first_row, uint64_t row_count,
                         struct work_item items[PLAN_WORK_ITEMS_MAX]);

#endif
