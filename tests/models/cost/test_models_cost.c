/*
 * models/cost/cost.h: measured points are given back exactly, times between points follow closed forms, work without
 * measurements follows the roofline, and nothing is ever negative, infinite or not a number.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "models/cost/cost.h"
#include "models/network/network.h"
#include "tests/support/support_models.h"
#include "tests/support/support_plain.h"
#include "tests/support/support_seed.h"

static const struct state_format sgd = {.optimizer = OPTIMIZER_SGD};

/* Finds the machine with its datasheet's values only. */
static void find_plain(const char *name, struct hardware *out)
{
    support_machine(name, out);
    support_plain(out);
}

static void check_close(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-12 * fabs(expected)))
        fail_msg("%.17g and not %.17g", found, expected);
}

/* One device with the given points for one kernel; the rest of the machine is a t4's. */
static struct compute_profile profile;
static void with_points(struct hardware *h, uint32_t kernel, const struct rate_point *points,
                        uint32_t count)
{
    support_machine("t4-16gb", h);
    profile = (struct compute_profile){0};
    profile.kernels[kernel] = (struct kernel_rate){points, count};
    h->types[0].profiles = &profile;
    h->types[0].profile_count = 1;
}

/* --- the roofline --------------------------------------------------------------------------- */

/* A t4: 8.1 TFLOP/s at 0.5, 320 GB/s at 0.8, 5 us a launch. */
static void without_points_the_datasheet_counts(void **state)
{
    (void)state;
    struct hardware h;
    support_machine("t4-16gb", &h);
    struct work_item matmul = {KERNEL_MATMUL_FORWARD, 3, 512, 768, 1024};
    check_close(cost_item_s(&h, 0, &matmul), 3 * (5e-6 + 2.0 * 512 * 768 * 1024 / 4.05e12));
    struct work_item thin = {KERNEL_MATMUL_FORWARD, 1, 1, 768, 1024}; /* bound by its weights */
    check_close(cost_item_s(&h, 0, &thin), 5e-6 + 4.0 * (1024 + 768 * 1024 + 768) / 256e9);
    struct work_item gelu = {KERNEL_GELU_FORWARD, 2, 1000, 3072, 0};
    check_close(cost_item_s(&h, 0, &gelu), 2 * (5e-6 + 8.0 * 1000 * 3072 / 256e9));
    hardware_release(&h);
    find_plain("a100-sxm4-40gb", &h); /* products run on the TF32 units: 156 TFLOP/s at 0.5 */
    check_close(cost_item_s(&h, 0, &matmul),
                3 * 5e-6 + fmax(3 * 2.0 * 512 * 768 * 1024 / 78e12,
                                3 * 4.0 * (512 * 1024 + 768 * 1024 + 512 * 768) / 1.244e12));
    hardware_release(&h);
}

/* An a100's matrix units: 312 TFLOP/s in bf16 at 0.5. A t4 has none of these. */
static void products_of_bf16_have_a_rate_of_their_own(void **state)
{
    (void)state;
    struct hardware h;
    const struct work_item fp32 = {KERNEL_MATMUL_FORWARD, 1, 8192, 8192, 8192};
    const struct work_item bf16 = {KERNEL_MATMUL_BF16_FORWARD, 1, 8192, 8192, 8192};
    find_plain("a100-sxm4-40gb", &h);
    check_close(cost_item_s(&h, 0, &bf16), 5e-6 + 2.0 * 8192 * 8192 * 8192 / 156e12);
    hardware_release(&h);
    support_machine("t4-16gb", &h);
    check_close(cost_item_s(&h, 0, &bf16), cost_item_s(&h, 0, &fp32));
    hardware_release(&h);

    /* where only fp32 was measured: that product, and its operands widened, 6 bytes a number */
    const struct rate_point product[] = {{.m = 64, .n = 128, .k = 256, .seconds = 1e-3}};
    const struct rate_point round[] = {{.m = 1000, .seconds = 2e-6}};
    const struct work_item measured = {KERNEL_MATMUL_BF16_INPUT, 3, 64, 128, 256};
    with_points(&h, KERNEL_MATMUL_INPUT, product, 1);
    profile.kernels[KERNEL_ROUND] = (struct kernel_rate){round, 1};
    check_close(cost_item_s(&h, 0, &measured),
                3 * (1e-3 + 2e-6 / 1000 * (64 * 256 + 256 * 128)));
    /* and moments in bf16 at the rate per byte of others: 20 bytes a parameter for 28 */
    const struct rate_point adamw[] = {{.m = 1000, .seconds = 7e-6}};
    const struct work_item step = {KERNEL_ADAMW_BF16, 1, 1000, 0, 0};
    hardware_release(&h);
    with_points(&h, KERNEL_ADAMW, adamw, 1);
    check_close(cost_item_s(&h, 0, &step), 5e-6);
    hardware_release(&h);
}

