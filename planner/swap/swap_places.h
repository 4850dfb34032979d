/*
 * Where on the device everything of a job lies during a minibatch: a range of addresses for each life of a
 * buffer, such that no two that live at the same time by a chain's schedule share a byte.
 *
 * Operations of the plan wait for who was on their ranges before (rule 2 of plan.h). By the schedule all of
 * these have ended when the next one starts, and so they have if every operation starts no later than there;
 * which holds, as nothing else is waited for but what the schedule knows of. The plan therefore keeps the
 * schedule's promise, without an ordering being spelled out.
 *
 * Lives are taken in some order and each is laid as low as it goes (first fit); the order that needs the
 * least is kept. Finding the best places is strongly NP-hard (dynamic storage allocation);
 * how far this is from it is at most what the places need above what the schedule holds at any one time.
 */
#ifndef SPILLWAY_PLANNER_SWAP_PLACES_H
#define SPILLWAY_PLANNER_SWAP_PLACES_H

#include "planner/chain/chain_schedule.h"
#include "planner/swap/swap_chain.h"

/* What lives; of a layer, or (batches, loss, table gradient) of the job, under layer 0. */
enum swap_thing {
    SWAP_STATE,
    SWAP_BATCH,         /* for the first layer's forward pass: the next one can be there early */
    SWAP_BATCH_AGAIN,   /* for the loss, and for the first layer's backward pass */
    SWAP_LOSS,
    SWAP_TABLE_GRADIENT,
    SWAP_INPUT,         /* the boundary that enters, from the pass that makes it */
    SWAP_INPUT_AGAIN,   /* copied in again */
    SWAP_KEPT,          /* activations inside the layer */
    SWAP_KEPT_AGAIN,
    SWAP_GRADIENT,      /* of its input */
    SWAP_WORK,          /* scratch of its forward pass ... */
    SWAP_WORK_BACK,     /* ... and of its backward pass, or of the loss */
    SWAP_THINGS
};

struct swap_range {
    int64_t from, to; /* ticks */
    uint64_t bytes;   /* 0: it does not live */
    uint64_t offset;
};

/* Open; zeroed it is empty. */
struct swap_places {
    struct swap_range *ranges; /* (layer_count, SWAP_THINGS) */
    uint64_t end;              /* of the highest range */
    uint64_t held;             /* the most that lives at any one time: end is no less */
    struct arena arena;
};

/* Zeroed before; release it with swap_places_release(). Errors: STATUS_NO_MEMORY. */
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
