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
    const struct state_tables *frozen_tables; /* where only these have frozen weights; NULL: `tables` and `states` do */
    float *const *frozen_states;
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
    bf16 *halves;  /* a frozen tensor of 16 bits: its only values */
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

/* Does so for the tensors of adapters alone. */
void weights_init_adapters(const struct job *job, const struct state_tables *tables, uint32_t shard_count,
                           float *const *states);

/* Fills all states from job->weights_in, and adapters with initial values. Every tensor must exist with its shape, as
 * F32, F16 or BF16, with finite numbers. Names may belong to the network with or without a head; unknown tensors are
 * skipped. Moments become zero. Errors: STATUS_BAD_INPUT with the tensor and its fault, STATUS_IO. */
MUST_CHECK enum status weights_read(const struct job *job, const struct state_tables *tables,
                                    uint32_t shard_count, float *const *states, struct error *err);

/* Checks like weights_read(), but not the numbers. Errors: likewise. */
MUST_CHECK enum status weights_check(const struct job *job, const struct state_tables *tables, uint32_t shard_count,
                                     struct error *err);

/* Writes full-precision values as F32 to `path`, by default job->weights_out: all of the network, or its adapters
 * (exec/files/adapter.h). Atomic. */
MUST_CHECK enum status weights_write(const struct job *job, const struct state_tables *tables,
                                     uint32_t shard_count, float *const *states, const char *path,
                                     struct error *err);
/* Does so for a walk at its beginning. */
MUST_CHECK enum status weights_write_walk(struct weights_walk walk, const char *path, struct error *err);

/* Adds what identifies frozen weights: the sum over all shards is equal for every cut. */
uint64_t weights_frozen_fingerprint(const struct job *job, const struct state_tables *tables, uint32_t shard_count,
                                    float *const *states);

/* Does so for the same weights in any precision: counts them rounded to 16 bits. */
uint64_t weights_base_fingerprint(const struct job *job, const struct state_tables *tables, uint32_t shard_count,
                                  float *const *states);

bool weights_are_finite(const struct job *job, const struct state_tables *tables, uint32_t shard_count,
                        float *const *states);

/* Compares runs bit by bit. The second form is for a walk at its beginning. */
uint64_t weights_fingerprint_walk(struct weights_walk walk);
uint64_t weights_fingerprint(const struct job *job, const struct state_tables *tables,
                             uint32_t shard_count, float *const *states);

/* Puts the rows of q, k and v of heads, which files have head by head, in our order, or back into the files'. `to` may
 * be `from`; tensors with other rows stay as they are. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status weights_order_rows(const struct tensor_spec *spec, float *to, const float *from, bool back,
                                          struct error *err);

#endif
