/*
 * Of a way of training (planner/capacity/what_if_ways.h), before there is a plan: how soon it can end at the earliest, and how much
 * memory it takes at the least. What the plan of a way, simulated with the same machine, takes is never below either, so
 * a search leaves out what cannot be the fastest without planning it.
 *
 * Parallel jobs. Of each stage the first device of all, whose kernels and collectives follow each other on its
 * stream of computations; f and b are seconds of a run's passes over a microbatch with the collectives that are on that
 * stream, m microbatches of a replica, sends where stages meet:
 *
 *     stage p    sum of f over runs in front    before its first pass
 *                m (f + b) of its own runs      on its stream
 *                sum of b over runs in front    behind the last pass back over its first run
 *     run 0      its gradient's reduction (which may begin beside the collectives of the last pass), its update, the
 *                all-gather of what that made
 *
 * These add up, for the microbatch that is the first to come is so from the first stage on, and the last pass back over
 * a stage's first run needs all passes that the stage has before it. The largest over the stages is a minibatch's floor:
 * the next one begins with weights of run 0 (schedules that are not synchronous: none). Where passes back are in two, what
 * follows for other stages is the first of the two alone. And no stage ends before its streams have done
 * all that is theirs: passes and updates; what data-parallel ranks exchange.
 *
 * Offloaded, over replicas. Of the first device its passes, then what is between these and the next minibatch's first: the
 * gradient of run 0 down, its update, its weights up where they stay on devices. Nor does a minibatch end before the
 * host's processor has added up and updated all ranks' shares, the link has carried all both ways (weights that come up for
 * each pass may stay where a pass back follows its own), and ranks have exchanged all gradients.
 *
 * On one device at a time, and parallel on a single one (parallel_is_alone()). planner/spill/cut/bound.h, of the device or of all.
 */
#ifndef SPILLWAY_PLANNER_WHAT_IF_FLOOR_H
#define SPILLWAY_PLANNER_WHAT_IF_FLOOR_H

#include "planner/capacity/what_if_ways.h"

struct what_if_floor {
    double run_s;          /* seconds of the whole job; 0: nothing is known */
    uint64_t device_bytes; /* on each device of `stage`, which lacks most of them or has least left; 0: nothing is known */
    uint64_t have_bytes;   /* of the first of these */
    uint32_t stage;
};

/* Errors: STATUS_NO_MEMORY. A way that the machine cannot go at all has the floor 0: its plan says why. */
MUST_CHECK enum status what_if_floor(const struct hardware *hardware, const struct job *job,
                                     const struct what_if_way *way, struct what_if_floor *out, struct error *err);

#endif
