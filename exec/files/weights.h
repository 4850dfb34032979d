/* Weights: initial values, and safetensors files with the network's Hugging Face names. */
#ifndef SPILLWAY_EXEC_FILES_WEIGHTS_H
#define SPILLWAY_EXEC_FILES_WEIGHTS_H

#include <stdbool.h>

#include "base/bf16.h"
#include "models/job/job.h"

/* Iterates over a job's tensors, in the network's order. The caller sets the first fields and zeroes the rest. */
struct weights_walk {
    const struct job *job;
    const struct state_tables *tables; /* per shard; of its state, or only of its values */
    uint32_t shard_count;
    float *const *states; /* per shard; NULL: no values */
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
    void *moments[2]; /* in the job's format */
};

/* Returns false after the last tensor. */
bool weights_walk_next(struct weights_walk *walk, struct weights_tensor *out);

/* Rounds bf16 weights from their values; called after values are filled. */
void weights_round(const struct job *job, const struct state_tables *tables, uint32_t shard_count,
                   float *const *states);

/* Copies a state's values to their positions in `parameters`. */
void weights_copy_values(const struct job *job, const struct state_tables *tables, float *state,
                         const struct memory_table *parameters, float *out);

/* Sets initial values by the family's rule (struct tensor_spec), which depend only on (seed, tensor's number,
 * element); moments become zero. Shards may be filled in parallel. */
void weights_init(const struct job *job, const struct state_tables *tables, float *state);

/* Fills all states from job->weights_in. Every tensor must exist with its shape, as F32, F16 or BF16, with finite
 * numbers. Names may belong to the network with or without a head; unknown tensors are skipped. Moments become
 * zero. Errors: STATUS_BAD_INPUT with the tensor and its fault, STATUS_IO. */
MUST_CHECK enum status weights_read(const struct job *job, const struct state_tables *tables,
                                    uint32_t shard_count, float *const *states, struct error *err);

/* Checks like weights_read(), but not the numbers. Errors: likewise. */
MUST_CHECK enum status weights_check(const struct job *job, const struct state_tables *tables, uint32_t shard_count,
                                     struct error *err);

/* Writes full-precision values as F32 to `path`, by default job->weights_out. Atomic. */
MUST_CHECK enum status weights_write(const struct job *job, const struct state_tables *tables,
                                     uint32_t shard_count, float *const *states, const char *path,
                                     struct error *err);

bool weights_are_finite(const struct job *job, const struct state_tables *tables, uint32_t shard_count,
                        float *const *states);

/* Compares runs bit by bit. */
uint64_t weights_fingerprint(const struct job *job, const struct state_tables *tables,
                             uint32_t shard_count, float *const *states);

#endif
