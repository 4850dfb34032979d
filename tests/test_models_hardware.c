/*
 * models/hardware.h: every preset is whole and sensible, names and refusals, files that read back
 * to the bit, what the command line changes, and the checks, each with one thing broken.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json_out.h"
#include "base/size.h"
#include "models/cost.h"
#include "models/hardware.h"
#include "tests/support_models.h"

static void find(const char *name, struct hardware *out)
{
    struct error err = {0};
    *out = (struct hardware){0};
    if (hardware_find(name, out, &err) != STATUS_OK) fail_msg("%s", err.text);
}

/* --- presets -------------------------------------------------------------------------------- */

static void check_figure(const struct figure *figure)
{
    assert_true(isfinite(figure->value) && figure->value >= 0);
    assert_true(figure->kind < FIGURE_KIND_COUNT);
    if (figure->value == 0 && !figure->source) return;
    assert_non_null(figure->source);
    assert_non_null(figure->as_of);
}

static void check_figures(const struct hardware *h)
{
    check_figure(&h->host_bytes);
    for (uint32_t i = 0; i < h->link_count; i++) {
        check_figure(&h->links[i].bandwidth);
        check_figure(&h->links[i].latency);
    }
    for (uint32_t i = 0; i < h->type_count; i++) {
        const struct device_type *t = &h->types[i];
        const struct figure *all[] = {
            &t->memory_bytes,      &t->usable_bytes,      &t->peak_fp32,
            &t->peak_tf32,         &t->peak_bf16,         &t->memory_bandwidth,
            &t->matmul_efficiency, &t->memory_efficiency, &t->launch_latency,    &t->board_power};
        for (size_t f = 0; f < ARRAY_COUNT(all); f++) check_figure(all[f]);
    }
}

static void every_preset_is_sensible_and_says_its_sources(void **state)
{
    (void)state;
    uint32_t count = 0;
    for (; hardware_preset_name(count); count++) {
        struct hardware h;
        struct error err = {0};
        find(hardware_preset_name(count), &h);
        if (hardware_check(&h, &err) != STATUS_OK) fail_msg("%s: %s", h.name, err.text);
        assert_string_equal(h.name, hardware_preset_name(count));
        assert_non_null(hardware_preset_summary(count));
        assert_non_null(h.note);
        check_figures(&h);
        hardware_release(&h);
    }
    assert_int_equal(count, 55);
}

/* Datasheets, by hand. */
static void presets_have_their_datasheets(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double memory_gib, usable_mib, bandwidth, fp32, tf32, bf16, link;
    } rows[] = {
        {"gtx-1080-ti-11gb", 11, 11178 - 512, 484e9, 11.3e12, 0, 0, 12.5e9},
        {"v100-sxm2-16gb", 16, 16160 - 512, 900e9, 15.7e12, 0, 125e12, 12.5e9},
        {"rtx-2080-ti-11gb", 11, 11012 - 512, 616e9, 13.4e12, 0, 0, 12.5e9},
        {"rtx-3090-24gb", 24, 24576 - 512, 936e9, 35.6e12, 35.6e12, 71.2e12, 26e9},
        {"a10g-24gb", 24, 23028 - 512, 600e9, 35e12, 35e12, 70e12, 26e9},
        {"a100-sxm4-40gb", 40, 40960 - 512, 1555e9, 19.5e12, 156e12, 312e12, 26e9},
        {"a100-sxm4-80gb", 80, 81920 - 512, 2039e9, 19.5e12, 156e12, 312e12, 26e9},
        {"h100-sxm5-80gb", 80, 81559 - 512, 3350e9, 67e12, 494.7e12, 989.4e12, 52e9},
        {"h200-sxm-141gb", 141, 143771 - 512, 4800e9, 67e12, 494.7e12, 989.4e12, 52e9},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct hardware h;
        find(rows[i].name, &h);
        const struct device_type *t = &h.types[0];
        assert_true(t->memory_bytes.value == rows[i].memory_gib * 0x1p30);
        assert_true(t->usable_bytes.value == rows[i].usable_mib * 0x1p20);
        assert_true(t->memory_bandwidth.value == rows[i].bandwidth);
        assert_true(t->peak_fp32.value == rows[i].fp32);
        assert_true(t->peak_tf32.value == rows[i].tf32);
        assert_true(t->peak_bf16.value == rows[i].bf16);
        assert_int_equal(h.device_count, 1);
        assert_int_equal(h.devices[0].memory_bytes, (uint64_t)t->usable_bytes.value);
        assert_int_equal(h.devices[0].path_count, 2);
        const struct hardware_link *bridge = &h.links[h.devices[0].path[0]];
        const struct hardware_link *link = &h.links[h.devices[0].path[1]];
        assert_true(link->duplex && link->bandwidth.value == rows[i].link);
        assert_true(!bridge->duplex && fabs(bridge->bandwidth.value / rows[i].link - 1.42) < 1e-9);
        hardware_release(&h);
    }
}

/* Five devices: a bridge, three switches, five links, five NVLinks; devices 0 and 1 share a switch, 4 has
 * its own. */
