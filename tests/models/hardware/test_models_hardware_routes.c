/*
 * models/hardware/hardware.h, ways between devices: direct links in a tree, networks that nest, clusters and their
 * routes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json/json_out.h"
#include "base/size.h"
#include "models/hardware/hardware.h"
#include "tests/support/support_hardware_text.h"
#include "tests/support/support_models.h"

/* --- direct links ------------------------------------------------------------------------------ */

/* bridge --+-- left --+-- a        devices 0 (a), 1 (b), 2 (c); P2P over the same links, and device 3
 *          |          +-- b        in a group of its own
 *          +-- right --- c     */
#define TREE_LINK(name)                                                                           \
    "{\"name\": \"" name "\", \"duplex\": true, \"bandwidth\": {\"value\": 10, \"unit\": \"GB/s\", "     \
    "\"kind\": \"assumed\", \"source\": \"made up\", \"as_of\": \"2026-11\"}}"
#define TREE_LINKS                                                                                \
    "\"links\": [" TREE_LINK("bridge") ", " TREE_LINK("left") ", " TREE_LINK("right") ", "         \
    TREE_LINK("a") ", " TREE_LINK("b") ", " TREE_LINK("c") "],"
#define NETWORK(group, path) "{\"group\": " group ", \"path\": [" path "]}"
#define TREE_DEVICE(group, path)                                                                  \
    "{\"type\": \"core\", \"path\": [" path "], \"networks\": [" NETWORK(group, path) "]}"

static const char tree[] =
    HEAD TYPES TREE_LINKS "\"devices\": ["
    TREE_DEVICE("1", "\"bridge\", \"left\", \"a\"") ", "
    TREE_DEVICE("1", "\"bridge\", \"left\", \"b\"") ", "
    TREE_DEVICE("1", "\"bridge\", \"right\", \"c\"") ", "
    TREE_DEVICE("7", "\"bridge\", \"right\"") ", "
    "{\"type\": \"core\", \"path\": [\"bridge\"]}]}";

static void parse_tree(struct hardware *out)
{
    struct error err = {0};
    *out = (struct hardware){0};
    if (support_hardware(tree, out, &err) != STATUS_OK) fail_msg("%s", err.text);
}

static void check_route(const struct hardware *h, uint32_t from, uint32_t to, const char *expected)
{
    struct p2p_route route = hardware_p2p_route(h, from, to);
    char text[128] = "";
    for (uint32_t i = 0; i < route.up_count + route.down_count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s ",
                 i < route.up_count ? "-" : "+", h->links[route.links[i]].name);
    assert_string_equal(text, expected);
}

static void direct_routes_leave_out_what_is_common(void **state)
{
    (void)state;
    struct hardware h, again = {0};
    struct error err = {0};
    parse_tree(&h);
    assert_true(hardware_has_p2p(&h));
    assert_true(hardware_p2p_pair(&h, 0, 1) && hardware_p2p_pair(&h, 2, 0));
    assert_false(hardware_p2p_pair(&h, 0, 0));
    assert_false(hardware_p2p_pair(&h, 0, 3));
    assert_false(hardware_p2p_pair(&h, 0, 4) || hardware_p2p_pair(&h, 4, 4));
    check_route(&h, 0, 1, "-a +b ");
    check_route(&h, 0, 2, "-a -left +right +c ");
    check_route(&h, 2, 1, "-c -right +left +b ");
    struct json_out *out = json_out_create(NULL);
    hardware_write(&h, out, NULL);
    size_t length;
    const char *text = json_out_text(out, &length);
    if (support_hardware(text, &again, &err) != STATUS_OK) fail_msg("%s", err.text);
    check_route(&again, 2, 1, "-c -right +left +b ");
    assert_int_equal(again.devices[3].networks[0].group, 7);
    assert_int_equal(again.devices[4].network_count, 0);
    json_out_destroy(out);
    hardware_release(&again);
    hardware_release(&h);
}

