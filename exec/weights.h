/*
 * Weights: seeded initial values, and safetensors files with the Hugging Face names of the network.
 * Source of the format: huggingface/safetensors, README "Format". Files are treated as hostile.
 */
#ifndef SPILLWAY_EXEC_WEIGHTS_H
#define SPILLWAY_EXEC_WEIGHTS_H

#include <stdbool.h>

#include "models/memory.h"
#include "planner/plan.h"

/* The tensors of a job, shard by shard in the network's order: zero but for what the caller knows. */
struct weights_walk {
    const struct job *job;
    const struct memory_table *parameters; /* per shard */
    uint32_t shard_count;
    float *const *states; /* per shard; NULL: tensors have no values */
    /* where it stands; zero at the start */
    uint32_t shard, entry, index;
    uint64_t layer;
    uint32_t tensor_count;
    struct tensor_spec specs[LAYER_TENSORS_MAX];
};

struct weights_tensor {
    const struct tensor_spec *spec; /* valid until the next step */
    float *values; /* a moment of them is a multiple of part_bytes behind */
    uint64_t part_bytes;
};

/* False behind the last. */
bool weights_walk_next(struct weights_walk *walk, struct weights_tensor *out);

/* Initial values by the rule of the network's family (struct tensor_spec): a value depends on (seed,
 * tensor's number, element) alone. `state` is the shard's blob; moments become zero. On the calling
 * thread: shards may be filled at the same time. */
void weights_init(const struct job *job, const struct plan_shard *shard,
                  const struct memory_table *parameters, float *state);

/* Fill the states of all shards of a job from job->weights_in: every tensor must be there with its
 * shape, as F32, F16 or BF16, all numbers finite. Names may be those of the network with a head in
 * front of it or without ("transformer.wte.weight", "layers.0.mlp.up_proj.weight"); tensors that the
 * network does not have are passed over. Moments become zero.
 * Errors: STATUS_BAD_INPUT with what is wrong with which tensor, STATUS_IO. */
MUST_CHECK enum status weights_read(const struct job *job, const struct plan_shard *shards,
                                    const struct memory_table *parameters, uint32_t shard_count,
                                    float *const *states, struct error *err);

/* Write job->weights_out, or `path` when not NULL. Atomic. */
MUST_CHECK enum status weights_write(const struct job *job, const struct plan_shard *shards,
                                     const struct memory_table *parameters, uint32_t shard_count,
                                     float *const *states, const char *path, struct error *err);

/* A fingerprint of all parameters, for comparing runs bit by bit. */
uint64_t weights_fingerprint(const struct plan_shard *shards,
                             const struct memory_table *parameters, uint32_t shard_count,
                             float *const *states);

#endif