static void several_devices_sit_behind_switches(void **state)
{
    (void)state;
    struct hardware h;
    find("5x a100-sxm4-40gb", &h);
    assert_string_equal(h.name, "5x a100-sxm4-40gb");
    assert_int_equal(h.device_count, 5);
    assert_int_equal(h.link_count, 14);
    assert_true(hardware_has_p2p(&h));
    assert_int_equal(h.type_count, 1);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(h.devices[i].path_count, 3);
        assert_int_equal(h.devices[i].path[0], 0);
        assert_int_equal(h.devices[i].path[1], 1 + i / 2);
        assert_int_equal(h.devices[i].path[2], 4 + i);
        assert_int_equal(h.devices[i].network_count, 1);
        assert_int_equal(h.devices[i].networks[0].group, 1);
        assert_int_equal(h.devices[i].networks[0].path_count, 1);
        assert_int_equal(h.devices[i].networks[0].path[0], 9 + i);
    }
    assert_string_equal(h.links[0].name, "bridge-0");
    assert_string_equal(h.links[3].name, "switch-2");
    assert_string_equal(h.links[8].name, "pcie-4");
    assert_true(fabs(h.links[0].bandwidth.value - 3 * 1.42 * 26e9) < 1);
    assert_true(h.host_bytes.value == 5 * 128 * 0x1p30);
    hardware_release(&h);
    find("2xNVIDIA A100-SXM4-40GB", &h);
    assert_string_equal(h.name, "2x a100-sxm4-40gb");
    hardware_release(&h);
    find("1x t4-16gb", &h);
    assert_string_equal(h.name, "t4-16gb");
    hardware_release(&h);
}

static void hydra_has_its_machines(void **state)
{
    (void)state;
    struct hardware h;
    find("hydra-8x2080ti", &h);
    assert_int_equal(h.device_count, 8);
    assert_int_equal(h.host_cores, 80);
    assert_true(h.host_bytes.value == 500e9);
    assert_string_equal(h.types[0].name, "rtx-2080-ti-11gb");
    /* sqrt(0.18 * 0.525) = 0.307, of the machine; the same GPU elsewhere has the default */
    assert_float_equal(h.types[0].matmul_efficiency.value, 0.31, 0);
    assert_int_equal(h.types[0].matmul_efficiency.kind, FIGURE_FITTED);
    /* bridge, switch, PCIe: but for the bridge nothing is shared */
    for (uint32_t d = 0; d < h.device_count; d++) {
        assert_int_equal(h.devices[d].path_count, 3);
        for (uint32_t other = 0; other < d; other++) {
            assert_int_equal(h.devices[other].path[0], h.devices[d].path[0]);
            assert_int_not_equal(h.devices[other].path[1], h.devices[d].path[1]);
            assert_int_not_equal(h.devices[other].path[2], h.devices[d].path[2]);
        }
    }
    hardware_release(&h);
    find("8x rtx-2080-ti-11gb", &h);
    assert_float_equal(h.types[0].matmul_efficiency.value, hardware_default_matmul_efficiency.value, 0);
    assert_int_equal(h.devices[0].path[1], h.devices[1].path[1]);
    hardware_release(&h);
    find("hydra-8x1080ti", &h);
    assert_int_equal(h.host_cores, 10);
    assert_true(h.host_bytes.value == 512e9);
    hardware_release(&h);
}

/* A fit of a node is of that node: its GPUs have their own figures, or the defaults, elsewhere. */
static void a_node_may_have_a_fit_of_its_own(void **state)
{
    (void)state;
    struct hardware node, board;
    find("dgx-2", &node);
    find("16x v100-sxm2-32gb", &board);
    const struct device_type *fitted = &node.types[0], *plain = &board.types[0];
    assert_string_equal(fitted->name, plain->name);
    assert_int_equal(fitted->matmul_efficiency.kind, FIGURE_FITTED);
    assert_float_equal(fitted->matmul_efficiency.value, 0.4, 0);
    assert_float_equal(fitted->kernel_model.matmul_depth.value, 1500, 0);
    assert_true(plain->matmul_efficiency.value != fitted->matmul_efficiency.value);
    assert_float_equal(fitted->memory_efficiency.value, hardware_default_memory_efficiency.value, 0);
    assert_float_equal(fitted->launch_latency.value, 5e-6, 0); /* neither is fitted: the defaults stay */
    /* what was fitted to products of 16 bits says nothing of those in fp32 */
    const struct work_item wide = {KERNEL_MATMUL_FORWARD, 3, 4096, 1024, 1024}, half = {KERNEL_MATMUL_HALF_FORWARD, 3, 4096, 1024, 1024};
    assert_true(cost_item_s(&node, 0, &wide) == cost_item_s(&board, 0, &wide));
    assert_true(cost_item_s(&node, 0, &half) > cost_item_s(&board, 0, &half));
    hardware_release(&node);
    hardware_release(&board);
}

/* Products are as fast as is stated, also above what the A100's are known to sustain: the more the faster. */
static void a_stated_efficiency_holds(void **state)
{
    (void)state;
    static const double shares[] = {0.31, 0.62, 0.83, 0.97};
    const struct work_item large = {KERNEL_MATMUL_HALF_FORWARD, 1, 27648, 16384, 8192};
    double before_s = INFINITY;
    for (size_t i = 0; i < ARRAY_COUNT(shares); i++) {
        struct hardware h;
        struct error err = {0};
        const struct hardware_options options = {.matmul_efficiency = shares[i]};
        find("a100-sxm4-80gb", &h);
        assert_true(h.types[0].kernel_model.matmul_sustained.value > 0.7 && h.types[0].kernel_model.matmul_sustained.value < 0.8);
        assert_int_equal(hardware_adjust(&h, &options, &err), STATUS_OK);
        double seconds = cost_item_s(&h, 0, &large);
        assert_true(seconds < before_s && seconds >= work_item_flops(&large) / (shares[i] * 312e12));
        before_s = seconds;
        hardware_release(&h);
    }
}

