/*
 * A memory's contents by their role in training: of a device at the moment with the most bytes in use, and of host
 * memory, where every buffer has a permanent place.
 *
 * The moment is found task by task, each buffer from ACQUIRE to RELEASE. A run overlaps tasks, so more is
 * in use. These bytes count as MEMORY_PART_AHEAD, with all placed bytes unused at that moment: weight buffers into
 * which the next shard comes, data gathered ahead, gaps.
 *
 *     bytes of parts, MEMORY_PART_AHEAD included = plan_device_bytes()
 */
#ifndef SPILLWAY_PLANNER_WALK_MEMORY_BREAKDOWN_H
#define SPILLWAY_PLANNER_WALK_MEMORY_BREAKDOWN_H

#include "planner/plan.h"

enum memory_part {
    MEMORY_PART_WEIGHTS,     /* as passes read them */
    MEMORY_PART_MASTER,      /* fp32 values of bf16 weights */
    MEMORY_PART_MOMENTS,     /* state of the optimizer */
    MEMORY_PART_GRADIENTS,   /* of parameters */
    MEMORY_PART_TABLES,      /* a tied embedding's token table, and its gradient, for the head */
    MEMORY_PART_ACTIVATIONS, /* kept, or made again for a backward pass */
    MEMORY_PART_LOGITS,      /* of parallel jobs: kept logits count as activations */
    MEMORY_PART_BOUNDARIES,  /* between shards, and their gradients; batch and loss */
    MEMORY_PART_WORKSPACE,   /* all other needs of a computation */
    MEMORY_PART_STAGED,      /* in host memory, on the way from or to storage */
    MEMORY_PART_AHEAD,       /* placed, but unused at that moment */
    MEMORY_PART_COUNT
};
extern const char *const memory_part_names[MEMORY_PART_COUNT]; /* "weights", ... */

struct memory_breakdown {
    uint64_t bytes[MEMORY_PART_COUNT];
    uint32_t task; /* the task at that moment; PLAN_NONE: always */
};

/* Computes the parts of a device that the plan uses. */
MUST_CHECK enum status memory_breakdown_of_device(const struct plan *plan, uint32_t device,
                                                  struct memory_breakdown *out, struct error *err);

/* Returns the parts of host memory, of all ranks together. */
struct memory_breakdown memory_breakdown_of_host(const struct plan *plan);

/* Writes the moment: "loss of layers 13 to 25". */
enum { PLAN_MOMENT_BYTES = 96 };
const char *memory_breakdown_moment(const struct plan *plan, const struct memory_breakdown *parts,
                                    char text[PLAN_MOMENT_BYTES]);

#endif