/* Kernels of 16 bits on an a100, 312 TFLOP/s at 0.5 and 1555 GB/s at 0.8; on profiles that only have other kernels
 * measured, products take the rate of bf16's, and the rest the rate per byte or FLOP of the wide kernels. */
static void halves_are_like_what_was_measured(void **state)
{
    (void)state;
    struct hardware h;
    const struct work_item product = {KERNEL_MATMUL_HALF_INPUT, 1, 8192, 8192, 8192};
    const struct work_item attention = {KERNEL_ATTENTION_HALF_FORWARD, 1, 64, 8192, 128};
    const struct work_item norm = {KERNEL_NORM_HALF_FORWARD, 3, 8192, 8192, 1};
    const struct work_item wide = {KERNEL_NORM_FORWARD, 3, 8192, 8192, 1};
    find_plain("a100-sxm4-40gb", &h);
    check_close(cost_item_s(&h, 0, &product), 5e-6 + 2.0 * 8192 * 8192 * 8192 / 156e12);
    check_close(cost_item_s(&h, 0, &attention), 5e-6 + 2.0 * 64 * 8192 * 8192 * 128 / 156e12);
    check_close(2 * (cost_item_s(&h, 0, &norm) - 15e-6), cost_item_s(&h, 0, &wide) - 15e-6);
    hardware_release(&h);

    const struct rate_point bf16[] = {{.m = 64, .n = 128, .k = 256, .seconds = 1e-3}};
    const struct rate_point norms[] = {{.m = 30, .n = 50, .k = 1, .seconds = 8e-6}};
    const struct work_item measured = {KERNEL_MATMUL_HALF_INPUT, 3, 64, 128, 256};
    const struct work_item small = {KERNEL_NORM_HALF_FORWARD, 2, 60, 50, 1};
    with_points(&h, KERNEL_MATMUL_BF16_INPUT, bf16, 1);
    profile.kernels[KERNEL_NORM_FORWARD] = (struct kernel_rate){norms, 1};
    check_close(cost_item_s(&h, 0, &measured), 3 * 1e-3);
    check_close(cost_item_s(&h, 0, &small), 2 * 8e-6);
    hardware_release(&h);
}

static void fixed_work_takes_its_time_anywhere(void **state)
{
    (void)state;
    struct hardware h;
    struct work_item fixed = {KERNEL_FIXED, 3, 1234567, 0, 0};
    support_machine("t4-16gb", &h);
    check_close(cost_item_s(&h, 0, &fixed), 3 * 1.234567e-3);
    hardware_release(&h);
    support_machine("host-2-cores", &h);
    check_close(cost_item_s(&h, 0, &fixed), 3 * 1.234567e-3);
    hardware_release(&h);
}

