/*
 * Lower bounds for a way of training (planner/capacity/what_if_ways.h) before there is a plan: its earliest end and its
 * least memory, so that a search need not plan ways that cannot be the fastest.
 *
 * Parallel jobs. The bound looks at the first device of each stage, whose kernels and collectives follow each other on
 * its stream of computations. f and b are seconds of a chunk's passes over a microbatch with the collectives on that
 * stream, m microbatches of a replica, sends where stages meet:
 *
 *     stage p    sum of f over earlier chunks   before its first pass
 *                m (f + b) of its own chunks    on its stream
 *                sum of b over earlier chunks   after the last backward pass over its first chunk
 *     chunk 0    its gradient's reduction (which may begin during the collectives of the last pass), its update, the
 *                all-gather of the updated weights
 *
 * These add up: the first microbatch at a stage is also the first one at the first stage, and the last backward pass
 * over a stage's first chunk needs all earlier passes of the stage. The largest sum over the stages is a minibatch's
 * floor: the next one begins with weights of chunk 0 (asynchronous schedules: no floor). Where backward passes are
 * split in two, only the first part precedes the passes of other stages. Also, no stage ends before its streams have
 * done all their work: passes and updates; the exchange of data-parallel ranks.
 *
 * Offloaded, over replicas. The first device has its passes, then the time to the next minibatch's first pass: the
 * gradient of chunk 0 down, its update, its weights up where they stay on devices. A minibatch does not end before the
 * host's processor has added up and updated all ranks' shares, the link has carried all data both ways (weights that
 * come up for each pass may stay where a backward pass follows its own forward pass), and ranks have exchanged all
 * gradients.
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
