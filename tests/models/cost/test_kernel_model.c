/*
 * models/cost/kernel_model.h (label: fast): products against tiles counted by hand, attention and losses by their
 * bytes, launches by their number; what a product of more work may not do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "models/cost/cost.h"
#include "models/cost/kernel_model.h"
#include "tests/support/support_seed.h"

static const struct kernel_rates rates = {.flops_per_s = 200e12, .bytes_per_s = 1.5e12, .launch_s = 3e-6,
                                          .frameworks = true};

static struct kernel_model model_of(double multiprocessors, double depth)
{
    return (struct kernel_model){.multiprocessors = {.value = multiprocessors}, .matmul_depth = {.value = depth}};
}

static double seconds(const struct kernel_model *model, struct work_item item)
{
    const struct kernel_seconds took = kernel_model_seconds(model, rates, &item);
    return fmax(took.device_s, took.host_s);
}

static void check_close(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-12 * fabs(expected))) fail_msg("%.17g and not %.17g", found, expected);
}

/* 2560 x 1280 is 10 x 10 tiles of 256 x 128: on 100 processors one wave, on 99 two of them, which last as long as 198
 * tiles. 64 more columns begin an eleventh column of tiles, and again a second wave. k 1000 and depth 50: 1.05. */
static void waves_are_counted(void **state)
{
    (void)state;
    const struct kernel_model hundred = model_of(100, 50), fewer = model_of(99, 50);
    const double tile = 2.0 * 256 * 128 * 1000 / 200e12 * 1.05;
    struct work_item item = {KERNEL_MATMUL_HALF_INPUT, 3, 2560, 1280, 1000};
    check_close(seconds(&hundred, item), 3 * (3e-6 + 100 * tile));
    /* on 99 processors: 128 x 128 has 20 x 10 tiles in 3 waves of half a tile at 0.92: 161.4; 64 x 64 40 x 20 in 9
     * waves of an eighth at 0.6: 185.6; 128 x 64 and 64 x 128 20 x 20 in 5 waves of a quarter at 0.75: 165 */
    check_close(seconds(&fewer, item), 3 * (3e-6 + 3 * 99 * 0.5 / 0.92 * tile));
}

/* Rows of 64 numbers are bound by memory: 2 (m k + k n + m n) bytes. */
static void thin_products_are_bound_by_memory(void **state)
{
    (void)state;
    const struct kernel_model model = model_of(108, 0);
    const double m = 4096, n = 8192, k = 8;
    check_close(seconds(&model, (struct work_item){KERNEL_MATMUL_HALF_FORWARD, 1, 4096, 8192, 8}),
                3e-6 + 2 * (m * k + k * n + m * n) / 1.5e12);
}

/* 54 heads of 256 tokens of width 128: scores are 256 x 256 each, two tiles of 256 x 128, 108 in all; the weighted
 * sums are 256 x 128, one tile, 54 in one wave. Bytes: 4 of 16 bits for each of 54 x 256 x 128, a statistic of 4 for
 * each row, and 7 for each score. */
static void scores_have_products_and_bytes(void **state)
{
    (void)state;
    struct kernel_model model = model_of(108, 32);
    model.score_bytes_forward.value = 7;
    model.score_bytes_backward.value = 11;
    const double tile = 2.0 * 256 * 128 / 200e12, rows = 54.0 * 256;
    /* weighing: 128 x 64 tiles, 4 of each head in 2 waves of a quarter at 0.75, are slower than one wave of large
     * ones */
    const double products = 108 * tile * 128 * (1 + 32.0 / 128) +
                            108 * fmin(1, fmin(0.5 / 0.92, 2 * 0.25 / 0.75)) * tile * 256 * (1 + 32.0 / 256);
    const struct work_item forward = {KERNEL_ATTENTION_HALF_FORWARD, 1, 54, 256, 128};
    const struct work_item backward = {KERNEL_ATTENTION_HALF_BACKWARD, 1, 54, 256, 128};
    check_close(seconds(&model, forward), 8 * 3e-6 + products + (8 * rows * 128 + 4 * rows + 7 * rows * 256) / 1.5e12);
    check_close(seconds(&model, backward),
                12 * 3e-6 + 2 * products + (16 * rows * 128 + 4 * rows + 11 * rows * 256) / 1.5e12);
}

static void a_loss_passes_over_its_logits_as_often_as_said(void **state)
{
    (void)state;
    struct kernel_model model = model_of(108, 0);
    const struct work_item loss = {KERNEL_LOSS, 1, 4096, 51200, 0};
    check_close(seconds(&model, loss), 3e-6 + 8.0 * 4096 * 51200 / 1.5e12);
    model.loss_passes.value = 3.5;
    check_close(seconds(&model, loss), 3e-6 + 3.5 * 8.0 * 4096 * 51200 / 1.5e12);
}