/* 400 GFLOP/s at 0.82 for both cores; one core has half. */
static void a_host_device_has_the_share_of_its_threads(void **state)
{
    (void)state;
    struct hardware h;
    struct work_item matmul = {KERNEL_MATMUL_FORWARD, 1, 512, 768, 1024};
    support_machine("host-2-cores", &h);
    double flops = 2.0 * 512 * 768 * 1024;
    check_close(cost_item_s(&h, 0, &matmul), 2e-6 + flops / 328e9);
    h.threads = 1;
    check_close(cost_item_s(&h, 0, &matmul), 2e-6 + flops / 164e9);
    hardware_release(&h);
}

/* --- grids and scattered points ------------------------------------------------------------- */

/* A full grid 3 x 2 x 2, slower by 2^(i+j+k) per FLOP in each direction. */
static uint32_t make_grid(struct rate_point points[12])
{
    static const uint64_t ms[] = {32, 128, 2048}, ns[] = {64, 1024}, ks[] = {100, 900};
    uint32_t count = 0;
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t j = 0; j < 2; j++)
            for (uint32_t k = 0; k < 2; k++) {
                double flops = 2.0 * (double)ms[i] * (double)ns[j] * (double)ks[k];
                points[count++] = (struct rate_point){
                    ms[i], ns[j], ks[k], flops * 1e-12 * pow(2, i + j + k), 0.01 * (1 + i)};
            }
    return count;
}

static double per_flop(const struct hardware *h, uint64_t m, uint64_t n, uint64_t k)
{
    struct work_item item = {KERNEL_MATMUL_INPUT, 1, m, n, k};
    return cost_item_s(h, 0, &item) / work_item_flops(&item);
}

static void points_of_a_grid_are_given_back(void **state)
{
    (void)state;
    struct rate_point points[12];
    struct hardware h;
    uint32_t count = make_grid(points);
    with_points(&h, KERNEL_MATMUL_INPUT, points, count);
    for (uint32_t i = 0; i < count; i++) {
        struct work_item item = {KERNEL_MATMUL_INPUT, 5, points[i].m, points[i].n, points[i].k};
        double spread;
        check_close(cost_item_s(&h, 0, &item), 5 * points[i].seconds);
        check_close(cost_work_s(&h, 0, &item, 1, &spread), 5 * points[i].seconds);
        check_close(spread, points[i].spread);
    }
    hardware_release(&h);
}

static void between_grid_points_rates_are_geometric_means(void **state)
{
    (void)state;
    struct rate_point points[12];
    struct hardware h;
    with_points(&h, KERNEL_MATMUL_INPUT, points, make_grid(points));
    /* 64 is half way from 32 to 128: the mean of 1 and 2 ps is sqrt(2) ps per FLOP */
    check_close(per_flop(&h, 64, 64, 100), sqrt(2) * 1e-12);
    /* 256 = sqrt(64 * 1024) and 300 = sqrt(100 * 900): two more halves */
    check_close(per_flop(&h, 64, 256, 300), pow(2, 1.5) * 1e-12);
    /* 512 = sqrt(128 * 2048) */
    check_close(per_flop(&h, 512, 1024, 900), pow(2, 1.5 + 2) * 1e-12);
    /* beyond the grid the edge's rate is held */
    check_close(per_flop(&h, 1, 3, 7), 1e-12);
    check_close(per_flop(&h, 1 << 20, 1 << 20, 1 << 20), 16e-12);
    check_close(per_flop(&h, 64, 3, 7), sqrt(2) * 1e-12);
    hardware_release(&h);
}

static void more_of_anything_never_takes_less(void **state)
{
    (void)state;
    struct rate_point points[12];
    struct hardware h;
    with_points(&h, KERNEL_MATMUL_INPUT, points, make_grid(points));
    uint64_t seed = support_seed("more_of_anything_never_takes_less");
    for (uint64_t i = 0; i < 2000; i++) {
        uint64_t size[3];
        for (uint64_t d = 0; d < 3; d++) size[d] = 1 + random_below(seed, 4 * i + d, 3000);
        struct work_item small = {KERNEL_MATMUL_INPUT, 1, size[0], size[1], size[2]}, large = small;
        uint64_t grown = random_below(seed, 4 * i + 3, 3);
        *(grown == 0 ? &large.m : grown == 1 ? &large.n : &large.k) += 1 + i % 50;
        assert_true(cost_item_s(&h, 0, &large) > cost_item_s(&h, 0, &small));
    }
    hardware_release(&h);
}

