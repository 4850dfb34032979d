/* label: medium
 * Compressed boundaries and activations, and encoded gradients, have the bits of a slow reference
 * (support_reference_run.h), which rounds them with other arithmetic.
 *
 * For every family, random cuts, schedules, replicas, levels of ZeRO, ways to recompute, evaluations and codes, with
 * random pauses on every stream and NaN in all memory that was released: the plan passes its check, and losses,
 * held-out losses and weights have the reference's bits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "exec/kernels/kernels_code.h"
#include "models/job/parallel_memory.h"
#include "tests/support/exec/support_reference_run.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_seed.h"

enum { CASES = SUPPORT_ROUNDS(14), NUMBERS_MAX = 4000 };

/* --- numbers ---------------------------------------------------------------------------------- */

/* Codes in place and apart, of numbers of all sizes, and of any count. */
static void test_numbers(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("numbers");
    for (uint64_t n = 0; n < 400; n++) {
        const enum compression_code code = n % 2 ? COMPRESSION_BF16 : COMPRESSION_INT8;
        const struct compression ratio = {.ratio = code == COMPRESSION_BF16 ? 2 : 3.75};
        const uint64_t count = 1 + random_below(seed, 10 * n, n < 40 ? 40 : NUMBERS_MAX);
        const uint64_t bytes = compression_code_bytes(code, count);
        float x[NUMBERS_MAX], wanted[NUMBERS_MAX], in_place[NUMBERS_MAX], found[NUMBERS_MAX];
        char encoded[2 * NUMBERS_MAX + 1];
        const int spread = (int)random_below(seed, 10 * n + 1, 120);
        for (uint64_t i = 0; i < count; i++) {
            const double size = ldexp(random_unit(seed, 100000 * n + 2 * i),
                                      (int)random_below(seed, 100000 * n + 2 * i + 1, 1 + (uint64_t)spread) - spread);
            x[i] = (float)(random_below(seed, 100000 * n + 2 * i + 50001, 2) ? -size : size);
            if (fabsf(x[i]) < 0x1p-126f) x[i] = 0;
        }
        memcpy(wanted, x, sizeof x);
        memcpy(in_place, x, sizeof x);
        reference_round(code, wanted, count);
        assert_int_equal(bytes, compression_bytes(&ratio, count * sizeof(float)));
        encoded[bytes] = 77;
        kernels_encode(code, encoded, x, count);
        assert_int_equal(encoded[bytes], 77);
        kernels_encode(code, in_place, in_place, count);
        assert_memory_equal(in_place, encoded, bytes);
        kernels_decode(code, found, encoded, count);
        kernels_decode(code, in_place, in_place, count);
        kernels_code_round(code, x, count);
        for (uint64_t i = 0; i < count; i++)
            if (memcmp(&x[i], &found[i], sizeof *x) || memcmp(&x[i], &in_place[i], sizeof *x) ||
                !(x[i] <= wanted[i] && x[i] >= wanted[i]))
                fail_msg("code %u: number %u of %u is %.9g, %.9g or %.9g (expected %.9g)", code, (unsigned)i,
                         (unsigned)count, (double)x[i], (double)found[i], (double)in_place[i], (double)wanted[i]);
    }
}

/* A number that is not finite is seen after it was sent. */
static void test_not_finite(void **state)
{
    (void)state;
    const float all[] = {1, -2, INFINITY, 3};
    float x[4], nan = NAN;
    memcpy(x, all, sizeof x);
    kernels_code_round(COMPRESSION_BF16, x, 4);
    assert_memory_equal(x, all, sizeof x);
    kernels_code_round(COMPRESSION_INT8, x, 4);
    for (uint32_t i = 0; i < 4; i++) assert_true(isnan(x[i]));
    kernels_code_round(COMPRESSION_BF16, &nan, 1);
    assert_true(isnan(nan));
    kernels_code_round(COMPRESSION_INT8, &nan, 1);
    assert_true(isnan(nan));
}

/* --- training --------------------------------------------------------------------------------- */

