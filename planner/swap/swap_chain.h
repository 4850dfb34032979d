/*
 * A job that trains on one device as a chain (planner/chain/chain.h): a layer of its network is a shard of the
 * plan and a layer of the chain.
 *
 *     saved      what its forward pass keeps for its backward pass, and its input, the boundary; of the
 *                last layer, which goes forward and back in one, the input and the scratch that exceeds
 *                the reserve
 *     boundary   its input
 *     memory     what is given; the device's, less what is there all the time (states, batches, a tied
 *                table's gradient) and the reserve for scratch and for the boundaries and gradients that
 *                pass between two layers, is where to begin (planner/swap/swap.c)
 *
 * Durations are those of models/cost/cost.h, copies with their latencies, rounded up to ticks.
 */
#ifndef SPILLWAY_PLANNER_SWAP_CHAIN_H
#define SPILLWAY_PLANNER_SWAP_CHAIN_H

#include "planner/chain/chain.h"
#include "planner/spill/cut/footprint.h"

struct swap_layer {
    struct footprint bytes;         /* its sizes; its seconds are not looked at */
    double forward_s, backward_s;   /* backward with everything kept, and the update */
    double again_s;                 /* more than that where the forward pass is recomputed */
    double out_s, in_s;             /* copies of all that is saved; 0: nothing is */
};

/* Open; zeroed it is empty. */
struct swap_job {
    struct swap_layer *layers; /* (layer_count) */
    const struct job *job;     /* borrowed, as is the machine */
    const struct hardware *hardware;
    uint32_t index, device, layer_count;
    double tick_s;
    double compute_s;          /* of a minibatch, nothing computed twice */
    double load_s, store_s;    /* of all states, once */
    uint64_t capacity, state_bytes, fixed_bytes, reserve_bytes;
    struct arena arena;
};

/* What layer l keeps for its backward pass beside its input. */
static inline uint64_t swap_kept_bytes(const struct swap_job *job, uint32_t l)
{
    bool last = l + 1 == job->layer_count;
    return last ? 0 : job->layers[l].bytes.kept_bytes[ACTIVATIONS_KEEP];
}

/* Zeroed before; release it with swap_job_release(), also on failure. Errors: STATUS_INFEASIBLE for states
 * that do not fit, naming the bytes missing; STATUS_BAD_INPUT for a job that clips, or evaluates on held-out
 * data; STATUS_LIMIT, STATUS_NO_MEMORY. */
MUST_CHECK enum status swap_job_make(const struct hardware *hardware, const struct job_set *jobs,
                                     struct footprints *footprints, uint32_t index, uint32_t device,
                                     struct swap_job *out, struct error *err);
void swap_job_release(struct swap_job *job);

/* Memory below which the chain has no schedule, where there is a link to swap over. */
uint64_t swap_chain_least(const struct swap_job *job);

/* The chain in `memory` bytes; release it with chain_release(), also on failure. Errors: those of
 * chain_finish(). */
MUST_CHECK enum status swap_chain_make(const struct swap_job *job, uint64_t memory, struct chain *out,
                                       struct error *err);

#endif