/* Below the smallest size a part of the seconds stays: 3 us of 3 us + 1 ps for each FLOP. Where other sizes are between
 * measured ones, more never takes less but for the error between these. */
static void small_products_keep_a_part(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {16, 64};
    const double stays = 3e-6, each = 1e-12;
    struct rate_point points[8];
    struct hardware h;
    uint32_t count = 0;
    for (int m = 0; m < 2; m++)
        for (int n = 0; n < 2; n++)
            for (int k = 0; k < 2; k++, count++) {
                points[count] = (struct rate_point){sizes[m], sizes[n], sizes[k], 0, 0};
                points[count].seconds = stays + each * 2 * (double)(sizes[m] * sizes[n] * sizes[k]);
            }
    with_points(&h, KERNEL_MATMUL_INPUT, points, count);
    for (uint64_t small = 1; small <= 16; small++) {
        const struct work_item items[] = {{KERNEL_MATMUL_INPUT, 1, small, 64, 16},
                                          {KERNEL_MATMUL_INPUT, 1, 16, small, 64},
                                          {KERNEL_MATMUL_INPUT, 1, 16, 16, small}};
        for (int i = 0; i < 3; i++)
            check_close(cost_item_s(&h, 0, &items[i]), stays + each * work_item_flops(&items[i]));
    }
    const uint64_t seed = support_seed("small_products_keep_a_part");
    for (uint64_t i = 0; i < 2000; i++) {
        uint64_t size[3];
        for (uint64_t d = 0; d < 3; d++) size[d] = 1 + random_below(seed, 4 * i + d, 70);
        const struct work_item small = {KERNEL_MATMUL_INPUT, 1, size[0], size[1], size[2]};
        size[random_below(seed, 4 * i + 3, 3)]++;
        const struct work_item large = {KERNEL_MATMUL_INPUT, 1, size[0], size[1], size[2]};
        assert_true(cost_item_s(&h, 0, &large) > 0.99 * cost_item_s(&h, 0, &small));
    }
    hardware_release(&h);
}

/* With a missing point it is no grid, and the nearest four points count. */
static void scattered_points_are_given_back_and_bound_what_is_between(void **state)
{
    (void)state;
    struct rate_point points[12];
    struct hardware h;
    uint32_t count = make_grid(points) - 1;
    with_points(&h, KERNEL_MATMUL_INPUT, points, count);
    for (uint32_t i = 0; i < count; i++) {
        struct work_item item = {KERNEL_MATMUL_INPUT, 1, points[i].m, points[i].n, points[i].k};
        check_close(cost_item_s(&h, 0, &item), points[i].seconds);
    }
    uint64_t seed = support_seed("scattered_points_are_given_back_and_bound_what_is_between");
    for (uint64_t i = 0; i < 500; i++) {
        double rate = per_flop(&h, 1 + random_below(seed, 3 * i, 9000),
                               1 + random_below(seed, 3 * i + 1, 9000),
                               1 + random_below(seed, 3 * i + 2, 9000));
        assert_true(rate >= 1e-12 * (1 - 1e-12) && rate <= 16e-12 * (1 + 1e-12));
    }
    /* the number of points of a grid, but one point is moved */
    uint32_t full = make_grid(points);
    points[full - 1].k = 901;
    profile.kernels[KERNEL_MATMUL_INPUT].point_count = full;
    check_close(per_flop(&h, points[3].m, points[3].n, points[3].k),
                points[3].seconds / (2.0 * 32 * 1024 * 900));
    /* a single point: its rate everywhere */
    profile.kernels[KERNEL_MATMUL_INPUT].point_count = 1;
    check_close(per_flop(&h, 77, 5, 123), 1e-12);
    /* two points (one axis): a grid of 2 x 1 x 1 */
    static const struct rate_point two[] = {{10, 10, 10, 2e-9, 0}, {1000, 10, 10, 8e-7, 0}};
    profile.kernels[KERNEL_MATMUL_INPUT] = (struct kernel_rate){two, 2};
    /* 2e-9 / 2000 = 1e-12 and 8e-7 / 200000 = 4e-12; half way 2e-12 */
    check_close(per_flop(&h, 100, 3, 3), 2e-12);
    hardware_release(&h);
}

