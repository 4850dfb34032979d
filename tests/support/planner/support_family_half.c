/* Jobs of precision bf16, 16 bits throughout, beside the same jobs in fp32. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/bf16.h"
#include "exec/files/weights.h"
#include "tests/support/planner/support_family.h"

/* A number has eight bits, so a rounding is off by at most 2^-9 of it; a gradient goes through some dozens. Norms that
 * divide by small numbers magnify them, as they do the fewer ones of bf16-weights. */
static const double gradient_tolerance = 0.03, loss_tolerance = 0.01;

/* Makes the first states ones that bf16 has: both precisions then begin with the same weights. */
static void fill_rounded_states(struct trainer *trainer, uint64_t seed)
{
    family_fill_states(trainer, seed);
    struct weights_walk walk = {.job = &trainer->job, .tables = trainer->state_tables,
                                .shard_count = trainer->shard_count, .states = trainer->states};
    struct weights_tensor tensor;
    while (weights_walk_next(&walk, &tensor))
        for (uint64_t i = 0; i < tensor.spec->elements; i++)
            tensor.values[i] = bf16_widen(bf16_nearest(tensor.values[i]));
    weights_round(&trainer->job, trainer->state_tables, trainer->shard_count, trainer->states);
}

/* Steps once by sgd with rate 1; `gradient` gets the difference of the weights. Returns the loss. */
static double step_in(const struct family_test *test, const struct job *of, uint32_t precision, double *gradient,
                      double *before)
{
    const struct trainer_options options = {.blocks_per_shard = 1, .slices = 1, .poison = true};
    struct trainer trainer = {0};
    struct job job = *of;
    job.precision = precision;
    trainer_init(&trainer, &job, &options);
    fill_rounded_states(&trainer, test->seed);
    test->fill_batch(&job, test->seed, 0, trainer.batch);
    const uint64_t count = family_flatten(&trainer, before);
    trainer_step(&trainer, test->two, 0);
    family_flatten(&trainer, gradient);
    for (uint64_t i = 0; i < count; i++) gradient[i] = before[i] - gradient[i];
    const double loss = trainer.loss;
    trainer_release(&trainer);
    return loss;
}

/* Returns the norm of a - b; b may be NULL. */
static double norm_of(const double *a, const double *b, uint64_t count)
{
    double squares = 0;
    for (uint64_t i = 0; i < count; i++) squares += (a[i] - (b ? b[i] : 0)) * (a[i] - (b ? b[i] : 0));
    return sqrt(squares);
}

static void check_gradients(const struct family_test *test, const struct job *job)
{
    const uint64_t count = network_parameters(&job->network);
    double *const fp32 = calloc(4 * count, sizeof *fp32), *const weights = fp32 + count;
    double *const half = weights + count, *const before = half + count;
    assert_non_null(fp32);
    const double expected = step_in(test, job, PRECISION_FP32, fp32, before);
    step_in(test, job, PRECISION_BF16_WEIGHTS, weights, before);
    const double loss = step_in(test, job, PRECISION_BF16, half, before);
    const double norm = norm_of(fp32, NULL, count), rough = norm_of(weights, fp32, count) / norm;
    const double error = norm_of(half, fp32, count) / norm;
    print_message("bf16: loss %.6f (fp32: %.6f), gradient off by %.2f %% of its norm (bf16-weights: %.2f %%)\n", loss,
                  expected, 100 * error, 100 * rough);
    if (!(fabs(loss - expected) <= loss_tolerance * expected)) fail_msg("loss %.9g, expected %.9g", loss, expected);
    if (!(error <= gradient_tolerance + 6 * rough)) fail_msg("gradient off by %.3g of its norm", error);
    assert_true(error > 0);
    free(fp32);
}

void family_check_half(const struct family_test *test, const struct job *of, bool slices)
{
    struct job job = *of;
    assert_null(unit_unsupported(&job));
    job.optimizer = family_optimizer(OPTIMIZER_SGD);
    check_gradients(test, &job);
    job.precision = PRECISION_BF16;
    assert_null(unit_unsupported(&job));
    assert_null(unit_missing_kernel(test->two, &job));
    for (uint32_t kind = 0; kind < OPTIMIZER_COUNT; kind++) {
        job.optimizer = family_optimizer(kind);
        if (kind == OPTIMIZER_SGD) job.optimizer.learning_rate = 0.05;
        family_check_cuts(test, &job, slices);
    }
}
