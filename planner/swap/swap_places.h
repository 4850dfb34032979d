/*
 * Places on the device of a job's buffers during a minibatch: a range of addresses for each life, such that no two that
 * overlap in time by a chain's schedule share a byte.
 *
 * Operations wait for earlier users of their ranges (rule 2 of plan.h), which by the schedule have ended when the next
 * starts. That holds because operations wait only for events that the schedule knows, so none starts later than in it.
 *
 * Lives are laid as low as possible in some order (first fit); the order with the least end is kept. The best places
 * are strongly NP-hard (dynamic storage allocation); the distance from the optimum is at most the end less the
 * schedule's most live bytes.
 */
#ifndef SPILLWAY_PLANNER_SWAP_SWAP_PLACES_H
#define SPILLWAY_PLANNER_SWAP_SWAP_PLACES_H

#include "planner/chain/chain_schedule.h"
#include "planner/swap/swap_chain.h"

/* Kinds of lives, of a layer or (batches, loss, table gradient) of the job, under layer 0. */
enum swap_thing {
    SWAP_STATE,
    SWAP_BATCH,         /* for the first layer's forward pass: the next one can be there early */
    SWAP_BATCH_AGAIN,   /* for the loss, and for the first layer's backward pass */
    SWAP_LOSS,
    SWAP_TABLE_GRADIENT,
    SWAP_INPUT,         /* the input boundary, from the pass that makes it */
    SWAP_INPUT_AGAIN,   /* copied in again */
    SWAP_KEPT,          /* activations inside the layer */
    SWAP_KEPT_AGAIN,
    SWAP_GRADIENT,      /* gradient of its input */
    SWAP_WORK,          /* scratch of its forward pass ... */
    SWAP_WORK_BACK,     /* ... and of its backward pass, or of the loss */
    SWAP_THINGS
};

struct swap_range {
    int64_t from, to; /* ticks */
    uint64_t bytes;   /* 0: no life */
    uint64_t offset;
};

/* Open structure; zeroed it is empty. */
struct swap_places {
    struct swap_range *ranges; /* (layer_count, SWAP_THINGS) */
    uint64_t end;              /* of the highest range */
    uint64_t held;             /* most live bytes at a time: end is no less */
    struct arena arena;
};

MUST_CHECK enum status swap_places_make(const struct swap_job *job, const struct chain *chain,
                                        const struct chain_schedule *schedule, struct swap_places *out,
                                        struct error *err);
void swap_places_release(struct swap_places *places);

static inline const struct swap_range *swap_range(const struct swap_places *places, uint32_t layer,
                                                  enum swap_thing thing)
{
    return &places->ranges[(size_t)layer * SWAP_THINGS + thing];
}

#endif
