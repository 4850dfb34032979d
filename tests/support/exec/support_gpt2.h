/*
 * Trains a GPT-2 by calls of unit_compute(), cut into shards as a test likes: no plan, no device. Everything is
 * resident in memory; a pass gets the arguments that a run would give it.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_GPT2_H
#define SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_GPT2_H

#include "exec/network/unit.h"

enum { TRAINER_SHARDS_MAX = 64 };

struct trainer_options {
    uint64_t blocks_per_shard; /* shard 0 is the embedding; the head goes with the last blocks */
    bool head_alone;           /* the head is a shard of its own */
    bool keep;                 /* keep activations of the middle shards */
    bool inputs;               /* keep the inputs of their blocks; the last shard then keeps its inputs only */
    bool elsewhere;            /* gradients go into a buffer, followed by an UPDATE of all shards but the embedding;
                                  always so if the job clips */
    uint32_t slices;           /* of the embedding; 1: whole */
    bool poison;               /* write NaN to everything that a pass must not read */
};

struct trainer {
    struct arena arena;
    struct job job;
    struct trainer_options options;
    struct plan_shard shards[TRAINER_SHARDS_MAX];
    struct unit_tables tables[TRAINER_SHARDS_MAX];
    struct memory_table parameters[TRAINER_SHARDS_MAX];   /* tables[i].parameters */
    struct state_tables state_tables[TRAINER_SHARDS_MAX]; /* tables[i].state, in the form of weights.h */
    float *states[TRAINER_SHARDS_MAX];
    float *boundaries[TRAINER_SHARDS_MAX];          /* input of shard i; NULL for 0 */
    float *boundary_gradients[TRAINER_SHARDS_MAX];
    float *activations[TRAINER_SHARDS_MAX];
    uint32_t shard_count;
    float *workspace, *table_gradient, *slice;
    float *gradient; /* of the largest shard */
    float *gradients[TRAINER_SHARDS_MAX]; /* for a job that clips ... */
    double *norms, norm; /* ... with the sums of squares of its tensors, and the norm of the last step */
    uint64_t workspace_bytes, table_bytes, boundary_bytes, gradient_bytes;
    int32_t *batch; /* job_batch_bytes(), filled by the caller before each step */
    double loss;
};

/* Returns a network of `blocks` blocks with F = 4 C; otherwise as GPT-2. */
struct network support_gpt2_network(uint64_t width, uint64_t heads, uint64_t blocks,
                                    uint64_t vocabulary, uint64_t positions);

/* Initializes a zeroed struct. States are zero (see exec/files/weights.h). Aborts if memory runs out. */
void trainer_init(struct trainer *trainer, const struct job *job,
                  const struct trainer_options *options);
void trainer_release(struct trainer *trainer);

/* Does forward, loss, backward and update of one minibatch; its loss is in trainer->loss. */
void trainer_step(struct trainer *trainer, const struct kernels *kernels, uint64_t minibatch);

/* Returns the loss of the batch, by passes that change no state. */
double trainer_evaluate(struct trainer *trainer, const struct kernels *kernels);

/* Returns one tensor's values in the states. Aborts if there is no tensor of that name. */
float *trainer_tensor(const struct trainer *trainer, const char *name, uint64_t *elements);

#endif