/* Small kernels wait for the host of frameworks, in 16 bits and in fp32; attention is eight kernels. An optimizer's
 * step does not wait. With the executor's own stack none does, and attention is one kernel. */
static void hosts_of_frameworks_dispatch_kernels(void **state)
{
    (void)state;
    struct kernel_model model = model_of(108, 0);
    model.dispatch_latency.value = 40e-6;
    model.score_bytes_forward.value = 1;
    const struct work_item gelu = {KERNEL_GELU_HALF_FORWARD, 5, 10, 10, 0},
        scores = {KERNEL_ATTENTION_HALF_FORWARD, 1, 1, 8, 8};
    check_close(seconds(&model, gelu), 5 * 40e-6);
    check_close(seconds(&model, scores), 8 * 40e-6);
    check_close(seconds(&model, (struct work_item){KERNEL_GELU_FORWARD, 5, 10, 10, 0}), 5 * 40e-6);
    check_close(seconds(&model, (struct work_item){KERNEL_ADAMW, 1, 100, 0, 0}), 3e-6 + 2800 / 1.5e12);
    struct kernel_rates own = rates;
    own.frameworks = false;
    check_close(kernel_model_seconds(&model, own, &gelu).device_s, 5 * (3e-6 + 400 / 1.5e12));
    check_close(kernel_model_seconds(&model, own, &scores).device_s, 3e-6 + (8 * 64.0 + 4 * 8) / 1.5e12);
    assert_true(kernel_model_seconds(&model, own, &gelu).host_s == 0);
}

/* Gaps pass on the device while the host dispatches: 5 kernels of 3 + 20 us overlap with 5 dispatches of 15 us. */
static void gaps_and_hosts_run_side_by_side(void **state)
{
    (void)state;
    struct kernel_model model = model_of(108, 0);
    model.kernel_gap.value = 20e-6;
    model.dispatch_latency.value = 15e-6;
    const struct work_item gelu = {KERNEL_GELU_HALF_FORWARD, 5, 10, 10, 0}, wide = {KERNEL_GELU_FORWARD, 5, 10, 10, 0};
    const struct kernel_seconds half = kernel_model_seconds(&model, rates, &gelu);
    check_close(half.device_s, 5 * (23e-6 + 400 / 1.5e12));
    check_close(half.host_s, 5 * 15e-6);
    assert_false(half.multiplies);
    const struct kernel_seconds other = kernel_model_seconds(&model, rates, &wide);
    check_close(other.device_s, 5 * (23e-6 + 800 / 1.5e12));
    check_close(other.host_s, 5 * 15e-6);
}

/* A norm's residual sum, 4 numbers of 16 bits for each, counts 2.5 times; a product's numbers count once. */
static void passes_over_activations_are_as_many_as_said(void **state)
{
    (void)state;
    struct kernel_model model = model_of(108, 0);
    model.elementwise_passes.value = 2.5;
    check_close(seconds(&model, (struct work_item){KERNEL_NORM_HALF_FORWARD, 1, 4096, 2048, 1}),
                3e-6 + 2.5 * 8.0 * 4096 * 2048 / 1.5e12);
    check_close(seconds(&model, (struct work_item){KERNEL_NORM_FORWARD, 1, 4096, 2048, 0}),
                3e-6 + 2.5 * 8.0 * 4096 * 2048 / 1.5e12);
    check_close(seconds(&model, (struct work_item){KERNEL_MATMUL_HALF_FORWARD, 1, 4096, 8192, 8}),
                3e-6 + 2 * (4096.0 * 8 + 8 * 8192.0 + 4096.0 * 8192) / 1.5e12);
}

/* 2560 x 1280 x 1000 is one full wave of 100 processors, at 200 TFLOP/s; the board sustains 190, and a wave of half
 * the tiles is slower than that already. */
static void power_limits_full_waves(void **state)
{
    (void)state;
    const struct kernel_model model = model_of(100, 0);
    const struct kernel_rates sustained = {.flops_per_s = 200e12, .bytes_per_s = 1.5e12,
                                           .sustained_flops_per_s = 190e12};
    const struct work_item full = {KERNEL_MATMUL_HALF_INPUT, 1, 2560, 1280, 1000};
    const struct work_item part = {KERNEL_MATMUL_HALF_INPUT, 1, 1280, 1280, 1000};
    check_close(kernel_model_seconds(&model, sustained, &full).device_s, 2.0 * 2560 * 1280 * 1000 / 190e12);
    /* 10 x 10 tiles of 128 x 128, a wave of halves at 0.92, which is 184 */
    check_close(kernel_model_seconds(&model, sustained, &part).device_s,
                0.5 / 0.92 * 2.0 * 2560 * 1280 * 1000 / 200e12);
}