/* --- kernels bound by memory ---------------------------------------------------------------- */

/* The example of measured_rate.c: 1 MB in 0.1 ms, 16 MB in 3.2 ms; 4 MB takes 4 MB * sqrt(0.1 * 0.2) ns. */
static void bytes_are_interpolated_in_the_logarithm(void **state)
{
    (void)state;
    static const struct rate_point points[] = {
        {125, 1000, 0, 0.1e-3, 0.02}, {250, 8000, 0, 3.2e-3, 0.06}}; /* 8 bytes an element */
    struct hardware h;
    double spread;
    with_points(&h, KERNEL_GELU_FORWARD, points, 2);
    struct work_item first = {KERNEL_GELU_FORWARD, 1, 125, 1000, 0};
    struct work_item same_bytes = {KERNEL_GELU_FORWARD, 1, 1000, 125, 0};
    struct work_item last = {KERNEL_GELU_FORWARD, 7, 250, 8000, 0};
    struct work_item middle = {KERNEL_GELU_FORWARD, 1, 500, 1000, 0};
    struct work_item below = {KERNEL_GELU_FORWARD, 1, 1, 1, 0};
    struct work_item above = {KERNEL_GELU_FORWARD, 1, 1 << 20, 1000, 0};
    check_close(cost_item_s(&h, 0, &first), 0.1e-3);
    check_close(cost_item_s(&h, 0, &same_bytes), 0.1e-3);
    check_close(cost_item_s(&h, 0, &last), 7 * 3.2e-3);
    check_close(cost_work_s(&h, 0, &middle, 1, &spread), 4e6 * sqrt(0.1e-9 * 0.2e-9));
    check_close(spread, 0.04);
    check_close(cost_item_s(&h, 0, &below), 8 * 0.1e-9);
    check_close(cost_item_s(&h, 0, &above), 8e3 * (1 << 20) * 0.2e-9);
    hardware_release(&h);
}

/* As with products: 2 us stay, and 0.1 ns for each byte, of which a number has eight. */
static void few_bytes_keep_a_part(void **state)
{
    (void)state;
    static const struct rate_point points[] = {{16, 100, 0, 2e-6 + 12800 * 1e-10, 0},
                                               {64, 100, 0, 2e-6 + 51200 * 1e-10, 0}};
    struct hardware h;
    with_points(&h, KERNEL_GELU_FORWARD, points, 2);
    for (uint64_t rows = 1; rows <= 16; rows++) {
        const struct work_item item = {KERNEL_GELU_FORWARD, 3, rows, 100, 0};
        check_close(cost_item_s(&h, 0, &item), 3 * (2e-6 + (double)(rows * 800) * 1e-10));
    }
    hardware_release(&h);
}

static void full_attention_borrows_the_causal_rate(void **state)
{
    (void)state;
    static const struct rate_point causal[] = {{12, 64, 64, 1e-4, 0.1}};
    static const struct rate_point full[] = {{12, 64, 64, 3e-4, 0.1}};
    struct hardware h;
    with_points(&h, KERNEL_ATTENTION_FORWARD, causal, 1);
    struct work_item item = {KERNEL_ATTENTION_FULL_FORWARD, 1, 12, 64, 64};
    check_close(cost_item_s(&h, 0, &item), 2e-4); /* twice the FLOPs */
    profile.kernels[KERNEL_ATTENTION_FULL_FORWARD] = (struct kernel_rate){full, 1};
    check_close(cost_item_s(&h, 0, &item), 3e-4);
    hardware_release(&h);
    with_points(&h, KERNEL_ATTENTION_BACKWARD, causal, 1);
    item.kernel = KERNEL_ATTENTION_FULL_BACKWARD;
    check_close(cost_item_s(&h, 0, &item), 2e-4);
    hardware_release(&h);
}

