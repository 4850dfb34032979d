/*
 * What is in a memory while a plan runs, by what it is in training: at the moment when most of a device is in use, and in
 * host memory, where everything has its place from beginning to end.
 *
 * The moment is found by going through the instances one behind the other, each life from ACQUIRE to RELEASE. A plan runs
 * many side by side, so that more is in use; that is counted as PART_AHEAD with all that has a place and is not in use
 * then: weight buffers into which the next shard comes, what is gathered ahead, gaps of alignment.
 *
 *     bytes of parts, PART_AHEAD included = plan_device_bytes()
 */
#ifndef SPILLWAY_PLANNER_PLAN_PARTS_H
#define SPILLWAY_PLANNER_PLAN_PARTS_H

#include "planner/plan.h"

enum plan_part {
    PART_WEIGHTS,     /* as passes read them */
    PART_MASTER,      /* fp32 values of those that are bf16 */
    PART_MOMENTS,     /* what the optimizer remembers */
    PART_GRADIENTS,   /* of parameters */
    PART_TABLES,      /* a tied embedding's table of words, and its gradient, for the head */
    PART_ACTIVATIONS, /* kept, or made again for a backward pass */
    PART_LOGITS,      /* of parallel jobs: those that are kept are among the activations */
    PART_BOUNDARIES,  /* between shards, and their gradients; batch and loss */
    PART_WORKSPACE,   /* the rest of what a computation needs */
    PART_STAGED,      /* in host memory, on the way from storage or to it */
    PART_AHEAD,       /* a place, and nothing in it at that moment */
    PART_COUNT
};
extern const char *const plan_part_names[PART_COUNT]; /* "weights", ... */

struct plan_parts {
    uint64_t bytes[PART_COUNT];
    uint32_t instance; /* while which of the plan's instances; PLAN_NONE: always */
};

/* Of a device that the plan uses. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status plan_parts_of_device(const struct plan *plan, uint32_t device, struct plan_parts *out,
                                            struct error *err);

/* Of host memory: all ranks' together. */
struct plan_parts plan_parts_of_host(const struct plan *plan);

/* "loss of layers 13 to 25" */
enum { PLAN_MOMENT_BYTES = 96 };
const char *plan_parts_moment(const struct plan *plan, const struct plan_parts *parts, char text[PLAN_MOMENT_BYTES]);

#endif
