/*
 * bound_host_rate(), which sums up branches in one pass where they follow each other: against a closed form, and
 * against the same machine with its devices in another order, where every device is compared with all others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "planner/spill/cut/bound.h"
#include "tests/support/sim/support_sim.h"
#include "tests/support/support_seed.h"

/* Two hosts' bridges of 30 and 100; below the first bridge switches of 16 and 8 with devices of 12 each, two and
 * one; below the second one device of 12 without a switch: min(30, min(16, 24) + min(8, 12)) + min(100, 12) = 24 +
 * 12. */
static void sums_up_branches(void **state)
{
    struct hardware hardware;
    (void)state;
    sim_test_machine(&hardware, "cuda", 4);
    uint32_t bridge = sim_test_link(&hardware, 30, 0, true), wide = sim_test_link(&hardware, 100, 0, true);
    uint32_t first = sim_test_link(&hardware, 16, 0, true), second = sim_test_link(&hardware, 8, 0, true);
    for (uint32_t d = 0; d < 4; d++) {
        sim_test_connect(&hardware, d, d < 3 ? bridge : wide);
        if (d < 3) sim_test_connect(&hardware, d, d < 2 ? first : second);
        sim_test_connect(&hardware, d, sim_test_link(&hardware, 12, 0, true));
    }
    SIM_ASSERT_CLOSE(bound_host_rate(&hardware), 36);
    hardware_release(&hardware);
}

static void swap_devices(struct hardware *hardware, uint32_t a, uint32_t b)
{
    struct hardware_device device = hardware->devices[a];
    hardware->devices[a] = hardware->devices[b];
    hardware->devices[b] = device;
}

static void order_of_devices_makes_no_difference(void **state)
{
    struct sim_test_random random = {.key = support_seed("host rate")};
    (void)state;
    for (uint32_t i = 0; i < 200; i++) {
        struct hardware hardware;
        uint32_t devices = 2 + sim_test_below(&random, 60), bridge = 0, uplink = 0;
        sim_test_machine(&hardware, "cuda", devices);
        for (uint32_t d = 0; d < devices; d++) {
            if (d == 0 || sim_test_below(&random, 8) == 0) {
                bridge = sim_test_link(&hardware, sim_test_between(&random, 10, 200), 0,
                                       sim_test_below(&random, 2) == 0);
                uplink = 0;
            }
            if (sim_test_below(&random, 3) == 0)
                uplink = sim_test_link(&hardware, sim_test_between(&random, 5, 30), 0, true);
            sim_test_connect(&hardware, d, bridge);
            if (uplink > 0) sim_test_connect(&hardware, d, uplink);
            sim_test_connect(&hardware, d, sim_test_link(&hardware, sim_test_between(&random, 5, 20), 0, true));
        }
        double rate = bound_host_rate(&hardware);
        for (uint32_t d = devices; d-- > 1;) swap_devices(&hardware, d, sim_test_below(&random, d + 1));
        SIM_ASSERT_CLOSE(bound_host_rate(&hardware), rate);
        hardware_release(&hardware);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_up_branches),
        cmocka_unit_test(order_of_devices_makes_no_difference),
    };
    return cmocka_run_group_tests_name("bound_host_rate() of planner/spill/cut/bound.h", tests, NULL, NULL);
}
