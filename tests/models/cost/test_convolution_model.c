/*
 * models/cost/convolution_model.h (label: fast): 3 x 3 convolutions by their closed form, the direct product where
 * channels are few, and against measured ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>

#include "base/size.h"
#include "models/cost/convolution_model.h"
#include "models/cost/cost.h"
#include "models/network/network_cnn.h"

static const struct kernel_rates rates = {.flops_per_s = 3e12, .bytes_per_s = 7e11, .launch_s = 2e-6};

static void near_to(double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance * expected)) fail_msg("%.9g (expected %.9g)", found, expected);
}

static double seconds(uint32_t kernel, uint64_t m, uint64_t n, uint64_t k)
{
    return convolution_model_s(rates, &(struct work_item){kernel, 1, m, n, k});
}

/*
 * 4000 pixels of 96 channels to 160: an image of 384 000 numbers, a result of 640 000, 138 240 taps. 1.10592 GFLOP as a
 * product, a quarter of it here; 4 (5.5 * 1 024 000 + 9 * 138 240) = 27 504 640 bytes.
 */
static void closed_form(void **state)
{
    (void)state;
    double expected_s = 3 * 2e-6 + 1.10592e9 / 4 / 3e12 + 27504640 / 7e11;
    near_to(seconds(KERNEL_CONVOLUTION_3X3_FORWARD, 4000, 160, 864), expected_s, 1e-12);
    near_to(seconds(KERNEL_CONVOLUTION_3X3_INPUT, 4000, 864, 160), expected_s, 1e-12);
    near_to(seconds(KERNEL_CONVOLUTION_3X3_WEIGHT, 160, 864, 4000), expected_s, 1e-12);
    struct work_item five = {KERNEL_CONVOLUTION_3X3_FORWARD, 5, 4000, 160, 864};
    near_to(convolution_model_s(rates, &five), 5 * expected_s, 1e-12);
}

/* Three channels to 8 are a product: 432 FLOPs for each pixel, and 44 bytes. */
static void direct(void **state)
{
    (void)state;
    double pixels = 1e6, bytes = 4 * (11 * pixels + 216), flops = 432 * pixels;
    near_to(seconds(KERNEL_CONVOLUTION_3X3_FORWARD, 1000000, 8, 27), 2e-6 + fmax(flops / 3e12, bytes / 7e11), 1e-12);
}

/*
 * Forward passes of VGG16 and ResNet-50 for 128 images, milliseconds, as PipeDream's profiler measured them
 * (docs/instances/pipedream); the host's 0.25 ms, which the smallest operations there take, apart. The shipped V100
 * predicts them. Its fp32 efficiency comes from 1 x 1 convolutions; none of these measurements was used. Operations
 * that occur more than once count with their mean.
 */
static void measured(void **state)
{
    (void)state;
    static const struct {
        uint64_t side, in, out;
        double measured_ms;
    } points[] = {{112, 64, 128, 15.155}, {112, 128, 128, 22.062}, {56, 128, 256, 10.814}, {56, 256, 256, 15.851},
                  {28, 256, 512, 9.249},  {28, 512, 512, 13.567},  {56, 64, 64, 2.169},    {28, 128, 128, 1.434}};
    struct hardware hardware = {0};
    struct error err = {0};
    assert_int_equal(hardware_find("v100-sxm2-16gb", &hardware, &err), STATUS_OK);
    double sum_s = 0, measured_s = 0;
    for (size_t i = 0; i < ARRAY_COUNT(points); i++) {
        uint64_t pixels = 128 * points[i].side * points[i].side;
        struct work_item item = {KERNEL_CONVOLUTION_3X3_FORWARD, 1, pixels, points[i].out, 9 * points[i].in};
        double one_s = cost_item_s(&hardware, 0, &item), kernel_s = 1e-3 * points[i].measured_ms - 0.25e-3;
        near_to(one_s, kernel_s, 0.35);
        sum_s += one_s;
        measured_s += kernel_s;
    }
    near_to(sum_s, measured_s, 0.1);
    hardware_release(&hardware);
}

/* With matrix cores for fp32, it is a product like others. */
static void matrix_cores(void **state)
{
    (void)state;
    struct hardware hardware = {0};
    struct error err = {0};
    assert_int_equal(hardware_find("rtx-3090-24gb", &hardware, &err), STATUS_OK);
    struct work_item item = {KERNEL_CONVOLUTION_3X3_FORWARD, 1, 100352, 512, 4608}, plain = item;
    plain.kernel = KERNEL_CONVOLUTION_FORWARD;
    assert_true(cost_item_s(&hardware, 0, &item) == cost_item_s(&hardware, 0, &plain));
    hardware_release(&hardware);
}

/* Of ResNet-50's 53 convolutions 13 are such (3 x 3, and not those three that halve the image); a WRN-28-10's 25
 * but for the three shortcuts and two that halve. Their FLOPs at least: a quarter. */
static void networks(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t count;
    } known[] = {{"resnet-50", 13}, {"wrn-28-10", 23}, {"vgg16", 13}};
    for (size_t i = 0; i < ARRAY_COUNT(known); i++) {
        struct arena arena = {0};
        struct network network;
        struct error err = {0};
        struct work_item items[LAYER_WORK_MAX];
        uint32_t found = 0;
        assert_int_equal(cnn_preset_make(cnn_preset_find(known[i].name), 0, 0, &arena, &network, &err),
                         STATUS_OK);
        for (uint64_t layer = 0; layer < network.layer_count; layer++) {
            struct work_list list = {.items = items, .capacity = LAYER_WORK_MAX};
            graph_layer_work(network.graph, layer, PASS_FORWARD, 2, &list);
            for (uint32_t w = 0; w < list.count; w++) {
                if (!work_is_convolution_3x3(items[w].kernel)) continue;
                found += items[w].count;
                assert_true(4 * work_least_flops(&items[w], 1) == work_flops(&items[w], 1));
            }
        }
        assert_int_equal(found, known[i].count);
        arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_form), cmocka_unit_test(direct),   cmocka_unit_test(measured),
        cmocka_unit_test(matrix_cores), cmocka_unit_test(networks),
    };
    return cmocka_run_group_tests_name("models/cost/convolution_model.h", tests, NULL, NULL);
}