/* The name that a price list has, the one that the driver prints, and what both are here. */
static void machines_have_several_names(void **state)
{
    (void)state;
    static const struct {
        const char *name, *same;
        uint32_t devices;
        double watts; /* of a board from its datasheet */
    } rows[] = {
        {"2x aws:g5.48xlarge", "2x g5.48xlarge", 16, 300}, {"aws:p4d.24xlarge", "p4d.24xlarge", 8, 400},
        {"aws:p5en.48xlarge", "p5en.48xlarge", 8, 700},    {"NVIDIA A100-SXM4-40GB", "a100-sxm4-40gb", 1, 400},
        {"NVIDIA H100 80GB HBM3", "h100-sxm5-80gb", 1, 700}, {"dgx-2", "dgx-2", 16, 300},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct hardware h;
        find(rows[i].name, &h);
        assert_string_equal(h.name, rows[i].same);
        assert_int_equal(h.device_count, rows[i].devices);
        assert_float_equal(h.types[0].board_power.value, rows[i].watts, 0);
        hardware_release(&h);
    }
}

static void unknown_names_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *message;
    } rows[] = {
        {"a100", "'a100' does not say which machine is meant (expected one of a100-sxm4-40gb, "
                 "a100-sxm4-80gb, a100-pcie-40gb, a100-pcie-80gb, dgx-a100-80gb)"},
        {"4x A100", "'A100' does not say which machine is meant (expected one of a100-sxm4-40gb, "
                    "a100-sxm4-80gb, a100-pcie-40gb, a100-pcie-80gb, dgx-a100-80gb)"},
        {"rtx-3090", "'rtx-3090' does not say which machine is meant (expected rtx-3090-24gb)"},
        {"h100", "'h100' does not say which machine is meant (expected one of h100-sxm5-80gb, h100-pcie-80gb, dgx-h100)"},
        {"aws:dgx-2", "unknown machine 'aws:dgx-2' (did you mean 'dgx-2'?)"},
        {"rtx-3090-42gb", "unknown machine 'rtx-3090-42gb' (did you mean 'rtx-3090-24gb'?)"},
        {"mi300", "unknown machine 'mi300' (expected a preset such as a100-sxm4-40gb, '4x "
                  "rtx-3090-24gb', '2x dgx-a100-80gb', or the path of a hardware file)"},
        {"", "unknown machine '' (expected a preset such as a100-sxm4-40gb, '4x "
             "rtx-3090-24gb', '2x dgx-a100-80gb', or the path of a hardware file)"},
        {"0x t4-16gb", "'0x t4-16gb' has 0 devices (expected 1 to 4096)"},
        {"4097x t4-16gb", "'4097x t4-16gb' has 4097 devices (expected 1 to 4096)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct hardware h = {0};
        struct error err = {0};
        assert_int_not_equal(hardware_find(rows[i].name, &h, &err), STATUS_OK);
        assert_string_equal(err.text, rows[i].message);
        assert_int_equal(h.device_count, 0);
    }
}

/* --- files ---------------------------------------------------------------------------------- */

#define FIGURE(value, unit) \
    "{\"value\": " value ", \"unit\": \"" unit "\", \"kind\": \"measured\", \"source\": \"s\", " \
    "\"as_of\": \"2026-11\", \"spread\": 0.03}"
#define HEAD \
    "{\"spillway_hardware\": 1, \"name\": \"m\", \"backend\": \"host\",\n\"host\": {\"memory\": " \
    FIGURE("24", "GiB") ", \"cores\": 2, \"threads\": 1},\n"
#define TYPES \
    "\"device_types\": [{\"name\": \"core\", \"memory\": " FIGURE("8", "GiB") ",\"peak_fp32\": " \
    FIGURE("200.5", "GFLOP/s") ", \"memory_bandwidth\": " FIGURE("14.5", "GB/s") "}],\n"
#define LINKS \
    "\"links\": [{\"name\": \"dram\", \"bandwidth\": " FIGURE("11.4", "GB/s") ", \"latency\": " \
    FIGURE("1.7", "us") ", \"duplex\": false}],\n"
#define DEVICES "\"devices\": [{\"type\": \"core\", \"path\": [\"dram\"]}]}"