/* Rows of 50257 halves are no whole 16 bytes, rows of 50264 are, in any of the three products. In fp32 without
 * matrix cores numbers are 4 bytes each, and libraries have kernels for that. */
static void misaligned_products_have_a_part_of_their_rate(void **state)
{
    (void)state;
    struct kernel_model plain = model_of(108, 40), model = plain;
    model.misaligned_rate.value = 0.4;
    const struct work_item products[] = {{KERNEL_MATMUL_BF16_FORWARD, 1, 8192, 50257, 2048},
                                         {KERNEL_MATMUL_HALF_INPUT, 1, 8192, 2048, 50257},
                                         {KERNEL_MATMUL_HALF_WEIGHT, 1, 50257, 2048, 8192}};
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        struct work_item aligned = products[i];
        aligned.m += aligned.m == 50257 ? 7 : 0, aligned.n += aligned.n == 50257 ? 7 : 0,
            aligned.k += aligned.k == 50257 ? 7 : 0;
        check_close(seconds(&model, products[i]) - 3e-6, (seconds(&plain, products[i]) - 3e-6) / 0.4);
        check_close(seconds(&model, aligned), seconds(&plain, aligned));
    }
    /* a batch of an odd number of tokens does not touch the weights' rows */
    check_close(seconds(&model, (struct work_item){KERNEL_MATMUL_HALF_FORWARD, 1, 8191, 4096, 2048}),
                seconds(&plain, (struct work_item){KERNEL_MATMUL_HALF_FORWARD, 1, 8191, 4096, 2048}));
    /* on matrix cores fp32 is taken to be as particular */
    struct kernel_rates cores = rates;
    cores.matrix_cores = true;
    for (uint32_t kernel = KERNEL_MATMUL_INPUT; kernel <= KERNEL_MATMUL_WEIGHT; kernel++) {
        struct work_item wide = products[kernel];
        wide.kernel = kernel;
        check_close(seconds(&model, wide), seconds(&plain, wide));
        double of_cores = kernel_model_seconds(&model, cores, &wide).device_s;
        check_close(of_cores - 3e-6, (seconds(&plain, wide) - 3e-6) / 0.4);
    }
}

/* Shapes are no faster than the rates allow, and not faster with one more row, column or inner element. */
static void no_shape_is_past_the_rates(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("no_shape_is_past_the_rates");
    const struct kernel_model model = model_of(108, 60);
    for (uint64_t i = 0; i < 3000; i++) {
        struct work_item item = {KERNEL_MATMUL_HALF_FORWARD, 1, 1 + random_below(seed, 3 * i, 6000),
                                 1 + random_below(seed, 3 * i + 1, 6000), 1 + random_below(seed, 3 * i + 2, 6000)};
        double s = seconds(&model, item);
        double least = fmax(work_item_flops(&item) / rates.flops_per_s, work_item_bytes(&item, 4) / rates.bytes_per_s);
        struct work_item more[3] = {item, item, item};
        more[0].m++, more[1].n++, more[2].k++;
        if (!(s >= least))
            fail_msg("%" PRIu64 " x %" PRIu64 " x %" PRIu64 " in %g, below %g", item.m, item.n, item.k, s, least);
        for (int w = 0; w < 3; w++) assert_true(seconds(&model, more[w]) >= s * (1 - 1e-12));
    }
}

/* 400 small kernels wait for their host. The host runs ahead while a product of milliseconds runs, but only by 4
 * dispatches: the kernels after the product take that much less time. */
static void check_passes(const struct hardware *h, struct work_item product)
{
    const double dispatch_s = h->types[0].kernel_model.dispatch_latency.value;
    const struct work_item small = {KERNEL_GELU_HALF_FORWARD, 400, 8, 8, 0};
    const struct work_item pass[] = {small, {product.kernel, 1, 16 * product.m, product.n, product.k}};
    check_close(cost_work_s(h, 0, &small, 1, NULL), 400 * dispatch_s);
    assert_true(cost_item_s(h, 0, &pass[1]) > 10 * dispatch_s);
    double apart = cost_item_s(h, 0, &pass[0]) + cost_item_s(h, 0, &pass[1]);
    check_close(cost_work_s(h, 0, pass, 2, NULL), apart - 3 * dispatch_s);
}

/* Collectives take time elsewhere. Each is a dispatch, and hides some while its members wait for each other: between
 * 400 small kernels, whose host the device waits for anyway, they save the difference. */
