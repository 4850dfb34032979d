/*
 * The units of a job with kept, swapped or recomputed layers (planner/swap/swap.h), with the places of the buffers that
 * they acquire.
 */
#ifndef SPILLWAY_PLANNER_SWAP_SWAP_UNITS_H
#define SPILLWAY_PLANNER_SWAP_SWAP_UNITS_H

#include "planner/spill/emit/emit_unit.h"
#include "planner/swap/swap_places.h"

/* A job that is being written. Borrows everything that it points to. */
struct swap_writing {
    struct emit_context *emitter; /* with the builder, and a partition in which the job is resident */
    const struct swap_job *job;
    const struct swap_places *places;
    const uint8_t *choices;  /* (layer_count) enum chain_choice */
};

/* Append to the plan: LOAD of all shards, a minibatch, STORE of all shards. Errors stay in the emit context. */
void swap_emit_load(const struct swap_writing *w);
void swap_emit_minibatch(const struct swap_writing *w);
void swap_emit_store(const struct swap_writing *w);

#endif
