/*
 * The shipped V100 with 16 bits against kernels that were measured one by one (label: fast), which it was fitted to;
 * and fp32, which has none of that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>

#include "base/size.h"
#include "models/cost/cost.h"

static void near_to(double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance * expected)) fail_msg("%.9g (expected %.9g)", found, expected);
}

static double seconds(const struct hardware *hardware, uint32_t kernel, uint64_t m, uint64_t n, uint64_t k)
{
    const struct work_item item = {kernel, 1, m, n, k};
    return cost_work_s(hardware, 0, &item, 1, NULL);
}

/*
 * A sequence of 2048 through a block 5120 wide, on one V100 (Aceso's profiles, microsoft/SuperScaler): its projections
 * of queries, keys and values and its two products of the feed-forward part, microseconds there and back. Back are two
 * products each, the gradients of what went in and of the weights.
 */
static void products(void **state)
{
    (void)state;
    static const struct {
        uint64_t in, out;
        double forward_us, backward_us;
    } measured[] = {{5120, 15360, 4002, 6903}, {5120, 20480, 5034, 8755}, {20480, 5120, 4947, 8842}};
    const uint64_t tokens = 2048;
    struct hardware hardware = {0};
    struct error err = {0};
    double found_s = 0, sum_s = 0;
    assert_int_equal(hardware_find("v100-sxm2-32gb", &hardware, &err), STATUS_OK);
    hardware.stack = STACK_FRAMEWORKS;
    for (size_t i = 0; i < ARRAY_COUNT(measured); i++) {
        uint64_t in = measured[i].in, out = measured[i].out;
        double forward_s = seconds(&hardware, KERNEL_MATMUL_HALF_FORWARD, tokens, out, in);
        double backward_s = seconds(&hardware, KERNEL_MATMUL_HALF_INPUT, tokens, in, out) +
                            seconds(&hardware, KERNEL_MATMUL_HALF_WEIGHT, in, out, tokens);
        near_to(forward_s, 1e-6 * measured[i].forward_us, 0.13);
        near_to(backward_s, 1e-6 * measured[i].backward_us, 0.1);
        found_s += forward_s + backward_s;
        sum_s += 1e-6 * (measured[i].forward_us + measured[i].backward_us);
    }
    near_to(found_s, sum_s, 0.03);
    hardware_release(&hardware);
}

/* A product in fp32 goes at the rate of 1 x 1 convolutions, 0.63 of 15.7 TFLOP/s, whatever its shape. */
static void single_precision(void **state)
{
    (void)state;
    struct hardware hardware = {0};
    struct error err = {0};
    assert_int_equal(hardware_find("v100-sxm2-32gb", &hardware, &err), STATUS_OK);
    double flops = 2.0 * 3000 * 1000 * 5000, launch_s = hardware.types[0].launch_latency.value;
    near_to(seconds(&hardware, KERNEL_MATMUL_FORWARD, 3000, 1000, 5000), launch_s + flops / (0.63 * 15.7e12), 1e-9);
    hardware_release(&hardware);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),
        cmocka_unit_test(single_precision),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