/* 3 s at 10 % and 4 s at 20 % of one kernel, 2 s at 50 % of another:
 * sqrt((0.3 + 0.8)^2 + 1.0^2) / 9 */
static void spreads_add_within_a_kernel_and_square_between(void **state)
{
    (void)state;
    static const struct rate_point gelu[] = {{1, 1000, 0, 3, 0.1}, {100, 1000, 0, 4, 0.2}};
    static const struct rate_point loss[] = {{7, 11, 0, 2, 0.5}};
    struct hardware h;
    with_points(&h, KERNEL_GELU_FORWARD, gelu, 2);
    profile.kernels[KERNEL_LOSS] = (struct kernel_rate){loss, 1};
    struct work_item items[] = {{KERNEL_GELU_FORWARD, 1, 1, 1000, 0},
                                {KERNEL_LOSS, 1, 7, 11, 0},
                                {KERNEL_GELU_FORWARD, 1, 100, 1000, 0}};
    double spread;
    check_close(cost_work_s(&h, 0, items, 3, &spread), 9);
    check_close(spread, sqrt(1.1 * 1.1 + 1) / 9);
    check_close(cost_work_s(&h, 0, items, 3, NULL), 9);
    assert_true(cost_work_s(&h, 0, items, 0, &spread) == 0 && spread == 0);
    hardware_release(&h);
}

/* --- copies --------------------------------------------------------------------------------- */

static void a_datasheet_copy_is_latency_and_bandwidth(void **state)
{
    (void)state;
    struct hardware h;
    support_machine("4x a100-sxm4-40gb", &h);
    check_close(cost_copy_latency_s(&h, 3, COPY_H2D), 1e-5);
    check_close(cost_copy_bandwidth(&h, 3, COPY_D2H), 26e9);
    check_close(cost_copy_s(&h, 3, COPY_H2D, 52000000), 1e-5 + 2e-3);
    check_close(cost_copy_s(&h, 3, COPY_H2D, 0), 1e-5);
    h.links[0].bandwidth.value = 13e9; /* the bridge is the tightest */
    check_close(cost_copy_s(&h, 0, COPY_H2D, 52000000), 1e-5 + 4e-3);
    hardware_release(&h);
}

/* 4 KiB in 5 us; 1 MiB in 80 us; 16 MiB in 1 ms: 16.777 GB/s at the end. */
static void measured_copies_are_given_back(void **state)
{
    (void)state;
    static const struct copy_point points[] = {
        {4096, 5e-6, 0.1}, {1 << 20, 80e-6, 0.1}, {1 << 24, 1e-3, 0.1}};
    struct hardware h;
    support_machine("t4-16gb", &h);
    h.types[0].h2d = points;
    h.types[0].h2d_count = 3;
    h.links[1].latency.value = 1e-6;
    for (size_t i = 0; i < ARRAY_COUNT(points); i++)
        check_close(cost_copy_s(&h, 0, COPY_H2D, points[i].bytes), points[i].seconds);
    /* 64 KiB = sqrt(4 KiB * 1 MiB): 20 us; beyond: the last rate */
    check_close(cost_copy_s(&h, 0, COPY_H2D, 65536), 20e-6);
    check_close(cost_copy_s(&h, 0, COPY_H2D, 1 << 26), 4e-3);
    check_close(cost_copy_bandwidth(&h, 0, COPY_H2D), (1 << 24) / 1e-3);
    /* what the first point takes beyond its bytes */
    check_close(cost_copy_latency_s(&h, 0, COPY_H2D), 5e-6 - 4096 * 1e-3 / (1 << 24));
    assert_true(cost_copy_s(&h, 0, COPY_H2D, 1) < 5e-6);
    check_close(cost_copy_s(&h, 0, COPY_D2H, 12500000), 1e-6 + 1e-3); /* not measured */
    for (uint64_t bytes = 1; bytes < (1 << 25); bytes = bytes * 5 / 4 + 1)
        assert_true(cost_copy_s(&h, 0, COPY_H2D, bytes) <=
                    cost_copy_s(&h, 0, COPY_H2D, bytes * 5 / 4 + 1));
    /* a paced link is never beaten */
    h.links[1].paced = true;
    h.links[1].bandwidth.value = 1e9;
    check_close(cost_copy_bandwidth(&h, 0, COPY_H2D), 1e9);
    check_close(cost_copy_s(&h, 0, COPY_H2D, 1 << 24), 1e-6 + (1 << 24) / 1e9);
    hardware_release(&h);
}