static void a_file_is_read(void **state)
{
    (void)state;
    struct hardware h = {0};
    struct error err = {0};
    if (support_hardware(HEAD TYPES LINKS DEVICES, &h, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_string_equal(h.backend, "host");
    assert_int_equal(h.host_cores, 2);
    assert_int_equal(h.threads, 1);
    assert_true(h.host_bytes.value == 24 * 0x1p30 && h.host_bytes.spread == 0.03);
    assert_int_equal(h.host_bytes.kind, FIGURE_MEASURED);
    assert_string_equal(h.host_bytes.source, "s");
    assert_true(h.types[0].peak_fp32.value == 200.5e9);
    assert_true(h.types[0].usable_bytes.value == 8 * 0x1p30); /* as nominal */
    assert_true(h.types[0].matmul_efficiency.value == 0.5);   /* the planning default */
    assert_true(h.links[0].latency.value == 1.7 * 1e-6);
    assert_false(h.links[0].duplex || h.links[0].paced);
    assert_int_equal(h.devices[0].memory_bytes, (uint64_t)8 << 30);
    assert_int_equal(hardware_check(&h, &err), STATUS_OK);
    hardware_release(&h);
}

static const char profiled[] =
    HEAD
    "\"device_types\": [{\"name\": \"core\", \"memory\": " FIGURE("8", "GiB") ",\"peak_fp32\": "
    FIGURE("200.5", "GFLOP/s") ", \"memory_bandwidth\": " FIGURE("14.5", "GB/s") ",\n"
    "\"profiles\": [{\"threads\": 2, \"kernels\": {\"matmul_forward\": [[64, 64, 128, 1e-5, 0.01],"
    " [32, 64, 128, 5.25e-6, 0.02]], \"gelu_forward\": [[100, 7, 0, 3e-6, 0]]},"
    " \"interference\": {\"compute_by_copy\": " FIGURE("0.25", "ratio") ", \"copy_reference_rate\": "
    FIGURE("11", "GB/s") "}}, {\"threads\": 1, \"kernels\": {}}],\n"
    "\"h2d\": [[1048576, 1e-4, 0.1], [4096, 3e-6, 0.2]]}],\n" LINKS DEVICES;

static void profiles_are_read_and_sorted(void **state)
{
    (void)state;
    struct hardware h = {0};
    struct error err = {0};
    if (support_hardware(profiled, &h, &err) != STATUS_OK) fail_msg("%s", err.text);
    const struct device_type *type = &h.types[0];
    assert_int_equal(type->profile_count, 2);
    const struct kernel_rate *rate = &type->profiles[0].kernels[KERNEL_MATMUL_FORWARD];
    assert_int_equal(rate->point_count, 2);
    assert_int_equal(rate->points[0].m, 32);
    assert_true(rate->points[0].seconds == 5.25e-6 && rate->points[0].spread == 0.02);
    assert_int_equal(rate->points[1].m, 64);
    assert_int_equal(type->profiles[0].kernels[KERNEL_LOSS].point_count, 0);
    assert_true(type->profiles[0].interference.compute_by_copy.value == 0.25);
    assert_true(type->profiles[0].interference.copy_reference_rate.value == 11e9);
    assert_int_equal(type->h2d_count, 2);
    assert_int_equal(type->h2d[0].bytes, 4096);
    assert_int_equal(type->d2h_count, 0);
    assert_int_equal(hardware_check(&h, &err), STATUS_OK);

    assert_int_equal(hardware_profile(&h, 0)->threads, 1);
    h.threads = 2;
    assert_int_equal(hardware_profile(&h, 0)->threads, 2);
    h.threads = 16; /* the nearest */
    assert_int_equal(hardware_profile(&h, 0)->threads, 2);
    hardware_release(&h);
    find("t4-16gb", &h);
    assert_null(hardware_profile(&h, 0));
    hardware_release(&h);
}

static void bad_files_are_refused_with_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"{\"spillway_hardware\": 3}", "test:1:23: 'spillway_hardware' is 3 (expected 1)"},
        {"{\"spillway_hardware\": 1, \"name\": \"m\", \"backend\": \"tpu\"}",
         "test:1:50: unknown backend 'tpu' (expected host or cuda)"},
        {"{\"spillway_hardware\": 1, \"name\": \"m\", \"backend\": \"cuda\",\n"
         "\"host\": {\"memory\": 24, \"cores\": 2}}",
         "test:2:20: 'memory' is a bare number (expected an object with value, unit, kind, source "
         "and as_of)"},
        {"{\"spillway_hardware\": 1, \"name\": \"m\", \"backend\": \"cuda\",\n"
         "\"host\": {\"memory\": {\"value\": 24}, \"cores\": 2}}",
         "test:2:20: missing key 'unit'"},
        {"{\"spillway_hardware\": 1, \"name\": \"m\", \"backend\": \"cuda\",\n"
         "\"host\": {\"memory\": " FIGURE("24", "GB/s") ", \"cores\": 2}}",
         "test:2:42: 'memory' has the unit 'GB/s' (expected that of a size such as 96MiB)"},
        {"{\"spillway_hardware\": 1, \"name\": \"m\", \"backend\": \"cuda\",\n"
         "\"host\": {\"memory\": " FIGURE("2", "0GB") ", \"cores\": 2}}",
         "test:2:41: 'memory' has the unit '0GB' (expected that of a size such as 96MiB)"},
        {HEAD "\"device_types\": [{\"name\": \"a\", \"memory\": " FIGURE("8", "GB")
         ", \"peak_fp32\": " FIGURE("8", "GFLOP/s") ", \"memory_bandwidth\": "
         FIGURE("8", "GB/s") ",\n\"matmul_efficiency\": " FIGURE("80", "%") "}]}",
         "test:4:44: 'matmul_efficiency' has the unit '%' (expected 'ratio')"},
        {"{\"spillway_hardware\": 1, \"name\": \"m\", \"backend\": \"cuda\",\n"
         "\"host\": {\"memory\": " FIGURE("0", "GB") ", \"cores\": 2}}",
         "test:2:30: 'memory' is 0 in base units (expected 1 to 1.15292e+18)"},
        {"{\"spillway_hardware\": 1, \"name\": \"m\", \"backend\": \"cuda\",\n\"host\": {\"memory\": "
         "{\"value\": 2, \"unit\": \"GB\", \"kind\": \"guess\", \"source\": \"\", \"as_of\": \"\"}}}",
         "test:2:55: unknown kind 'guess' (expected datasheet, measured, derived, assumed or fitted)"},
        {"{\"spillway_hardware\": 1, \"name\": \"m\", \"backend\": \"cuda\",\n\"host\": {\"memory\": "
         "{\"value\": 2, \"unit\": \"GB\", \"kind\": \"assumed\", \"as_of\": \"\"}}}",
         "test:2:20: missing key 'source'"},
        {HEAD "\"device_types\": []}", "test:3:17: 'device_types' has 0 elements (expected 1 to 1024)"},
        {HEAD TYPES "\"links\": [{\"name\": \"a\", \"duplex\": true, \"bandwidth\": "
         FIGURE("1e-3", "B/s") "}]}", "test:1:1: missing key 'devices'"},
        {HEAD TYPES LINKS "\"devices\": [{\"type\": \"core\", \"path\": []}]}",
         "test:5:38: 'path' has 0 links (expected 1 to 8)"},
        {HEAD TYPES LINKS "\"devices\": [{\"type\": \"core\", \"path\": [\"dram\", \"dram\"]}]}",
         "test:5:47: link 'dram' is on the path twice"},
        {HEAD TYPES LINKS "\"devices\": [{\"type\": \"core\", \"path\": [\"pcie\"]}]}",
         "test:5:39: unknown link 'pcie'"},
        {HEAD TYPES LINKS "\"devices\": [{\"type\": \"gpu\", \"path\": [\"dram\"]}]}",
         "test:5:22: unknown device type 'gpu'"},
        {HEAD TYPES LINKS
         "\"devices\": [{\"type\": \"core\", \"path\": [\"dram\"], \"memory_bytes\": 8589934593}]}",
         "test:5:64: 'memory_bytes' is 8589934593 (expected 1 to 8589934592)"},
        {HEAD TYPES LINKS
         "\"devices\": [{\"type\": \"core\", \"path\": [\"dram\"], \"memory\": 8589934593}]}",
         "test:5:48: unknown key 'memory' (expected type, path, networks or memory_bytes)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct hardware h = {0};
        struct error err = {0};
        enum status status = support_hardware(rows[i].text, &h, &err);
        assert_string_equal(err.text, rows[i].message);
        assert_int_equal(status, STATUS_BAD_INPUT);
        assert_int_equal(h.device_count, 0);
    }
}