/* Makes the schedule synchronous, and divides states. Replicas of one microbatch have the same sums in all levels. */
static void draw_levels(uint64_t seed, uint64_t n, struct job *job)
{
    struct parallel *p = &job->parallel;
    if (random_below(seed, n, 4) == 0) return;
    p->flush = 0;
    p->schedule = random_below(seed, n + 1, 2) ? PIPELINE_1F1B : PIPELINE_GPIPE;
    job->minibatches = 1 + random_below(seed, n + 2, 4);
    if (p->replicated > 0) job->microbatches = 6;
    if (p->replicated > 0) job->evaluation = (struct job_evaluation){0};
    if (p->data == 1) return;
    job->microbatches = p->data * (1 + random_below(seed, n + 3, 3));
    p->zero = (uint32_t)random_below(seed, n + 4, job->microbatches == p->data ? 4 : 2);
    if (random_below(seed, n + 5, 3) == 0) p->offload = OFFLOAD_STATES;
}

static struct job draw_codes(uint64_t seed, uint64_t n, const struct job *from)
{
    static const double ratios[] = {0, 2, 3.75};
    struct job job = reference_draw(seed, n, from, false);
    const uint64_t at = 1000000 + 20 * n;
    draw_levels(seed, at, &job);
    if (job.parallel.pipeline > 1)
        job.compression[COMPRESSION_BOUNDARIES] = (struct compression){
            .ratio = ratios[random_below(seed, at + 6, 3)], .encode_bytes_per_s = 1e11, .decode_bytes_per_s = 1e11};
    if (job.compression[COMPRESSION_BOUNDARIES].ratio > 0 && random_below(seed, at + 7, 3) == 0)
        job.compression[COMPRESSION_BOUNDARIES].from = random_below(seed, at + 8, 6);
    if (random_below(seed, at + 11, 2))
        job.compression[COMPRESSION_ACTIVATIONS] = (struct compression){
            .ratio = ratios[1 + random_below(seed, at + 12, 2)], .encode_bytes_per_s = 1e11,
            .decode_bytes_per_s = 1e11};
    const bool codes = job.compression[COMPRESSION_BOUNDARIES].ratio > 0 ||
                       job.compression[COMPRESSION_ACTIVATIONS].ratio > 0;
    if (codes && job.precision == PRECISION_BF16) job.precision = PRECISION_BF16_WEIGHTS; /* 16 bits have no code */
    const bool bits = job.precision != PRECISION_FP32 && random_below(seed, at + 9, 4) > 0;
    if (bits) job.gradients = PRECISION_BF16;
    if (!bits && job.parallel.data > 1 && job.parallel.zero < ZERO_GRADIENTS && job.parallel.offload == OFFLOAD_NOTHING)
        job.compression[COMPRESSION_GRADIENTS] = (struct compression){
            .ratio = ratios[job.parallel.zero > 0 ? 1 : 1 + random_below(seed, at + 10, 2)], .encode_bytes_per_s = 1e30,
            .decode_bytes_per_s = 1e11}; /* no time: it is encoded all the same */
    return job;
}

static void test_bits_of_codes(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("codes");
    for (size_t c = 0; c < REFERENCE_UNTIED; c++)
        for (uint64_t n = 0; n < CASES; n++) {
            struct job_set jobs;
            test_network_jobs(&jobs, 1, reference_configs[c], 1);
            const struct job job = draw_codes(seed, c * CASES + n, &jobs.jobs[0]);
            print_message("  boundaries %g from %u, gradients %g, activations %g, %s\n",
                          job.compression[COMPRESSION_BOUNDARIES].ratio,
                          (unsigned)job.compression[COMPRESSION_BOUNDARIES].from,
                          job.compression[COMPRESSION_GRADIENTS].ratio,
                          job.compression[COMPRESSION_ACTIVATIONS].ratio, precision_names[job.gradients]);
            reference_compare(&job, reference_configs[c], n % 3 == 0 ? 0 : seed + n);
            job_set_release(&jobs);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_bits_of_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
