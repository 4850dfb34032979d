/*
 * Training a GPT-2 with unit_compute() alone, cut into shards as a test likes: no plan, no device.
 * Everything lies resident in memory; a pass gets the same arguments that a run would give it.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_GPT2_H
#define SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_GPT2_H

#include "exec/network/unit.h"

enum { TRAINER_SHARDS_MAX = 64 };

struct trainer_options {
    uint64_t blocks_per_shard; /* shard 0 is the embedding; the head goes with the last blocks */
    bool head_alone;           /* or into a shard of its own */
    bool keep;                 /* activations of the middle shards */
    bool inputs;               /* or the inputs of their blocks, and of the last shard's no more */
    bool elsewhere;            /* gradients into a buffer, and an UPDATE of all but the embedding; a job
                                  that clips has no choice */
    uint32_t slices;           /* of the embedding; 1: whole */
    bool poison;               /* NaN into whatever a pass must not read */
};

struct trainer {
    struct arena arena;
    struct job job;
    struct trainer_options options;
    struct plan_shard shards[TRAINER_SHARDS_MAX];
    struct unit_tables tables[TRAINER_SHARDS_MAX];
    struct memory_table parameters[TRAINER_SHARDS_MAX];   /* tables[i].parameters */
    struct state_tables state_tables[TRAINER_SHARDS_MAX]; /* tables[i].state, as weights.h wants */
    float *states[TRAINER_SHARDS_MAX];
    float *boundaries[TRAINER_SHARDS_MAX];          /* what enters shard i; NULL for 0 */
    float *boundary_gradients[TRAINER_SHARDS_MAX];
    float *activations[TRAINER_SHARDS_MAX];
    uint32_t shard_count;
    float *workspace, *table_gradient, *slice;
    float *gradient; /* of the largest shard */
    float *gradients[TRAINER_SHARDS_MAX]; /* of a job that clips, ... */
    double *norms, norm; /* ... sums of squares of its tensors, and the norm of the last step */
    uint64_t workspace_bytes, table_bytes, boundary_bytes, gradient_bytes;
    int32_t *batch; /* job_batch_bytes(), filled by the caller before each step */
    double loss;
};

/* A network of `blocks` blocks with F = 4 C; the rest as GPT-2. */
struct network support_gpt2_network(uint64_t width, uint64_t heads, uint64_t blocks,
                                    uint64_t vocabulary, uint64_t positions);

/* Zeroed struct in. Aborts when memory ends. States are zero: see exec/files/weights.h. */
void trainer_init(struct trainer *trainer, const struct job *job,
                  const struct trainer_options *options);
void trainer_release(struct trainer *trainer);

/* Forward, loss, backward, update of one minibatch; its loss is in trainer->loss. */
void trainer_step(struct trainer *trainer, const struct kernels *kernels, uint64_t minibatch);

/* The loss of the batch, by passes that change no state. */
double trainer_evaluate(struct trainer *trainer, const struct kernels *kernels);

/* One tensor's values in the states. Aborts when there is none of that name. */
float *trainer_tensor(const struct trainer *trainer, const char *name, uint64_t *elements);

#endif