/* What may be there once only, and tables past their limits. */
static void repetitions_and_excess_are_refused(void **state)
{
    (void)state;
    static const char *const type = "{\"name\": \"core\", \"memory\": " FIGURE("8", "GiB")
        ", \"peak_fp32\": " FIGURE("2", "GFLOP/s") ", \"memory_bandwidth\": " FIGURE("1", "GB/s");
    static const struct {
        const char *more, *next, *links, *message;
    } rows[] = {
        {"}", ", TYPE}", LINKS, "two device types 'core'"},
        {"}", "", "\"links\": [LINK, LINK],", "two links 'dram'"},
        {", \"profiles\": [{\"threads\": 3, \"kernels\": {}}, {\"threads\": 3, \"kernels\": {}}]}",
         "", LINKS, "two profiles for 3 threads"},
        {", \"h2d\": [[77, 1, 0], [5, 2, 0], [77, 2, 0]]}", "", LINKS, "two points for 77 bytes"},
        {", \"d2h\": [MANY]}", "", LINKS, "too many points (limit is 256)"},
        {", \"profiles\": [{\"threads\": 1, \"kernels\": {\"sgd\": [MANY]}}]}", "", LINKS,
         "too many points (limit is 512)"},
        {", \"profiles\": [MANY]}", "", LINKS, "too many profiles (limit is 256)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char text[16384] = HEAD "\"device_types\": [", *at = text + strlen(text);
        const char *parts[] = {type, rows[i].more, rows[i].next, "],\n", rows[i].links, DEVICES};
        for (size_t p = 0; p < ARRAY_COUNT(parts); p++)
            for (const char *c = parts[p]; *c;) {
                size_t room = (size_t)(text + sizeof text - at);
                if (strncmp(c, "MANY", 4) == 0) {
                    for (int n = 0; n < 513; n++) at += snprintf(at, room, "%s[0]", n ? "," : "");
                    c += 4;
                } else if (strncmp(c, "TYPE", 4) == 0) {
                    at += snprintf(at, room, "%s", type);
                    c += 4;
                } else if (strncmp(c, "LINK", 4) == 0) {
                    at += snprintf(at, room, "{\"name\": \"dram\", \"duplex\": true, "
                                             "\"bandwidth\": " FIGURE("2", "GB/s") "}");
                    c += 4;
                } else {
                    *at++ = *c++;
                    *at = '\0';
                }
            }
        struct hardware h = {0};
        struct error err = {0};
        assert_int_equal(support_hardware(text, &h, &err), STATUS_BAD_INPUT);
        const char *message = strstr(err.text, ": ");
        assert_non_null(message);
        assert_string_equal(message + 2, rows[i].message);
    }
}

static void a_path_is_read(void **state)
{
    (void)state;
    char path[] = "/tmp/spillway-hardware-XXXXXX.json";
    int file = mkstemps(path, 5);
    assert_true(file >= 0);
    assert_int_equal(write(file, profiled, strlen(profiled)), strlen(profiled));
    close(file);
    struct hardware h;
    find(path, &h);
    assert_string_equal(h.name, "m");
    hardware_release(&h);
    unlink(path);
    struct error err = {0};
    assert_int_equal(hardware_find(path, &h, &err), STATUS_IO);
}

static void bad_points_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *kernels, *message;
    } rows[] = {
        {"\"matmul\": []", "test:4:30: unknown key 'matmul'"},
        {"\"loss\": [[3, 5, 0, 1e-6]]", "test:4:39: element 0 has 4 elements (expected 5)"},
        {"\"loss\": [[3, 5, 0, 0, 0]]", "test:4:49: element 3 is 0 (expected 1e-12 to 1000000)"},
        {"\"loss\": [[3, 0, 0, 1, 0]]", "test:4:39: element 0: a loss of these sizes does nothing"},
        {"\"matmul_input\": [[3, 7, 0, 1, 0]]",
         "test:4:47: element 0: a matmul_input of these sizes does nothing"},
        {"\"sgd\": [[3, 0, 0, 1, 0], [3, 0, 0, 2, 0]]", "test:4:37: two points for 3 x 0 x 0"},
        {"\"fixed\": [[3, 0, 0, 1, 0]]", "test:4:30: unknown key 'fixed'"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char text[4096];
        snprintf(text, sizeof text,
                 HEAD "\"device_types\": [{\"name\": \"core\", \"memory\": " FIGURE("8", "GiB")
                      ",\"peak_fp32\": " FIGURE("2", "GFLOP/s") ", \"memory_bandwidth\": "
                      FIGURE("1", "GB/s")
                      ", \"profiles\": [{\"threads\": 1,\n                 \"kernels\": {%s}}]}],\n"
                      LINKS DEVICES,
                 rows[i].kernels);
        struct hardware h = {0};
        struct error err = {0};
        assert_int_equal(support_hardware(text, &h, &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, rows[i].message);
    }
}

static void check_round_trip(const struct hardware *h)
{
    struct hardware again = {0};
    struct error err = {0};
    char *first = support_hardware_text(h);
    assert_non_null(first);
    if (support_hardware(first, &again, &err) != STATUS_OK) fail_msg("%s\n%s", err.text, first);
    char *second = support_hardware_text(&again);
    assert_string_equal(first, second);
    assert_int_equal(again.device_count, h->device_count);
    assert_true(again.host_bytes.value == h->host_bytes.value);
    for (uint32_t i = 0; i < h->link_count; i++) {
        assert_true(again.links[i].bandwidth.value == h->links[i].bandwidth.value);
        assert_true(again.links[i].latency.value == h->links[i].latency.value);
        assert_int_equal(again.links[i].paced, h->links[i].paced);
    }
    for (uint32_t i = 0; i < h->type_count; i++) {
        assert_true(again.types[i].peak_fp32.value == h->types[i].peak_fp32.value);
        assert_true(again.types[i].usable_bytes.value == h->types[i].usable_bytes.value);
        assert_true(again.types[i].launch_latency.value == h->types[i].launch_latency.value);
    }
    for (uint32_t i = 0; i < h->device_count; i++)
        assert_int_equal(again.devices[i].memory_bytes, h->devices[i].memory_bytes);
    free(first);
    free(second);
    hardware_release(&again);
}

static void machines_survive_writing_to_the_bit(void **state)
{
    (void)state;
    struct hardware h;
    struct error err = {0};
    for (uint32_t i = 0; hardware_preset_name(i); i++) {
        find(hardware_preset_name(i), &h);
        /* no unit has a short number for these */
        h.links[0].bandwidth.value = 1e10 / 3;
        h.types[0].launch_latency.value = 1e-5 / 7;
        h.devices[0].memory_bytes -= 12345;
        check_round_trip(&h);
        hardware_release(&h);
    }
    h = (struct hardware){0};
    assert_int_equal(support_hardware(profiled, &h, &err), STATUS_OK);
    check_round_trip(&h);
    hardware_release(&h);
}

/* --- what the command line changes ---------------------------------------------------------- */

static void a_host_machine_is_multiplied_and_paced(void **state)
{
    (void)state;
    struct hardware h;
    struct error err = {0};
    find("host-2-cores", &h);
    assert_int_equal(h.threads, 2);
    struct hardware_options options = {.device_count = 2, .device_memory_bytes = 96 << 20,
                                       .link_bytes_per_s = 1.5e9, .host_memory_bytes = 3 << 20};
    assert_int_equal(hardware_adjust(&h, &options, &err), STATUS_OK);
    assert_int_equal(h.device_count, 2);
    assert_int_equal(h.threads, 1); /* 2 cores for 2 devices */
    assert_int_equal(h.link_count, 3);
    assert_true(h.host_bytes.value == 3 << 20);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(h.devices[i].memory_bytes, 96 << 20);
        assert_int_equal(h.devices[i].path_count, 2);
        assert_int_equal(h.devices[i].path[0], 0);
        assert_int_equal(h.devices[i].path[1], 1 + i);
        assert_true(h.links[1 + i].paced && h.links[1 + i].duplex);
        assert_true(h.links[1 + i].bandwidth.value == 1.5e9);
    }
    assert_false(h.links[0].paced);
    assert_int_equal(hardware_check(&h, &err), STATUS_OK);
    check_round_trip(&h);
    /* again: more devices, another rate; each still has one paced link of its own */
    options = (struct hardware_options){.device_count = 5, .link_bytes_per_s = 0.5e9};
    assert_int_equal(hardware_adjust(&h, &options, &err), STATUS_OK);
    assert_int_equal(h.threads, 1); /* never 0 */
    assert_int_equal(h.link_count, 6);
    for (uint32_t i = 0; i < 5; i++) {
        const struct hardware_device *device = &h.devices[i];
        assert_int_equal(device->path_count, 2);
        assert_true(h.links[device->path[1]].bandwidth.value == 0.5e9);
        for (uint32_t j = 0; j < i; j++)
            assert_int_not_equal(device->path[1], h.devices[j].path[1]);
    }
    check_round_trip(&h);
    options = (struct hardware_options){.device_count = 1, .threads = 2};
    assert_int_equal(hardware_adjust(&h, &options, &err), STATUS_OK);
    assert_int_equal(h.device_count, 1);
    assert_int_equal(h.threads, 2);
    hardware_release(&h);
}

