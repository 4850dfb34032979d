/*
 * Steps of jobs in fp32 against the same steps in bf16 (label: fast), by models/cost/kernel_model.h on devices with
 * matrix cores for both, as frameworks have them: the wider numbers are never the faster ones, and a small job in
 * either takes the time of its kernels' gaps and dispatches.
 *
 * Only bf16 has to round: the master's weights after each step, and the gradients of logits. Where all else waits for
 * its host, a step in bf16 is longer by this rounding, a few tenths of a per cent. Nor does the product of logits hide
 * dispatches there (models/cost/kernel_model.h). The test allows the number of dispatches that a kernel hides.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <math.h>

#include "base/random.h"
#include "base/size.h"
#include "models/cost/cost.h"
#include "models/cost/kernel_model.h"
#include "models/job/parallel_work.h"
#include "tests/support/planner/support_parallel.h"
#include "tests/support/support_seed.h"

struct dice {
    uint64_t seed, count;
};

static uint64_t roll(struct dice *dice, uint64_t sides)
{
    return random_below(dice->seed, dice->count++, sides);
}

static void find(const char *name, struct hardware *out)
{
    struct error err = {0};
    *out = (struct hardware){0};
    if (hardware_find(name, out, &err) != STATUS_OK) fail_msg("%s", err.text);
    out->stack = STACK_FRAMEWORKS;
}

/* Forward, backward and update of all layers, without rounding; *launches: kernels that a host dispatches. */
static double step_s(const struct hardware *h, const struct job *job, double *launches)
{
    static const enum parallel_pass passes[] = {PARALLEL_FORWARD, PARALLEL_BACKWARD, PARALLEL_UPDATE};
    double seconds = 0;
    *launches = 0;
    for (size_t p = 0; p < ARRAY_COUNT(passes); p++) {
        struct work_item items[PARALLEL_WORK_MAX];
        uint32_t count = parallel_work(job, support_all_layers(job), passes[p], items), kept = 0;
        for (uint32_t i = 0; i < count; i++) {
            if (items[i].kernel == KERNEL_ROUND) continue;
            items[kept] = items[i];
            if (items[i].kernel == KERNEL_ADAMW) items[kept].n = 0;
            *launches += kernel_wide(kernel_half(items[i].kernel)) != kernel_half(items[i].kernel) ? items[i].count : 0;
            kept++;
        }
        seconds += cost_work_s(h, 0, items, kept, NULL);
    }
    return seconds;
}

/* Any text network whose width is a whole number of heads of 64: words of any number, thus rows of logits that are
 * whole 16 bytes and such that are not. */
static struct job random_job(struct dice *dice)
{
    static const char *const names[] = {"gpt2", "llama-2-7b", "bert-large", "opt-125m"};
    struct network n = support_preset(names[roll(dice, ARRAY_COUNT(names))]);
    n.heads = 4 << roll(dice, 5);
    n.kv_heads = 0;
    n.head_width = 64;
    n.width = n.heads * n.head_width;
    n.ff_width = n.width * (2 + roll(dice, 4)) + roll(dice, 2) * 4;
    n.vocabulary = 1000 + roll(dice, 200000);
    n.blocks = 1 + roll(dice, 30);
    n.layer_count = n.blocks + 2;
    struct job job = support_parallel_job(n, 1 + roll(dice, 16), 1 << roll(dice, 3), 1);
    job.sequence = 1 + roll(dice, 512);
    job.parallel.recompute = (uint32_t)roll(dice, RECOMPUTE_COUNT);
    return job;
}

static void wider_numbers_are_never_faster(void **state)
{
    (void)state;
    static const char *const machines[] = {"a100-sxm4-80gb", "a100-sxm4-40gb", "h100-sxm5-80gb", "h100-pcie-80gb"};
    struct hardware h[ARRAY_COUNT(machines)];
    struct dice dice = {.seed = support_seed("models_precision: wider_numbers_are_never_faster")};
    for (size_t m = 0; m < ARRAY_COUNT(machines); m++) find(machines[m], &h[m]);
    for (int trial = 0; trial < 3000; trial++) {
        struct job half = random_job(&dice), wide = half;
        const struct hardware *on = &h[roll(&dice, ARRAY_COUNT(machines))];
        double launches[2];
        wide.precision = PRECISION_FP32;
        double half_s = step_s(on, &half, &launches[0]), wide_s = step_s(on, &wide, &launches[1]);
        double hidden_s = KERNEL_MODEL_AHEAD * on->types[0].kernel_model.dispatch_latency.value;
        if (!(wide_s + hidden_s >= half_s))
            fail_msg("%s on %s, C %" PRIu64 " F %" PRIu64 " V %" PRIu64 " L %" PRIu64 " b %" PRIu64 " s %" PRIu64
                     " t %" PRIu32
                     ": %g s in fp32, %g in bf16", half.network.name, on->name, half.network.width,
                     half.network.ff_width,
                     half.network.vocabulary, half.network.blocks, half.microbatch, half.sequence, half.parallel.tensor,
                     wide_s, half_s);
    }
    for (size_t m = 0; m < ARRAY_COUNT(machines); m++) hardware_release(&h[m]);
}

