/*
 * A job on one device as a chain (planner/chain/chain.h): a network's layer is a shard and a layer of the chain.
 *
 *     saved      the data that its forward pass keeps for its backward pass, and its input, the boundary; for the
 *                last layer, which goes forward and backward in one, the input and the scratch beyond the reserve;
 *                nothing for a layer without a backward pass, whose input passes by
 *     boundary   its input, if that is saved
 *     memory     an argument. It begins as the device's, less the permanent data (states, batches, a tied table's
 *                gradient) and the reserve for scratch and for the boundaries and gradients that pass between two
 *                layers (planner/swap/swap.c)
 *
 * Durations are by models/cost/cost.h, with latencies, rounded up to ticks.
 */
#ifndef SPILLWAY_PLANNER_SWAP_SWAP_CHAIN_H
#define SPILLWAY_PLANNER_SWAP_SWAP_CHAIN_H

#include "planner/chain/chain.h"
#include "planner/spill/cut/footprint.h"

struct swap_layer {
    struct footprint bytes;         /* its sizes; the seconds are not used */
    double forward_s, backward_s;   /* backward with all activations kept, and the update */
    double again_s;                 /* additional time when the forward pass is recomputed */
    double out_s, in_s;             /* copies of all saved data; 0: none */
};

/* Open structure; zeroed it is empty. */
struct swap_job {
    struct swap_layer *layers; /* (layer_count) */
    const struct job *job;     /* borrowed, as is the machine */
    const struct hardware *hardware;
    uint32_t index, device, layer_count;
    double tick_s;
    double compute_s;          /* of a minibatch, without recomputation */
    double load_s, store_s;    /* all states, once */
    uint64_t capacity, state_bytes, fixed_bytes, reserve_bytes;
    struct arena arena;
};

/* Returns the first layer with a backward pass. */
static inline uint32_t swap_lowest(const struct swap_job *job)
{
    return (uint32_t)network_first_trained(&job->job->network);
}

/* Returns the bytes that layer l keeps for its backward pass, without its input; 0 if it has no backward pass. */
static inline uint64_t swap_kept_bytes(const struct swap_job *job, uint32_t l)
{
    bool last = l + 1 == job->layer_count;
    return last || l < swap_lowest(job) ? 0 : job->layers[l].bytes.kept_bytes[ACTIVATIONS_KEEP];
}

/* Errors: STATUS_INFEASIBLE for states that do not fit, naming the missing bytes; STATUS_BAD_INPUT for a job that
 * clips, or evaluates on held-out data; STATUS_LIMIT. */
MUST_CHECK enum status swap_job_make(const struct hardware *hardware, const struct job_set *jobs,
                                     struct footprints *footprints, uint32_t index, uint32_t device,
                                     struct swap_job *out, struct error *err);
void swap_job_release(struct swap_job *job);

/* Returns the chain's ticks of backward passes that there are not: a chain's layer has at least one. */
static inline int64_t swap_chain_no_passes(const struct swap_job *job) { return (int64_t)swap_lowest(job); }

/* Returns the memory below which the chain has no schedule when there is a link to swap over. */
uint64_t swap_chain_least(const struct swap_job *job);

/* Makes the chain in `memory` bytes; release it with chain_release(), also after an error. Errors: as
 * chain_finish(). */
MUST_CHECK enum status swap_chain_make(const struct swap_job *job, uint64_t memory, struct chain *out,
                                       struct error *err);

#endif