static void other_machines_shrink_and_scale(void **state)
{
    (void)state;
    struct hardware h;
    struct error err = {0};
    find("4x a100-sxm4-40gb", &h);
    struct hardware_options options = {.device_count = 3, .link_bytes_per_s = 13e9,
                                       .device_memory_bytes = UINT64_C(11) << 30};
    assert_int_equal(hardware_adjust(&h, &options, &err), STATUS_OK);
    assert_int_equal(h.device_count, 3);
    assert_int_equal(h.threads, 0);
    assert_int_equal(h.devices[2].memory_bytes, UINT64_C(11) << 30);
    assert_true(h.links[h.devices[2].path[2]].bandwidth.value == 13e9);
    assert_false(h.links[h.devices[2].path[2]].paced);
    assert_true(fabs(h.links[1].bandwidth.value - 13e9) < 1);            /* a switch: half of 26 */
    assert_true(fabs(h.links[0].bandwidth.value - 2 * 1.42 * 13e9) < 1); /* the bridge */
    check_round_trip(&h);
    hardware_release(&h);
}

static void impossible_changes_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *machine;
        struct hardware_options options;
        const char *message;
    } rows[] = {
        {"2x t4-16gb", {.device_count = 3},
         "machine '2x t4-16gb' has 2 devices and not 3 (name several as '3x NAME')"},
        {"host-2-cores", {.device_count = 4097}, "too many devices (limit is 4096)"},
        {"t4-16gb", {.device_memory_bytes = UINT64_C(15) << 30},
         "device memory 15 GiB is more than the 14.5 GiB usable on 't4-16gb'"},
        {"t4-16gb", {.threads = 2}, "threads are a host machine's, and 't4-16gb' has back end 'cuda'"},
        {"host-2-cores", {.threads = 3}, "3 threads are more than the 2 cores of 'host-2-cores'"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct hardware h;
        struct error err = {0};
        find(rows[i].machine, &h);
        assert_int_not_equal(hardware_adjust(&h, &rows[i].options, &err), STATUS_OK);
        assert_string_equal(err.text, rows[i].message);
        hardware_release(&h);
    }
}

