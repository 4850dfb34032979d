/*
 * Tests for any network family: states and batches to train on, gradients against finite differences of a loss in
 * double, equal bits for every cut, and golden runs.
 *
 * A judge is a forward pass in double, written number by number from a family's architecture; it shares nothing with
 * exec/.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_FAMILY_H
#define SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_FAMILY_H

#include "tests/support/exec/support_gpt2.h"

/* Returns the mean loss of a batch; `p` has the parameters in the order of the network's tensors. */
typedef double (*judge_loss)(const struct job *job, const int32_t *batch, const double *p);

struct family_test {
    struct kernels *one, *two; /* with one and two threads */
    uint64_t seed;
    /* fills a batch with training data of the family's jobs */
    void (*fill_batch)(const struct job *job, uint64_t seed, uint64_t minibatch, int32_t *batch);
    judge_loss judge;
};

/* Makes kernels with one and two threads and a seed for the tests of `subject`, a source file. Returns 0. */
int family_set_up(struct family_test *test, const char *subject);
int family_tear_down(struct family_test *test);

/* Fills a batch (B, T+1) with tokens below the vocabulary. */
void family_fill_tokens(const struct job *job, uint64_t seed, uint64_t minibatch, int32_t *batch);

/* Sets parameters around 0.2, norms around one and moments to zero: large enough that every term matters, and small
 * enough that rounding is not magnified. */
void family_fill_states(struct trainer *trainer, uint64_t seed);

/* Copies all parameters into one array in the order of the network's tensors. Returns their number. */
uint64_t family_flatten(const struct trainer *trainer, double *out);

/* Returns an optimizer without default values; sgd has rate 1, so that a step subtracts the gradient. */
struct job_optimizer family_optimizer(uint32_t kind);

/* Compares one step by sgd with (loss(p + h) - loss(p - h)) / 2h; job->optimizer must be
 * family_optimizer(OPTIMIZER_SGD). Returns the largest error relative to the gradient's norm. */
double family_check_gradients(const struct family_test *test, const struct job *job,
                              const struct trainer_options *options);

/* Checks that job->minibatches steps give the same bits with many cuts, with one and two threads, and with
 * evaluations before them, whose losses are the steps' unless the job has dropout. `slices`: the embedding may be cut
 * by rows. */
void family_check_cuts(const struct family_test *test, const struct job *job, bool slices);

/* Makes the small job of a family; `choice` selects the family's second variant. */
typedef struct job (*family_small_job)(uint32_t optimizer, bool choice);

/* Runs family_check_gradients() with three cuts, the last one with the other choice, the second one without token
 * types and with `slices`. */
void family_check_ways(const struct family_test *test, family_small_job make, uint32_t slices);

/* Runs family_check_cuts() with every optimizer and both choices. */
void family_check_optimizers(const struct family_test *test, family_small_job make, bool slices);

/* Checks the job in precision bf16 (support_family_half.c): its first step's loss and gradients against fp32's, and
 * family_check_cuts() with every optimizer. */
void family_check_half(const struct family_test *test, const struct job *job, bool slices);

/* Checks a head whose logits are computed in pieces: the step of a batch is the mean of the steps of its samples,
 * each small enough for one piece; an evaluation has the loss of the step; and cutting the network changes no bit.
 * `words`: number of words to be found in a sample of T; NULL: all. job->optimizer must be
 * family_optimizer(OPTIMIZER_SGD). */
void family_check_pieces(const struct family_test *test, const struct job *job,
                         uint64_t (*words)(const int32_t *sample, uint64_t t));

/* --- golden runs ------------------------------------------------------------------------------ */

/* Steps through the batches of a golden run, from the initial weights in `folder`/initial.safetensors, and compares
 * losses and norms of weights to 1e-5 relative; with sgd also the norms of the last step's gradients, with adamw the
 * weights to 1e-4 with `folder`/KIND.safetensors. `job` has everything except data and weights. `is_noise` (NULL:
 * never) returns true for elements whose gradient is only rounding. Returns the largest relative error of a loss. */
double family_check_golden(const struct family_test *test, const struct job *job,
                           const struct trainer_options *options, const char *folder,
                           const char *kind,
                           bool (*is_noise)(const char *name, uint64_t i, uint64_t count));

/* Runs family_check_golden() with adamw, and with sgd and the embedding in `slices`. Prints both errors. */
void family_check_torch(const struct family_test *test, const struct job *job, const char *folder, uint32_t slices,
                        bool (*is_noise)(const char *name, uint64_t i, uint64_t count));

/* Returns true for the biases of "key" tensors. A bias of the keys shifts all scores of a query equally, which
 * softmax ignores: its gradient is zero except for rounding, and AdamW scales rounding up to steps of the learning
 * rate. */
bool family_is_key_bias(const char *name, uint64_t i, uint64_t count);

#endif
