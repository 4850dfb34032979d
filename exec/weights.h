/*
 * Weights: seeded initial values, and safetensors files with the Hugging Face names of the network.
 * Source of the format: huggingface/safetensors, README "Format". Files are treated as hostile.
 */
#ifndef SPILLWAY_EXEC_WEIGHTS_H
#define SPILLWAY_EXEC_WEIGHTS_H

#include "models/memory.h"
#include "planner/plan.h"

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
