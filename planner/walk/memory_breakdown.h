/*
 * What is in a memory while a plan runs, by what it is in training: at the moment when most of a device is in use, and in
 * host memory, where everything has its place from beginning to end.
 *
 * The moment is found by going through the instances one behind the other, each life from ACQUIRE to RELEASE. A plan runs
 * many side by side, so that more is in use; that is counted as MEMORY_PART_AHEAD with all that has a place and is not in use
 * then: weight buffers into which the next shard comes, what is gathered ahead, gaps of alignment.
 *
 *     bytes of parts, MEMORY_PART_AHEAD included = plan_device_bytes()
 */
#ifndef SPILLWAY_PLANNER_MEMORY_BREAKDOWN_H
#define SPILLWAY_PLANNER_MEMORY_BREAKDOWN_H

#include "planner/plan.h"

enum memory_part {
    MEMORY_PART_WEIGHTS,     /* as passes read them */
    MEMORY_PART_MASTER,      /* fp32 values of those that are bf16 */
    MEMORY_PART_MOMENTS,     /* what the optimizer remembers */
    MEMORY_PART_GRADIENTS,   /* of parameters */
    MEMORY_PART_TABLES,      /* a tied embedding's table of words, and its gradient, for the head */
    MEMORY_PART_ACTIVATIONS, /* kept, or made again for a backward pass */
    MEMORY_PART_LOGITS,      /* of parallel jobs: those that are kept are among the activations */
    MEMORY_PART_BOUNDARIES,  /* between shards, and their gradients; batch and loss */
    MEMORY_PART_WORKSPACE,   /* the rest of what a computation needs */
    MEMORY_PART_STAGED,      /* in host memory, on the way from storage or to it */
    MEMORY_PART_AHEAD,       /* a place, and nothing in it at that moment */
    MEMORY_PART_COUNT
};
extern const char *const memory_part_names[MEMORY_PART_COUNT]; /* "weights", ... */

struct memory_breakdown {
    uint64_t bytes[MEMORY_PART_COUNT];
    uint32_t instance; /* while which of the plan's instances; PLAN_NONE: always */
};

/* Of a device that the plan uses. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status memory_breakdown_of_device(const struct plan *plan, uint32_t device, struct memory_breakdown *out,
                                            struct error *err);

/* Of host memory: all ranks' together. */
struct memory_breakdown memory_breakdown_of_host(const struct plan *plan);

/* "loss of layers 13 to 25" */
enum { PLAN_MOMENT_BYTES = 96 };
const char *memory_breakdown_moment(const struct plan *plan, const struct memory_breakdown *parts,
                                    char text[PLAN_MOMENT_BYTES]);

#endif