static void check_collectives(const struct hardware *h)
{
    const double dispatch_s = h->types[0].kernel_model.dispatch_latency.value;
    const double waits_s = fmin(KERNEL_MODEL_AHEAD * dispatch_s, h->types[0].collective_latency.value);
    const struct work_item pass[] = {{KERNEL_GELU_HALF_FORWARD, 400, 8, 8, 0},
                                     {.kernel = KERNEL_COLLECTIVE, .count = 7}};
    assert_true(waits_s > dispatch_s);
    check_close(cost_work_s(h, 0, pass, 2, NULL), 400 * dispatch_s - 7 * (waits_s - dispatch_s));
    check_close(cost_work_s(h, 0, &pass[1], 1, NULL), 0);
    check_close(cost_work_s(h, hardware_cpu(h), &pass[1], 1, NULL), 0);
}

/* A collective between kernels that the host does not dispatch one by one waits for no dispatch. The same holds on a
 * V100, whose collectives hide nothing. */
static void collectives_between_others_take_nothing(void **state)
{
    (void)state;
    struct hardware h = {0};
    struct error err = {0};
    if (hardware_find("v100-sxm2-32gb", &h, &err) != STATUS_OK) fail_msg("%s", err.text);
    h.stack = STACK_FRAMEWORKS;
    const double dispatch_s = h.types[0].kernel_model.dispatch_latency.value;
    const struct work_item wide[] = {{KERNEL_MATMUL_FORWARD, 3, 512, 384, 640},
                                     {.kernel = KERNEL_COLLECTIVE, .count = 7}};
    const struct work_item given[] = {{KERNEL_FIXED, 2, 5000, 0, 0}, {.kernel = KERNEL_COLLECTIVE, .count = 7}};
    const struct work_item half[] = {{KERNEL_GELU_HALF_FORWARD, 400, 8, 8, 0},
                                     {.kernel = KERNEL_COLLECTIVE, .count = 7}};
    assert_true(dispatch_s > 0 && !(h.types[0].collective_latency.value > 0));
    check_close(cost_work_s(&h, 0, wide, 2, NULL), cost_item_s(&h, 0, &wide[0]));
    check_close(cost_work_s(&h, 0, given, 2, NULL), 2 * 5000e-9);
    check_close(cost_work_s(&h, 0, half, 2, NULL), (400 + 7) * dispatch_s);
    hardware_release(&h);
}

/* cost.h uses the model of types that have one: the A100 does, the T4 does not. */
static void presets_of_the_a100_have_one(void **state)
{
    (void)state;
    struct hardware h = {0};
    struct error err = {0};
    if (hardware_find("a100-sxm4-80gb", &h, &err) != STATUS_OK) fail_msg("%s", err.text);
    h.stack = STACK_FRAMEWORKS;
    const struct device_type *type = &h.types[0];
    assert_true(kernel_model_is_set(&type->kernel_model));
    const struct work_item item = {KERNEL_MATMUL_HALF_FORWARD, 2, 4096, 6144, 2048};
    const struct kernel_rates own = {.flops_per_s = type->peak_bf16.value * type->matmul_efficiency.value,
                                     .bytes_per_s = type->memory_bandwidth.value * type->memory_efficiency.value,
                                     .sustained_flops_per_s = type->peak_bf16.value *
                                                              type->kernel_model.matmul_sustained.value,
                                     .launch_s = type->launch_latency.value, .frameworks = true};
    const struct kernel_seconds took = kernel_model_seconds(&type->kernel_model, own, &item);
    check_close(cost_item_s(&h, 0, &item), took.device_s);
    assert_true(took.multiplies && took.host_s < took.device_s);
    check_collectives(&h);
    check_passes(&h, item);
    hardware_release(&h);
    h = (struct hardware){0};
    if (hardware_find("t4-16gb", &h, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_false(kernel_model_is_set(&h.types[0].kernel_model));
    hardware_release(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waves_are_counted),
        cmocka_unit_test(thin_products_are_bound_by_memory),
        cmocka_unit_test(scores_have_products_and_bytes),
        cmocka_unit_test(a_loss_passes_over_its_logits_as_often_as_said),
        cmocka_unit_test(hosts_of_frameworks_dispatch_kernels),
        cmocka_unit_test(gaps_and_hosts_run_side_by_side),
        cmocka_unit_test(passes_over_activations_are_as_many_as_said),
        cmocka_unit_test(power_limits_full_waves),
        cmocka_unit_test(misaligned_products_have_a_part_of_their_rate),
        cmocka_unit_test(no_shape_is_past_the_rates),
        cmocka_unit_test(collectives_between_others_take_nothing),
        cmocka_unit_test(presets_of_the_a100_have_one),
    };
    return cmocka_run_group_tests_name("models/cost/kernel_model.h", tests, NULL, NULL);
}