/* --- physical sense ------------------------------------------------------------------------- */

static void check_broken(struct hardware *h, const char *message)
{
    struct error err = {0};
    assert_int_equal(hardware_check(h, &err), STATUS_CHECK);
    assert_string_equal(err.text, message);
    hardware_release(h);
}

static void nonsense_is_found(void **state)
{
    (void)state;
    struct hardware h;
    struct error err = {0};
    find("t4-16gb", &h);
    h.links[1].bandwidth.value = 0;
    check_broken(&h, "bandwidth of 'pcie-0' is 0 (expected more than 0)");
    find("t4-16gb", &h);
    h.links[1].latency.value = -1;
    check_broken(&h, "latency of 'pcie-0' is -1 (expected at least 0)");
    find("t4-16gb", &h);
    h.types[0].usable_bytes.value = 17 * 0x1p30;
    check_broken(&h, "'t4-16gb' has 17 GiB of usable memory but only 16 GiB in all");
    find("t4-16gb", &h);
    h.types[0].matmul_efficiency.value = 1.5;
    check_broken(&h, "matmul_efficiency of 't4-16gb' is 1.5 (expected 0 to 1)");
    find("t4-16gb", &h);
    h.types[0].peak_fp32.value = NAN;
    check_broken(&h, "peak_fp32 of 't4-16gb' is nan (expected more than 0)");
    find("t4-16gb", &h);
    h.devices[0].memory_bytes = UINT64_C(15) << 30;
    check_broken(&h, "device 0 offers 15 GiB of memory (expected more than 0, at most the 14.5 GiB "
                     "usable on 't4-16gb')");
    find("t4-16gb", &h);
    h.devices[0].type = 3;
    check_broken(&h, "device 0 has no type");
    find("t4-16gb", &h);
    h.devices[0].path[1] = 2;
    check_broken(&h, "device 0 has an unknown link");
    find("t4-16gb", &h);
    h.devices[0].path_count = 0;
    check_broken(&h, "device 0 has 0 links to the host (expected 1 to 8)");
    find("t4-16gb", &h);
    h.device_count = 0;
    check_broken(&h, "machine 't4-16gb' has no device");
    find("t4-16gb", &h);
    h.host_cores = 0;
    check_broken(&h, "host cores of 't4-16gb' is 0 (expected more than 0)");
    /* 2 * 64^2 * 128 FLOPs in 1 us are 1.05 TFLOP/s, on cores of 200.5 GFLOP/s */
    h = (struct hardware){0};
    assert_int_equal(support_hardware(profiled, &h, &err), STATUS_OK);
    struct rate_point *point =
        (struct rate_point *)&h.types[0].profiles[0].kernels[KERNEL_MATMUL_FORWARD].points[1];
    point->seconds = 1e-6;
    check_broken(&h, "matmul_forward of 'core' at 64 x 64 x 128 runs at 1.05 TFLOP/s, above the "
                     "peak of 200 GFLOP/s");
}

static void memory_may_end_anywhere(void **state)
{
    (void)state;
    for (int what = 0; what < 2; what++)
        for (uint64_t n = 1;; n++) {
            struct hardware h = {0};
            struct error err = {0};
            alloc_test_fail_at(n);
            enum status status = what ? hardware_find("5x t4-16gb", &h, &err)
                                      : support_hardware(profiled, &h, &err);
            uint64_t calls = alloc_test_fail_at(0);
            bool done = status == STATUS_OK && calls < n;
            if (!done) assert_int_equal(status, STATUS_NO_MEMORY);
            hardware_release(&h);
            if (done) break;
        }
}

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