/* --- everything ----------------------------------------------------------------------------- */

static void nothing_is_negative_infinite_or_nan(void **state)
{
    (void)state;
    struct arena arena = {0};
    for (uint32_t p = 0; hardware_preset_name(p); p++)
        for (uint32_t m = 0; network_preset_name(m); m++) {
            struct hardware h;
            struct network n;
            struct error err = {0};
            support_machine(hardware_preset_name(p), &h);
            assert_int_equal(network_find(network_preset_name(m), &arena, &n, &err), STATUS_OK);
            for (uint64_t layer = 0; layer < 2; layer++)
                for (uint32_t pass = 0; pass < PASS_COUNT; pass++) {
                    struct work_item items[LAYER_WORK_MAX];
                    uint64_t at = layer ? n.layer_count - 1 : 1;
                    uint32_t count = network_layer_work(&n, at, (enum network_pass)pass, 1, 1,
                                                        sgd, items);
                    double spread, s = cost_work_s(&h, 0, items, count, &spread);
                    assert_true(isfinite(s) && isfinite(spread) && spread >= 0);
                    assert_true(count == 0 ? s == 0 : s > 0);
                }
            hardware_release(&h);
        }
    arena_release(&arena);
}

/* Hydra's 1 B BERT on its 2080 Ti: the paper's own figures give about 3 TFLOP/s per busy GPU in
 * fp32 (11.3 h, 8 GPUs, 82 % busy, 98 M tokens). The datasheet road must be within a factor 2.5. */
static void hydra_is_not_far_off(void **state)
{
    (void)state;
    struct hardware h;
    struct network n;
    struct arena arena = {0};
    struct error err = {0};
    double seconds = 0, flops = 0;
    support_machine("hydra-8x2080ti", &h);
    assert_int_equal(network_find("hydra-bert-1b", &arena, &n, &err), STATUS_OK);
    for (uint64_t layer = 0; layer < n.layer_count; layer++)
        for (uint32_t pass = 0; pass <= PASS_RECOMPUTE; pass++) {
            struct work_item items[LAYER_WORK_MAX];
            uint32_t count = network_layer_work(&n, layer, (enum network_pass)pass, 16, 128,
                                                sgd, items);
            seconds += cost_work_s(&h, 0, items, count, NULL);
            flops += work_flops(items, count);
        }
    assert_true(flops / seconds > 3e12 / 2.5 && flops / seconds < 3e12 * 2.5);
    hardware_release(&h);
    arena_release(&arena);
}

/* --- copies between devices ------------------------------------------------------------------- */

