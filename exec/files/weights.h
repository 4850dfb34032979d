/*
 * Weights: seeded initial values, and safetensors files with the Hugging Face names of the network.
 * Source of the format: huggingface/safetensors, README "Format". Files are treated as hostile.
 */
#ifndef SPILLWAY_EXEC_FILES_WEIGHTS_H
#define SPILLWAY_EXEC_FILES_WEIGHTS_H

#include <stdbool.h>

#include "base/bf16.h"
#include "models/job/job.h"

/* Iterates over the tensors of a job, shard by shard in the network's order. The caller sets the first fields and
 * zeroes the rest. */
struct weights_walk {
    const struct job *job;
    const struct state_tables *tables; /* per shard: tables of its state, or only of its values */
    uint32_t shard_count;
    float *const *states; /* per shard; NULL: tensors have no values */
    /* position; zero at the start */
    uint32_t shard, entry, index;
    uint64_t layer;
    uint32_t tensor_count;
    struct tensor_spec specs[LAYER_TENSORS_MAX];
};

struct weights_tensor {
    const struct tensor_spec *spec; /* valid until the next step */
    /* NULL: not in the state */
    float *values; /* full precision: the weights, or the master of bf16 weights ... */
    bf16 *rounded; /* ... which are here */
    void *moments[2]; /* first and second moments, in the job's format */
};

/* Goes to the next tensor. Returns false after the last one. */
bool weights_walk_next(struct weights_walk *walk, struct weights_tensor *out);

/* Rounds bf16 weights from their values. Functions that fill values call it at the end. */
void weights_round(const struct job *job, const struct state_tables *tables, uint32_t shard_count,
                   float *const *states);

/* Copies the values of a state to their positions in `parameters`. */
void weights_copy_values(const struct job *job, const struct state_tables *tables, float *state,
                         const struct memory_table *parameters, float *out);

/* Sets initial values by the rule of the network's family (struct tensor_spec). A value depends only on (seed,
 * tensor's number, element). `state` is the shard's blob; moments become zero. Runs on the calling thread; shards may
 * be filled in parallel. */
void weights_init(const struct job *job, const struct state_tables *tables, float *state);

/* Fills the states of all shards of a job from job->weights_in. Every tensor must exist with its shape, as F32, F16
 * or BF16, with finite numbers. Names may belong to the network with or without a head ("transformer.wte.weight",
 * "layers.0.mlp.up_proj.weight"); unknown tensors are skipped. Moments become zero. Errors: STATUS_BAD_INPUT with the
 * tensor and its fault, STATUS_IO. */
MUST_CHECK enum status weights_read(const struct job *job, const struct state_tables *tables,
                                    uint32_t shard_count, float *const *states, struct error *err);

/* Checks names, shapes and types in job->weights_in like weights_read(), but not the numbers. Errors: likewise. */
MUST_CHECK enum status weights_check(const struct job *job, const struct state_tables *tables, uint32_t shard_count,
                                     struct error *err);

/* Writes the full-precision values as F32 to job->weights_out, or to `path` if it is not NULL. Atomic. */
MUST_CHECK enum status weights_write(const struct job *job, const struct state_tables *tables,
                                     uint32_t shard_count, float *const *states, const char *path,
                                     struct error *err);

/* Returns true when all values are finite. */
bool weights_are_finite(const struct job *job, const struct state_tables *tables, uint32_t shard_count,
                        float *const *states);

/* Returns a fingerprint of all values, for comparing runs bit by bit. */
uint64_t weights_fingerprint(const struct job *job, const struct state_tables *tables,
                             uint32_t shard_count, float *const *states);

#endif