/* A machine that loses devices, or is told to, has no direct links; one that is told to gets them. */
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
        find(rows[i].machine, &h);
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
    /* a host machine behind paced links stands in for one without */
    struct hardware h;
    find("host-2-cores", &h);
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
        {"\"networks\": [" NETWORK("0", "") "]", "test:5:71: 'group' is 0 (expected 1 to 8192)"},
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
    find("41x dgx-a100-80gb 2:1", &h);
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
    find("2x dgx-a100-80gb", &h);
    check_route(&h, 3, 12, "-pcie-3 -nic-3 +nic-12 +pcie-12 ");
    hardware_release(&h);
    find("2x p4d.24xlarge", &h);
    check_route(&h, 3, 12, "-pcie-3 -nic-1 +nic-6 +pcie-12 ");
    assert_true(fabs(h.links[h.devices[0].path[2]].bandwidth.value - 12.5e9) < 1); /* of its host */
    hardware_release(&h);
    find("2x p3dn.24xlarge", &h);
    check_route(&h, 3, 12, "-pcie-3 -nic-0 +nic-1 +pcie-12 ");
    hardware_release(&h);
    find("2x nc24v3", &h); /* over PCIe in a node, through the bridge where switches differ */
    check_route(&h, 0, 1, "-pcie-0 +pcie-1 ");
    check_route(&h, 0, 2, "-pcie-0 -switch-0 +switch-1 +pcie-2 ");
    check_route(&h, 0, 5, "-pcie-0 -nic-0 +nic-1 +pcie-5 ");
    hardware_release(&h);
}

/* As many as there may be, written and read again. */
static void the_largest_cluster(void **state)
{
    (void)state;
    struct hardware h, again = {0};
    struct error err = {0};
    size_t length;
    find("512x dgx-h100 4:1", &h);
    assert_int_equal(h.device_count, DEVICES_MAX);
    assert_int_equal(hardware_check(&h, &err), STATUS_OK);
    struct json_out *out = json_out_create(NULL);
    hardware_write(&h, out, NULL);
    if (support_hardware(json_out_text(out, &length), &again, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_int_equal(hardware_check(&again, &err), STATUS_OK);
    for (uint32_t d = 1; d < DEVICES_MAX; d = 3 * d + 1) {
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
        {"513x dgx-h100", "'513x dgx-h100' has 513 nodes (expected 1 to 512)"},
        {"0x dgx-h100", "'0x dgx-h100' has 0 nodes (expected 1 to 512)"},
        {"2x hydra-8x2080ti", "'2x hydra-8x2080ti' has 2 nodes (expected 1 to 1)"},
        {"2x p3dn.24xlarge 2:1", "'2x p3dn.24xlarge 2:1': nodes 'p3dn.24xlarge' meet in one switch, which "
                                 "nothing is oversubscribed behind"},
        {"2x dgx-h100 2:3", "unknown machine 'dgx-h100 2:3' (did you mean 'dgx-h100'?)"},
        {"2x dgx-h100 0.5:1", "unknown machine 'dgx-h100 0.5:1' (expected a preset such as a100-sxm4-40gb, '4x "
                              "rtx-3090-24gb', '2x dgx-a100-80gb', or the path of a hardware file)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct hardware h = {0};
        struct error err = {0};
        assert_int_not_equal(hardware_find(rows[i].name, &h, &err), STATUS_OK);
        assert_string_equal(err.text, rows[i].message);
    }
}

/* Three devices of one network, of which the last is in another one around it. */
static void networks_nest(void **state)
{
    (void)state;
    struct hardware h;
    struct error err = {0};
    find("2x dgx-a100-80gb", &h);
    h.devices[2].networks[1].group = 9;
    assert_int_equal(hardware_check(&h, &err), STATUS_CHECK);
    assert_string_equal(err.text, "devices 0 and 2 share network 1, and what is around it differs: network 3 "
                                  "and 9 (0: none)");
    h.devices[2].network_count = 1;
    err = (struct error){0};
    assert_int_equal(hardware_check(&h, &err), STATUS_CHECK);
    assert_string_equal(err.text, "devices 0 and 2 share network 1, and what is around it differs: network 3 "
                                  "and 0 (0: none)");
    hardware_release(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_preset_is_sensible_and_says_its_sources),
        cmocka_unit_test(presets_have_their_datasheets),
        cmocka_unit_test(several_devices_sit_behind_switches),
        cmocka_unit_test(hydra_has_its_machines),
        cmocka_unit_test(a_node_may_have_a_fit_of_its_own),
        cmocka_unit_test(a_stated_efficiency_holds),
        cmocka_unit_test(machines_have_several_names),
        cmocka_unit_test(unknown_names_are_refused),
        cmocka_unit_test(routes_of_a_cluster),
        cmocka_unit_test(the_largest_cluster),
        cmocka_unit_test(clusters_that_are_refused),
        cmocka_unit_test(networks_nest),
        cmocka_unit_test(a_file_is_read),
        cmocka_unit_test(profiles_are_read_and_sorted),
        cmocka_unit_test(bad_files_are_refused_with_their_place),
        cmocka_unit_test(repetitions_and_excess_are_refused),
        cmocka_unit_test(a_path_is_read),
        cmocka_unit_test(bad_points_are_refused),
        cmocka_unit_test(machines_survive_writing_to_the_bit),
        cmocka_unit_test(a_host_machine_is_multiplied_and_paced),
        cmocka_unit_test(other_machines_shrink_and_scale),
        cmocka_unit_test(impossible_changes_are_refused),
        cmocka_unit_test(nonsense_is_found),
        cmocka_unit_test(memory_may_end_anywhere),
        cmocka_unit_test(direct_routes_leave_out_what_is_common),
        cmocka_unit_test(direct_links_follow_the_command_line),
        cmocka_unit_test(bad_direct_links_are_refused),
    };
    return cmocka_run_group_tests_name("models/hardware.h", tests, NULL, NULL);
}
