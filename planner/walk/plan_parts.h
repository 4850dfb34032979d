/*
 * The contents of a memory while a plan runs, by their role in training: of a device at the moment with the most bytes
 * in use, and of host memory, where every buffer has its place from beginning to end.
 *
 * The moment is found by going through the instances one after the other, each buffer from ACQUIRE to RELEASE. A run
 * overlaps instances, so more is in use. These bytes count as PART_AHEAD, together with all placed bytes that are
 * unused at that moment: weight buffers into which the next shard comes, data gathered ahead, gaps of alignment.
 *
 *     bytes of parts, PART_AHEAD included = plan_device_bytes()
 */
#ifndef SPILLWAY_PLANNER_PLAN_PARTS_H
#define SPILLWAY_PLANNER_PLAN_PARTS_H

#include "planner/plan.h"

enum plan_part {
    PART_WEIGHTS,     /* as passes read them */
    PART_MASTER,      /* fp32 values of bf16 weights */
    PART_MOMENTS,     /* state of the optimizer */
    PART_GRADIENTS,   /* of parameters */
    PART_TABLES,      /* a tied embedding's token table, and its gradient, for the head */
    PART_ACTIVATIONS, /* kept, or made again for a backward pass */
    PART_LOGITS,      /* of parallel jobs: kept logits count as activations */
    PART_BOUNDARIES,  /* between shards, and their gradients; batch and loss */
    PART_WORKSPACE,   /* all other needs of a computation */
    PART_STAGED,      /* in host memory, on the way from or to storage */
    PART_AHEAD,       /* placed, but unused at that moment */
    PART_COUNT
};
extern const char *const plan_part_names[PART_COUNT]; /* "weights", ... */

struct plan_parts {
    uint64_t bytes[PART_COUNT];
    uint32_t instance; /* the instance at that moment; PLAN_NONE: always */
};

/* Computes the parts of a device that the plan uses. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status plan_parts_of_device(const struct plan *plan, uint32_t device, struct plan_parts *out,
                                            struct error *err);

/* Returns the parts of host memory, of all ranks together. */
struct plan_parts plan_parts_of_host(const struct plan *plan);

/* Writes the moment: "loss of layers 13 to 25". */
enum { PLAN_MOMENT_BYTES = 96 };
const char *plan_parts_moment(const struct plan *plan, const struct plan_parts *parts, char text[PLAN_MOMENT_BYTES]);

#endif