/* A machine that loses devices, or is told to, has no direct links; options can also add links. */
static void direct_links_follow_the_command_line(void **state)
{
    (void)state;
    struct error err = {0};
    static const struct {
        const char *machine;
        struct hardware_options options;
        bool p2p;
        double nvlink; /* 0: has none */
    } rows[] = {
        {"4x a100-sxm4-40gb", {.device_count = 2}, true, 275e9},
        {"4x a100-sxm4-40gb", {.device_count = 1}, false, 0},
        {"4x a100-sxm4-40gb", {.no_p2p = true}, false, 0},
        {"4x a100-sxm4-40gb", {.no_p2p = true, .p2p_bytes_per_s = 3e9}, false, 0},
        {"4x a100-sxm4-40gb", {.link_bytes_per_s = 13e9}, true, 275e9}, /* other links */
        {"4x a100-sxm4-40gb", {.p2p_bytes_per_s = 3e9}, true, 3e9},
        {"2x rtx-3090-24gb", {.device_count = 0}, false, 0},
        {"2x rtx-3090-24gb", {.p2p_bytes_per_s = 3e9}, true, 3e9},
        {"host-2-cores", {.device_count = 2}, false, 0},
        {"host-2-cores", {.device_count = 2, .p2p_bytes_per_s = 3e9}, true, 3e9},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct hardware h;
        support_machine(rows[i].machine, &h);
        if (hardware_adjust(&h, &rows[i].options, &err) != STATUS_OK) fail_msg("%s", err.text);
        assert_int_equal(hardware_has_p2p(&h), rows[i].p2p);
        for (uint32_t d = 0; d < h.device_count && rows[i].p2p; d++) {
            const struct hardware_link *link = &h.links[h.devices[d].networks[0].path[0]];
            assert_true(hardware_p2p_pair(&h, d, d ? 0 : 1));
            assert_true(link->bandwidth.value == rows[i].nvlink);
            assert_int_equal(link->paced, strcmp(h.backend, "host") == 0);
        }
        assert_int_equal(hardware_check(&h, &err), STATUS_OK);
        hardware_release(&h);
    }
    /* a host machine on paced links stands in for one without */
    struct hardware h;
    support_machine("host-2-cores", &h);
    hardware_join(&h.devices[0], 1);
    const struct hardware_options two = {.device_count = 2}, paced = {.link_bytes_per_s = 1e9};
    assert_int_equal(hardware_adjust(&h, &two, &err), STATUS_OK);
    assert_true(hardware_has_p2p(&h));
    assert_int_equal(hardware_adjust(&h, &paced, &err), STATUS_OK);
    assert_false(hardware_has_p2p(&h));
    hardware_release(&h);
}

static void bad_direct_links_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *device, *message;
    } rows[] = {
        {"\"networks\": [" NETWORK("1", "\"nvlink\"") "]", "test:5:83: unknown link 'nvlink'"},
        {"\"networks\": [" NETWORK("1", "\"dram\", \"dram\"") "]",
         "test:5:91: link 'dram' is on the path twice"},
        {"\"networks\": [{\"path\": []}]", "test:5:61: missing key 'group'"},
        {"\"networks\": [{\"group\": 1}]", "test:5:61: missing key 'path'"},
        {"\"networks\": [" NETWORK("0", "") "]", "test:5:71: 'group' is 0 (expected 1 to 49152)"},
        {"\"networks\": [" NETWORK("3", "") ", " NETWORK("3", "") "]",
         "test:5:97: network 3 is listed twice"},
        {"\"networks\": [" NETWORK("1", "") ", " NETWORK("2", "") ", " NETWORK("3", "") ", " NETWORK(
             "4", "") ", " NETWORK("5", "") "]", "test:5:60: 'networks' has 5 elements (expected at most 4)"},
        {"\"networks\": 7", "test:5:60: 'networks' is a number (expected an array)"},
        {"\"p2p_path\": []", "test:5:48: unknown key 'p2p_path' (expected type, path, networks or memory_bytes)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct hardware h = {0};
        struct error err = {0};
        char text[4096];
        snprintf(text, sizeof text, HEAD TYPES LINKS
                 "\"devices\": [{\"type\": \"core\", \"path\": [\"dram\"], %s}]}", rows[i].device);
        enum status status = support_hardware(text, &h, &err);
        if (strcmp(err.text, rows[i].message) != 0)
            print_error("expected %s, found %s\n", rows[i].message, err.text);
        assert_string_equal(err.text, rows[i].message);
        assert_int_equal(status, STATUS_BAD_INPUT);
    }
}

/* --- clusters -------------------------------------------------------------------------------- */

/* 41 nodes in three pods of at most 20, 2:1. Devices 3 and 5 are in one node; 3 and 11 at one leaf, which a
 * copy between them does not leave; 3 and 12 at two leaves of one pod, 3 and 163 in two pods. */
