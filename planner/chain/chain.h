/*
 * Training a chain of layers in too little memory: for every layer, keep its forward pass's results, swap them to the
 * host (activation offloading), or recompute them (activation checkpointing, rematerialization).
 *
 * Layer l saves `saved` bytes in its forward pass and needs them in its backward pass. In between they may
 *
 *     keep        stay on the device
 *     swap        leave over the link out and come back over the link in
 *     recompute   be dropped except for `boundary` bytes, from which a second forward pass makes them
 *
 * The rules of time, in whole ticks and bytes. Layers run forward 0 .. L-1, then backward L-1 .. 0, one at a time; a
 * recomputed layer runs forward once more (`again`) directly before it runs backward.
 *
 *     memory    holds the saved bytes of a layer from the start of its forward pass on: to the end of
 *               its copy out (swap), to the end of its forward pass, then only the boundary (recompute),
 *               or to the end of its backward pass (keep); and again from the start of its copy in,
 *               or of its second forward pass, to the end of its backward pass
 *     copies    whole, one at a time in each direction, during computation, in the order of their
 *               layers' passes; a copy out starts no earlier than its forward pass ends, a backward
 *               pass no earlier than its copy in ends
 *     turnaround
 *               copies out have ended and no copy in has begun when the first backward pass may start
 *
 * The turnaround makes the passes mirror images: read from its end, a backward pass is a forward pass with other
 * durations, whose copies in are its copies out (chain_schedule.h).
 *
 * Source of the problem: KARMA, arXiv 2008.11421, sec. III; Checkmate, arXiv 1910.02653; vDNN, arXiv 1602.08124.
 */
#ifndef SPILLWAY_PLANNER_CHAIN_CHAIN_H
#define SPILLWAY_PLANNER_CHAIN_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

/* Sums of durations stay below CHAIN_HORIZON_MAX, sums of bytes below 2^63. */
enum { CHAIN_LAYERS_MAX = 1024 };
#define CHAIN_TICKS_MAX INT64_C(1000000000000)
#define CHAIN_BYTES_MAX (UINT64_C(1) << 50)
#define CHAIN_HORIZON_MAX (INT64_C(1) << 48)

enum chain_choice { CHAIN_KEEP, CHAIN_SWAP, CHAIN_RECOMPUTE, CHAIN_CHOICES };
extern const char *const chain_choice_names[CHAIN_CHOICES];

/* Sets of choices: bit 1 << choice. Where an argument has one for each layer (layer_count), NULL allows all choices
 * everywhere. */
enum { CHAIN_EVERY_CHOICE = (1 << CHAIN_CHOICES) - 1 };

struct chain_layer {
    int64_t forward, backward; /* ticks, at least 1 */
    int64_t again;             /* ticks of a second forward pass, which does not have to make its output; 0 becomes
                                  `forward` */
    int64_t out, in;           /* ticks of its copies, rounded up; derived */
    uint64_t saved, boundary;  /* bytes; boundary at most saved */
    uint64_t fluid[2];         /* bytes of its copies out and in, as counted at fluid_rate; derived */
};

/* Open structure; zeroed it is empty. */
struct chain {
    const char *name;
    struct chain_layer *layers; /* (layer_count) */
    uint32_t layer_count;
    uint64_t memory;            /* bytes */
    uint64_t out_bytes_per_tick, in_bytes_per_tick; /* 0 in either: no layer can be swapped */
    int64_t compute;            /* ticks of all passes without recomputation; derived */
    double fluid_rate[2];       /* least bytes that a tick of copying frees, out and in; derived */
    struct arena arena;
};

/* Allocates zeroed layers. The caller fills them in and calls chain_finish(). Errors: STATUS_BAD_INPUT without layers,
 * STATUS_LIMIT. Release it with chain_release(), also after an error. */
MUST_CHECK enum status chain_init(struct chain *chain, uint32_t layer_count, struct error *err);

/*
 * Derives copies' durations and checks the chain. Errors: STATUS_INFEASIBLE for a layer that cannot run with all
 * earlier ones swapped or recomputed; STATUS_BAD_INPUT for a number out of range; STATUS_LIMIT for durations with too
 * large a sum.
 */
MUST_CHECK enum status chain_finish(struct chain *chain, struct error *err);
void chain_release(struct chain *chain);

static inline bool chain_swaps(const struct chain *chain)
{
    return chain->out_bytes_per_tick > 0 && chain->in_bytes_per_tick > 0;
}

/* Returns the useful choices of a layer. The last layer runs backward at once, so it is kept. */
static inline uint8_t chain_allowed(const struct chain *chain, const uint8_t *allowed, uint32_t layer)
{
    uint8_t set = allowed ? allowed[layer] : CHAIN_EVERY_CHOICE;
    if (layer + 1 == chain->layer_count) set = 1 << CHAIN_KEEP;
    if (!chain_swaps(chain)) set &= (uint8_t)~(1 << CHAIN_SWAP);
    return set;
}

/* Returns a layer's bytes on the device after its forward pass and any copy out. */
static inline uint64_t chain_left(const struct chain_layer *layer, enum chain_choice choice)
{
    return choice == CHAIN_KEEP ? layer->saved : choice == CHAIN_RECOMPUTE ? layer->boundary : 0;
}

#endif
