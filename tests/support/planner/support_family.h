/*
 * What the tests of all families have in common: states and batches to train on, gradients against
 * finite differences of a loss in double, the same bits in every cut, and golden runs.
 *
 * A judge is a forward pass in double, written number by number from a family's architecture; it
 * shares nothing with exec/.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_FAMILY_H
#define SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_FAMILY_H

#include "tests/support/exec/support_gpt2.h"

/* The mean loss of a batch; `p` are the parameters in the order of the network's tensors. */
typedef double (*judge_loss)(const struct job *job, const int32_t *batch, const double *p);

struct family_test {
    struct kernels *one, *two; /* of one and of two threads */
    uint64_t seed;
    /* fills a batch with what a job of this family trains on */
    void (*fill_batch)(const struct job *job, uint64_t seed, uint64_t minibatch, int32_t *batch);
    judge_loss judge;
};

/* Makes kernels of one and of two threads and a seed for the tests of `subject`, a source file. Returns 0. */
int family_set_up(struct family_test *test, const char *subject);
int family_tear_down(struct family_test *test);

/* Tokens below the vocabulary, (B, T+1). */
void family_fill_tokens(const struct job *job, uint64_t seed, uint64_t minibatch, int32_t *batch);

/* Parameters around 0.2, norms around one: large enough that every term matters, and small enough that
 * rounding is not blown up. Moments zero. */
void family_fill_states(struct trainer *trainer, uint64_t seed);

/* All parameters as one array in the order of the network's tensors; returns how many. */
uint64_t family_flatten(const struct trainer *trainer, double *out);

/* An optimizer with no default value in it; sgd: rate 1, so that a step subtracts the gradient. */
struct job_optimizer family_optimizer(uint32_t kind);

/* One step by sgd against (loss(p + h) - loss(p - h)) / 2h; job->optimizer must be
 * family_optimizer(OPTIMIZER_SGD). Returns the largest error relative to the gradient's norm. */
double family_check_gradients(const struct family_test *test, const struct job *job,
                              const struct trainer_options *options);

/* job->minibatches steps, cut in many ways, with one thread and with two, and with evaluations in front
 * of them: the same bits. `slices`: the
 * embedding may be cut by rows. */
void family_check_cuts(const struct family_test *test, const struct job *job, bool slices);

/* Makes the small job of a family; `choice` is what it calls its second way of being. */
typedef struct job (*family_small_job)(uint32_t optimizer, bool choice);

/* family_check_gradients() of three ways to cut, the last one with the other choice; the second way without token types
 * and with `slices`. */
void family_check_ways(const struct family_test *test, family_small_job make, uint32_t slices);

/* family_check_cuts() with every optimizer and both choices. */
void family_check_optimizers(const struct family_test *test, family_small_job make, bool slices);

/* A head whose logits come in pieces: the step of a batch is the mean of the steps of its samples alone,
 * each small enough for one piece, an evaluation sees the loss of the step, and cutting the network
 * changes no bit. `words`: how many words of a sample of T are to be found; NULL: all. job->optimizer
 * must be family_optimizer(OPTIMIZER_SGD). */
void family_check_pieces(const struct family_test *test, const struct job *job,
                         uint64_t (*words)(const int32_t *sample, uint64_t t));

/* --- golden runs ------------------------------------------------------------------------------ */

/* Step through the batches of a golden run, from initial weights in `folder`/initial.safetensors, and
 * compare losses and norms of weights to 1e-5 relative; with sgd also the norms of the last step's
 * gradients, with adamw the weights to 1e-4 with those of `folder`/KIND.safetensors. `job` has all
 * but data and weights. `is_noise` (NULL: never) tells elements whose gradient is nothing but
 * rounding. Returns the largest relative error of a loss. */
double family_check_golden(const struct family_test *test, const struct job *job,
                           const struct trainer_options *options, const char *folder,
                           const char *kind,
                           bool (*is_noise)(const char *name, uint64_t i, uint64_t count));

/* family_check_golden() with adamw, and with sgd and the embedding in `slices`. Prints both errors. */
void family_check_torch(const struct family_test *test, const struct job *job, const char *folder, uint32_t slices,
                        bool (*is_noise)(const char *name, uint64_t i, uint64_t count));

/* A bias of the keys shifts all scores of a query alike, which softmax does not see: its gradient is zero but for
 * rounding, and AdamW scales rounding up to steps of the learning rate. True for the biases of "key" tensors. */
bool family_is_key_bias(const char *name, uint64_t i, uint64_t count);

#endif