/* Two words through narrow blocks: nothing but gaps, and dispatches. */
static void small_jobs_take_their_dispatches(void **state)
{
    (void)state;
    struct hardware h;
    struct job job = support_parallel_job(support_preset("gpt2"), 1, 1, 1);
    find("a100-sxm4-80gb", &h);
    const struct kernel_model *model = &h.types[0].kernel_model;
    job.sequence = 2;
    for (uint32_t precision = 0; precision < PRECISION_COUNT; precision++) {
        double launches, seconds;
        job.precision = precision;
        seconds = step_s(&h, &job, &launches);
        assert_true(launches > (precision == PRECISION_BF16_WEIGHTS ? 150 : 300)); /* whose products are not
                                                                                      dispatched */
        assert_true(seconds >= launches * fmax(model->kernel_gap.value, model->dispatch_latency.value));
    }
    hardware_release(&h);
}

/* Compares a pass over all layers with both stacks. */
static void check_stacks(const char *name, uint32_t precision, bool differ)
{
    struct hardware h;
    struct job job = support_parallel_job(support_preset("gpt2"), 2, 1, 1);
    struct work_item items[PARALLEL_WORK_MAX];
    find(name, &h);
    job.precision = precision;
    uint32_t count = parallel_work(&job, support_all_layers(&job), PARALLEL_BACKWARD, items);
    double frameworks_s = cost_work_s(&h, 0, items, count, NULL);
    h.stack = STACK_SPILLWAY;
    double own_s = cost_work_s(&h, 0, items, count, NULL);
    if (differ) assert_true(own_s < frameworks_s);
    else assert_true(fabs(own_s - frameworks_s) <= 1e-12 * own_s);
    hardware_release(&h);
}

/* The stacks are equal in fp32 without matrix cores, and on machines without a kernel model. */
static void stacks_differ_where_frameworks_were_fitted(void **state)
{
    (void)state;
    check_stacks("v100-sxm2-32gb", PRECISION_FP32, false);
    check_stacks("v100-sxm2-32gb", PRECISION_BF16, true);
    check_stacks("a100-sxm4-40gb", PRECISION_FP32, true);
    check_stacks("a100-sxm4-40gb", PRECISION_BF16, true);
    check_stacks("rtx-3090-24gb", PRECISION_FP32, false);
    check_stacks("rtx-3090-24gb", PRECISION_BF16, false);
}

/* Products in fp32 have fp32's own peak, as large ones do; products of 16 bits, and GPUs without TF32, do not
 * change. */
static void without_tf32(void **state)
{
    (void)state;
    static const struct work_item fp32 = {KERNEL_MATMUL_FORWARD, 1, 8192, 8192, 8192},
                                  bf16 = {KERNEL_MATMUL_BF16_FORWARD, 1, 8192, 8192, 8192};
    const struct hardware_options options = {.no_tf32 = true};
    struct hardware a100 = {0}, t4 = {0};
    struct error err = {0};
    assert_int_equal(hardware_find("a100-sxm4-40gb", &a100, &err), STATUS_OK);
    assert_int_equal(hardware_find("t4-16gb", &t4, &err), STATUS_OK);
    double bf16_s = cost_item_s(&a100, 0, &bf16), t4_s = cost_item_s(&t4, 0, &fp32);
    for (int twice = 0; twice < 2; twice++) {
        assert_int_equal(hardware_adjust(&a100, &options, &err), STATUS_OK);
        assert_int_equal(hardware_adjust(&t4, &options, &err), STATUS_OK);
        double rate = 2 * 8192.0 * 8192 * 8192 / cost_item_s(&a100, 0, &fp32);
        double peak = 19.5e12 * a100.types[0].matmul_efficiency.value;
        if (!(rate < peak && rate > 0.99 * peak)) fail_msg("%g FLOP/s of %g", rate, peak);
        assert_true(cost_item_s(&a100, 0, &bf16) == bf16_s);
        assert_true(cost_item_s(&t4, 0, &fp32) == t4_s);
    }
    hardware_release(&a100);
    hardware_release(&t4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wider_numbers_are_never_faster),
        cmocka_unit_test(small_jobs_take_their_dispatches),
        cmocka_unit_test(stacks_differ_where_frameworks_were_fitted),
        cmocka_unit_test(without_tf32),
    };
    return cmocka_run_group_tests_name("models_precision", tests, NULL, NULL);
}
