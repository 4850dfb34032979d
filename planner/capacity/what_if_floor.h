/*
 * A way's earliest end and least memory (planner/capacity/what_if_ways.h) before it is planned.
 *
 * Parallel jobs. The bound looks at each stage's first device, whose kernels and collectives follow each other on its
 * stream. f and b are seconds of a chunk's passes over a microbatch with these collectives, m a replica's microbatches,
 * sends where stages meet:
 *
 *     stage p    sum of f over earlier chunks   before its first pass
 *                m (f + b) of its own chunks    on its stream
 *                sum of b over earlier chunks   after the last backward pass over its first chunk
 *     chunk 0    its gradient's reduction (which may begin during the collectives of the last pass), its update, the
 *                all-gather of the updated weights
 *
 * These add up: a stage's first microbatch is also the first stage's, and the last backward pass over a stage's first
 * chunk needs all its earlier passes. The largest sum is a minibatch's floor: the next one begins with weights of chunk
 * 0 (asynchronous schedules: no floor). Of split backward passes, only the first part precedes other stages' passes.
 * Also, no stage ends before its streams' work: passes and updates; data-parallel exchange.
 *
 * Offloaded, over replicas. The first device has its passes, then the time to the next minibatch: the gradient of chunk
 * 0 down, its update, its weights up where they stay. A minibatch does not end before the host's processor has added up
 * and updated all shares, the link has carried all data both ways (weights that come up for each pass may stay where a
 * backward pass follows its own forward pass), and ranks have exchanged all gradients.
 *
 * On one device at a time, and parallel on a single device (parallel_is_alone()): the bound of
 * planner/spill/cut/bound.h, of the device or of all.
 */
#ifndef SPILLWAY_PLANNER_CAPACITY_WHAT_IF_FLOOR_H
#define SPILLWAY_PLANNER_CAPACITY_WHAT_IF_FLOOR_H

#include "planner/capacity/what_if_ways.h"

struct what_if_floor {
    double run_s;          /* seconds of the whole job; 0: unknown */
    uint64_t device_bytes; /* on each device of `stage`, the stage that lacks the most bytes or has the fewest left; 0:
                              unknown */
    uint64_t have_bytes;   /* of the stage's first device */
    uint32_t stage;
};

/* Computes the floor. It is 0 for a way that is impossible on the machine; its plan says why. */
MUST_CHECK enum status what_if_floor(const struct hardware *hardware, const struct job *job,
                                     const struct what_if_way *way, struct what_if_floor *out, struct error *err);

#endif