/* Two NVLinks of 275 GB/s, 5 us each. */
static void a_copy_between_devices_crosses_both_of_their_links(void **state)
{
    (void)state;
    struct hardware h;
    support_machine("4x a100-sxm4-40gb", &h);
    check_close(cost_p2p_latency_s(&h, 3, 1), 1e-5);
    check_close(cost_p2p_bandwidth(&h, 3, 1), 275e9);
    check_close(cost_p2p_s(&h, 3, 1, 50000000), 1e-5 + 5e7 / 275e9);
    h.links[h.devices[1].networks[0].path[0]].bandwidth.value = 100e9; /* the tighter one, each way */
    check_close(cost_p2p_s(&h, 3, 1, 50000000), 1e-5 + 5e-4);
    check_close(cost_p2p_s(&h, 1, 3, 50000000), 1e-5 + 5e-4);
    check_close(cost_p2p_s(&h, 3, 2, 50000000), 1e-5 + 5e7 / 275e9);
    hardware_release(&h);
}

/* Measured times (1 MiB in 80 us, 16 MiB in 1 ms) are returned, unless a paced link is slower; between types the
 * links count. */
static void measured_copies_between_devices_are_given_back(void **state)
{
    (void)state;
    static const struct copy_point points[] = {{1 << 20, 80e-6, 0.1}, {1 << 24, 1e-3, 0.1}};
    struct hardware h;
    support_machine("2x a100-sxm4-40gb", &h);
    struct device_type types[2] = {h.types[0], h.types[0]};
    types[0].p2p = points;
    types[0].p2p_count = ARRAY_COUNT(points);
    h.types = types;
    for (size_t i = 0; i < ARRAY_COUNT(points); i++)
        check_close(cost_p2p_s(&h, 0, 1, points[i].bytes), points[i].seconds);
    check_close(cost_p2p_bandwidth(&h, 0, 1), (1 << 24) / 1e-3);
    h.links[h.devices[0].networks[0].path[0]].paced = true;
    h.links[h.devices[0].networks[0].path[0]].bandwidth.value = 1e9;
    check_close(cost_p2p_bandwidth(&h, 0, 1), 1e9);
    check_close(cost_p2p_s(&h, 0, 1, 1 << 24), 1e-5 + (1 << 24) / 1e9);
    h.devices[1].type = 1;
    check_close(cost_p2p_s(&h, 1, 0, 1 << 24), 1e-5 + (1 << 24) / 1e9);
    /* no link between them: the memory of 1555 GB/s that both are, read and written */
    h.devices[0].networks[0].path_count = h.devices[1].networks[0].path_count = 0;
    check_close(cost_p2p_s(&h, 1, 0, 1555000), 2e-6);
    h.devices[1].type = 0;
    check_close(cost_p2p_s(&h, 1, 0, 1 << 20), 80e-6);
    hardware_release(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_points_the_datasheet_counts),
        cmocka_unit_test(products_of_bf16_have_a_rate_of_their_own),
        cmocka_unit_test(halves_are_like_what_was_measured),
        cmocka_unit_test(fixed_work_takes_its_time_anywhere),
        cmocka_unit_test(a_host_device_has_the_share_of_its_threads),
        cmocka_unit_test(points_of_a_grid_are_given_back),
        cmocka_unit_test(between_grid_points_rates_are_geometric_means),
        cmocka_unit_test(more_of_anything_never_takes_less),
        cmocka_unit_test(scattered_points_are_given_back_and_bound_what_is_between),
        cmocka_unit_test(bytes_are_interpolated_in_the_logarithm),
        cmocka_unit_test(few_bytes_keep_a_part),
        cmocka_unit_test(small_products_keep_a_part),
        cmocka_unit_test(full_attention_borrows_the_causal_rate),
        cmocka_unit_test(spreads_add_within_a_kernel_and_square_between),
        cmocka_unit_test(a_datasheet_copy_is_latency_and_bandwidth),
        cmocka_unit_test(measured_copies_are_given_back),
        cmocka_unit_test(nothing_is_negative_infinite_or_nan),
        cmocka_unit_test(hydra_is_not_far_off),
        cmocka_unit_test(a_copy_between_devices_crosses_both_of_their_links),
        cmocka_unit_test(measured_copies_between_devices_are_given_back),
    };
    return cmocka_run_group_tests_name("models/cost/cost.h", tests, NULL, NULL);
}
