/*
 * Weights: seeded initial values, and safetensors files with the Hugging Face names of the network.
 * Source of the format: huggingface/safetensors, README "Format". Files are treated as hostile.
 */
#ifndef SPILLWAY_EXEC_WEIGHTS_H
#define SPILLWAY_EXEC_WEIGHTS_H

#include <stdbool.h>

#include "base/bf16.h"
#include "models/job/job.h"

/* The tensors of a job, shard by shard in the network's order: zero but for what the caller knows. */
struct weights_walk {
    const struct job *job;
    const struct state_tables *tables; /* per shard: of its state, or of its values alone */
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
    /* NULL: the state does not have it */
    float *values; /* in full: the weights, or the master of those in bf16 ... */
    bf16 *rounded; /* ... which are these */
    void *moments[2]; /* first and second, in the job's format */
};

/* False behind the last. */
bool weights_walk_next(struct weights_walk *walk, struct weights_tensor *out);

/* Weights in bf16 from their values: what fills values calls it at the end. */
void weights_round(const struct job *job, const struct state_tables *tables, uint32_t shard_count,
                   float *const *states);

/* The values of a state, to where `parameters` lays them out. */
void weights_copy_values(const struct job *job, const struct state_tables *tables, float *state,
                         const struct memory_table *parameters, float *out);

/* Initial values by the rule of the network's family (struct tensor_spec): a value depends on (seed,
 * tensor's number, element) alone. `state` is the shard's blob; moments become zero. On the calling
 * thread: shards may be filled at the same time. */
void weights_init(const struct job *job, const struct state_tables *tables, float *state);

/* Fill the states of all shards of a job from job->weights_in: every tensor must be there with its
 * shape, as F32, F16 or BF16, all numbers finite. Names may be those of the network with a head in
 * front of it or without ("transformer.wte.weight", "layers.0.mlp.up_proj.weight"); tensors that the
 * network does not have are passed over. Moments become zero.
 * Errors: STATUS_BAD_INPUT with what is wrong with which tensor, STATUS_IO. */
MUST_CHECK enum status weights_read(const struct job *job, const struct state_tables *tables,
                                    uint32_t shard_count, float *const *states, struct error *err);

/* Check names, shapes and types in job->weights_in, as weights_read() does; numbers are not looked at. Errors: likewise. */
MUST_CHECK enum status weights_check(const struct job *job, const struct state_tables *tables, uint32_t shard_count,
                                     struct error *err);

/* Write job->weights_out, or `path` when not NULL: the values in full, as F32. Atomic. */
MUST_CHECK enum status weights_write(const struct job *job, const struct state_tables *tables,
                                     uint32_t shard_count, float *const *states, const char *path,
                                     struct error *err);

/* Are all values finite? */
bool weights_are_finite(const struct job *job, const struct state_tables *tables, uint32_t shard_count,
                        float *const *states);

/* A fingerprint of all values, for comparing runs bit by bit. */
uint64_t weights_fingerprint(const struct job *job, const struct state_tables *tables,
                             uint32_t shard_count, float *const *states);

#endif
