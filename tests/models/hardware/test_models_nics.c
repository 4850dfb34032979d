/* NICs of another rate (models/hardware/hardware.h, struct hardware_options; label: fast). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "models/cost/cost.h"
#include "models/hardware/hardware.h"

static void machine(const char *name, double nic_bytes_per_s, struct hardware *out)
{
    struct error err = {0};
    const struct hardware_options options = {.nic_bytes_per_s = nic_bytes_per_s};
    *out = (struct hardware){0};
    if (hardware_find(name, out, &err) != STATUS_OK || hardware_adjust(out, &options, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

static double link_rate(const struct hardware *hardware, const char *name)
{
    for (uint32_t i = 0; i < hardware->link_count; i++)
        if (strcmp(hardware->links[i].name, name) == 0) return hardware->links[i].bandwidth.value;
    fail_msg("no link '%s'", name);
    return 0;
}

/* Between nodes the NIC's rate is the least on the way; inside of one nothing changes. */
static void copies_between_nodes(void **state)
{
    (void)state;
    static const struct row {
        const char *name;
        uint32_t each; /* devices of a node */
        double inside; /* bytes/s: NVLink, and PCIe through the switch */
    } rows[] = {{"2x p3.16xlarge", 8, 135e9}, {"3x nc24v3", 4, 12.5e9}, {"2x dgx-2", 16, 135e9}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct hardware hardware;
        machine(rows[i].name, 2.385e8, &hardware);
        assert_true(fabs(cost_p2p_bandwidth(&hardware, 1, rows[i].each + 1) - 2.385e8) < 1);
        assert_true(fabs(cost_p2p_bandwidth(&hardware, rows[i].each + 1, 0) - 2.385e8) < 1);
        assert_true(fabs(cost_p2p_bandwidth(&hardware, 0, 1) - rows[i].inside) < 1);
        assert_true(fabs(link_rate(&hardware, "pcie-0") - 12.5e9) < 1);
        hardware_release(&hardware);
    }
}

/* Twenty nodes to a leaf: its uplink has 20 / 3 of a NIC's rate, whatever that is. */
static void uplinks_are_scaled(void **state)
{
    (void)state;
    struct hardware hardware;
    machine("40x dgx-a100-80gb 3:1", 7e9, &hardware);
    assert_true(fabs(link_rate(&hardware, "nic-0") - 7e9) < 1);
    assert_true(fabs(link_rate(&hardware, "nic-319") - 7e9) < 1);
    assert_true(fabs(link_rate(&hardware, "leaf-15") - 20 * 7e9 / 3) < 1);
    hardware_release(&hardware);
}

/* Nodes of two kinds, whose NICs had two rates. */
static void both_kinds(void **state)
{
    (void)state;
    struct hardware hardware;
    machine("2x p3.16xlarge + 2x nc24v3", 3e9, &hardware);
    assert_true(fabs(cost_p2p_bandwidth(&hardware, 0, 8) - 3e9) < 1);
    assert_true(fabs(cost_p2p_bandwidth(&hardware, 16, 20) - 3e9) < 1);
    hardware_release(&hardware);
}

static void one_node(void **state)
{
    (void)state;
    static const char *const names[] = {"p3.16xlarge", "4x a100-sxm4-40gb"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        struct error err = {0};
        struct hardware hardware = {0};
        const struct hardware_options options = {.nic_bytes_per_s = 1e9};
        char expected[128];
        assert_int_equal(hardware_find(names[i], &hardware, &err), STATUS_OK);
        snprintf(expected, sizeof expected, "machine '%s' has no nodes that NICs join", hardware.name);
        assert_int_equal(hardware_adjust(&hardware, &options, &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, expected);
        hardware_release(&hardware);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_between_nodes),
        cmocka_unit_test(uplinks_are_scaled),
        cmocka_unit_test(both_kinds),
        cmocka_unit_test(one_node),
    };
    return cmocka_run_group_tests_name("models/hardware/hardware.h: NICs", tests, NULL, NULL);
}