static void routes_of_a_cluster(void **state)
{
    (void)state;
    struct hardware h;
    struct error err = {0};
    support_machine("41x dgx-a100-80gb 2:1", &h);
    assert_string_equal(h.name, "41x dgx-a100-80gb 2:1");
    assert_int_equal(h.device_count, 328);
    assert_int_equal(hardware_check(&h, &err), STATUS_OK);
    check_route(&h, 3, 5, "-nvlink-3 +nvlink-5 ");
    check_route(&h, 3, 11, "-pcie-3 -nic-3 +nic-11 +pcie-11 ");
    check_route(&h, 3, 12, "-pcie-3 -nic-3 -leaf-3 +leaf-4 +nic-12 +pcie-12 ");
    check_route(&h, 3, 163, "-pcie-3 -nic-3 -leaf-3 +leaf-11 +nic-163 +pcie-163 ");
    check_route(&h, 163, 3, "-pcie-163 -nic-163 -leaf-11 +leaf-3 +nic-3 +pcie-3 ");
    assert_true(hardware_p2p_route(&h, 3, 5).innermost && !hardware_p2p_route(&h, 3, 11).innermost);
    /* 20 NICs of 22.5e9 B/s, half of that upwards */
    const struct hardware_network *outer = hardware_network_of(&h, 3, 163);
    assert_true(fabs(h.links[outer->path[0]].bandwidth.value - 225e9) < 1);
    hardware_release(&h);
    /* a tree that is not oversubscribed needs no leaves; two devices have one NIC in p4d nodes, all in p3dn */
    support_machine("2x dgx-a100-80gb", &h);
    check_route(&h, 3, 12, "-pcie-3 -nic-3 +nic-12 +pcie-12 ");
    hardware_release(&h);
    support_machine("2x p4d.24xlarge", &h);
    check_route(&h, 3, 12, "-pcie-3 -nic-1 +nic-6 +pcie-12 ");
    assert_true(fabs(h.links[h.devices[0].path[2]].bandwidth.value - 12.5e9) < 1); /* of its host */
    hardware_release(&h);
    support_machine("2x p3dn.24xlarge", &h);
    check_route(&h, 3, 12, "-pcie-3 -nic-0 +nic-1 +pcie-12 ");
    hardware_release(&h);
    support_machine("2x nc24v3", &h); /* over PCIe in a node, through the bridge where switches differ */
    check_route(&h, 0, 1, "-pcie-0 +pcie-1 ");
    check_route(&h, 0, 2, "-pcie-0 -switch-0 +switch-1 +pcie-2 ");
    check_route(&h, 0, 5, "-pcie-0 -nic-0 +nic-1 +pcie-5 ");
    hardware_release(&h);
}

/* The largest machine survives writing and reading. */
static void the_largest_cluster(void **state)
{
    (void)state;
    struct hardware h, again = {0};
    struct error err = {0};
    size_t length;
    support_machine("3072x dgx-h100 4:1", &h);
    assert_int_equal(h.device_count, HARDWARE_DEVICES_MAX);
    assert_int_equal(hardware_check(&h, &err), STATUS_OK);
    struct json_out *out = json_out_create(NULL);
    hardware_write(&h, out, NULL);
    if (support_hardware(json_out_text(out, &length), &again, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_int_equal(hardware_check(&again, &err), STATUS_OK);
    for (uint32_t d = 1; d < HARDWARE_DEVICES_MAX; d = 3 * d + 1) {
        struct p2p_route a = hardware_p2p_route(&h, d / 3, d), b = hardware_p2p_route(&again, d / 3, d);
        assert_memory_equal(&a, &b, sizeof a);
    }
    json_out_destroy(out);
    hardware_release(&again);
    hardware_release(&h);
}

static void clusters_that_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *message;
    } rows[] = {
        {"3073x dgx-h100", "'3073x dgx-h100' has 3073 nodes (expected 1 to 3072)"},
        {"0x dgx-h100", "'0x dgx-h100' has 0 nodes (expected 1 to 3072)"},
        {"2x hydra-8x2080ti", "'hydra-8x2080ti' has no NIC: nothing joins it to other nodes"},
        {"2x p3dn.24xlarge 2:1", "'2x p3dn.24xlarge 2:1': nodes 'p3dn.24xlarge' meet in one switch, which cannot be "
                                 "oversubscribed"},
        {"2x dgx-h100 2:3", "'2x dgx-h100 2:3': unknown oversubscription (expected 1:1 to 1000000:1)"},
        {"2x dgx-h100 0.5:1", "'2x dgx-h100 0.5:1': unknown oversubscription (expected 1:1 to "
                              "1000000:1)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct hardware h = {0};
        struct error err = {0};
        assert_int_not_equal(hardware_find(rows[i].name, &h, &err), STATUS_OK);
        assert_string_equal(err.text, rows[i].message);
    }
}

/* Three devices in one network; the last one is in another network around it. */
static void networks_nest(void **state)
{
    (void)state;
    struct hardware h;
    struct error err = {0};
    support_machine("2x dgx-a100-80gb", &h);
    h.devices[2].networks[1].group = 9;
    assert_int_equal(hardware_check(&h, &err), STATUS_CHECK);
    assert_string_equal(err.text, "devices 0 and 2 share network 1, but differ in the next network: 3 "
                                  "and 9 (0: none)");
    h.devices[2].network_count = 1;
    err = (struct error){0};
    assert_int_equal(hardware_check(&h, &err), STATUS_CHECK);
    assert_string_equal(err.text, "devices 0 and 2 share network 1, but differ in the next network: 3 "
                                  "and 0 (0: none)");
    hardware_release(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routes_of_a_cluster),
        cmocka_unit_test(the_largest_cluster),
        cmocka_unit_test(clusters_that_are_refused),
        cmocka_unit_test(networks_nest),
        cmocka_unit_test(direct_routes_leave_out_what_is_common),
        cmocka_unit_test(direct_links_follow_the_command_line),
        cmocka_unit_test(bad_direct_links_are_refused),
    };
    return cmocka_run_group_tests_name("hardware routes", tests, NULL, NULL);
}
