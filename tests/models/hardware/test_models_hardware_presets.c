/*
 * models/hardware/hardware.h, machines that are known by name: every preset is whole and sensible and has its
 * datasheet's figures; names and refusals.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "models/cost/cost.h"
#include "models/hardware/hardware.h"
#include "tests/support/support_models.h"

/* --- presets -------------------------------------------------------------------------------- */

static void check_figure(const struct sourced_value *figure)
{
    assert_true(isfinite(figure->value) && figure->value >= 0);
    assert_true(figure->kind < SOURCE_KIND_COUNT);
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
        const struct sourced_value *all[] = {
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
        support_machine(hardware_preset_name(count), &h);
        if (hardware_check(&h, &err) != STATUS_OK) fail_msg("%s: %s", h.name, err.text);
        assert_string_equal(h.name, hardware_preset_name(count));
        assert_non_null(hardware_preset_summary(count));
        assert_non_null(h.note);
        check_figures(&h);
        hardware_release(&h);
    }
    assert_true(count > 50); /* both tables of the catalogue were visited */
}

/* Datasheet values, typed by hand. */
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
        support_machine(rows[i].name, &h);
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
    support_machine("5x a100-sxm4-40gb", &h);
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
    support_machine("2xNVIDIA A100-SXM4-40GB", &h);
    assert_string_equal(h.name, "2x a100-sxm4-40gb");
    hardware_release(&h);
    support_machine("1x t4-16gb", &h);
    assert_string_equal(h.name, "t4-16gb");
    hardware_release(&h);
}

static void hydra_has_its_machines(void **state)
{
    (void)state;
    struct hardware h;
    support_machine("hydra-8x2080ti", &h);
    assert_int_equal(h.device_count, 8);
    assert_int_equal(h.host_cores, 80);
    assert_true(h.host_bytes.value == 500e9);
    assert_string_equal(h.types[0].name, "rtx-2080-ti-11gb");
    /* sqrt(0.18 * 0.525) = 0.307, of the machine; the same GPU elsewhere has the default */
    assert_float_equal(h.types[0].matmul_efficiency.value, 0.31, 0);
    assert_int_equal(h.types[0].matmul_efficiency.kind, SOURCE_FITTED);
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
    support_machine("8x rtx-2080-ti-11gb", &h);
    assert_float_equal(h.types[0].matmul_efficiency.value, hardware_default_matmul_efficiency.value, 0);
    assert_int_equal(h.devices[0].path[1], h.devices[1].path[1]);
    hardware_release(&h);
    support_machine("hydra-8x1080ti", &h);
    assert_int_equal(h.host_cores, 10);
    assert_true(h.host_bytes.value == 512e9);
    hardware_release(&h);
}

/* Figures fitted to a node belong to that node; its GPUs have other figures elsewhere. */
static void a_node_may_have_a_fit_of_its_own(void **state)
{
    (void)state;
    struct hardware node, board;
    support_machine("dgx-2", &node);
    support_machine("16x v100-sxm2-32gb", &board);
    const struct device_type *fitted = &node.types[0], *plain = &board.types[0];
    assert_string_equal(fitted->name, plain->name);
    assert_int_equal(fitted->matmul_efficiency.kind, SOURCE_FITTED);
    assert_float_equal(fitted->matmul_efficiency.value, 0.4, 0);
    assert_float_equal(fitted->kernel_model.matmul_depth.value, 1500, 0);
    assert_true(plain->matmul_efficiency.value != fitted->matmul_efficiency.value);
    assert_float_equal(fitted->memory_efficiency.value, hardware_default_memory_efficiency.value, 0);
    assert_float_equal(fitted->launch_latency.value, 5e-6, 0); /* neither is fitted: the defaults stay */
    /* a fit to products of 16 bits says nothing about products in fp32 */
    const struct work_item wide = {KERNEL_MATMUL_FORWARD, 3, 4096, 1024, 1024},
        half = {KERNEL_MATMUL_HALF_FORWARD, 3, 4096, 1024, 1024};
    assert_true(cost_item_s(&node, 0, &wide) == cost_item_s(&board, 0, &wide));
    assert_true(cost_item_s(&node, 0, &half) > cost_item_s(&board, 0, &half));
    hardware_release(&node);
    hardware_release(&board);
}

/* Products have the stated efficiency, even above the A100's known rates; larger efficiencies are faster. */
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
        support_machine("a100-sxm4-80gb", &h);
        assert_true(h.types[0].kernel_model.matmul_sustained.value > 0.7 &&
                    h.types[0].kernel_model.matmul_sustained.value < 0.8);
        assert_int_equal(hardware_adjust(&h, &options, &err), STATUS_OK);
        double seconds = cost_item_s(&h, 0, &large);
        assert_true(seconds < before_s && seconds >= work_item_flops(&large) / (shares[i] * 312e12));
        before_s = seconds;
        hardware_release(&h);
    }
}

/* Names in price lists and names that the driver prints mean these machines. */
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
        {"8xrtx-3090", "8x rtx-3090-24gb", 8, 350},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct hardware h;
        support_machine(rows[i].name, &h);
        assert_string_equal(h.name, rows[i].same);
        assert_int_equal(h.device_count, rows[i].devices);
        assert_float_equal(h.types[0].board_power.value, rows[i].watts, 0);
        hardware_release(&h);
    }
}

/* Each word of these names is a word of one preset only. */
static void names_of_one_candidate_are_taken(void **state)
{
    (void)state;
    static const struct {
        const char *name, *same, *said;
        uint32_t devices;
    } rows[] = {
        {"rtx3090", "rtx-3090-24gb", "using 'rtx-3090-24gb' for 'rtx3090'", 1},
        {"RTX-3090", "rtx-3090-24gb", "using 'rtx-3090-24gb' for 'RTX-3090'", 1},
        {"2 x rtx 4090", "2x rtx-4090-24gb", "using 'rtx-4090-24gb' for 'rtx 4090'", 2},
        {"3X4090", "3x rtx-4090-24gb", "using 'rtx-4090-24gb' for '4090'", 3},
        {"geforce rtx 3090", "rtx-3090-24gb", "using 'rtx-3090-24gb' for 'geforce rtx 3090'", 1},
        {"tesla-t4", "t4-16gb", "using 't4-16gb' for 'tesla-t4'", 1},
        {"1080 ti", "gtx-1080-ti-11gb", "using 'gtx-1080-ti-11gb' for '1080 ti'", 1},
        {"5x2080ti", "5x rtx-2080-ti-11gb", "using 'rtx-2080-ti-11gb' for '2080ti'", 5},
        {"aws:p4d", "p4d.24xlarge", "using 'p4d.24xlarge' for 'aws:p4d'", 8},
        {"dgx-a100", "dgx-a100-80gb", "using 'dgx-a100-80gb' for 'dgx-a100'", 8},
        {"4 x DGX-H100 2:1", "4x dgx-h100 2:1", "using 'dgx-h100' for 'DGX-H100'", 32},
        {"a100-sxm4-80gb + V100_SXM2 32GB", "a100-sxm4-80gb + v100-sxm2-32gb",
         "using 'v100-sxm2-32gb' for 'V100_SXM2 32GB'", 2},
        {"4x rtx-3090", "4x rtx-3090-24gb", NULL, 4}, /* a device of one size needs none */
        {"a100-sxm4-40gb", "a100-sxm4-40gb", NULL, 1},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct hardware h;
        char said[HARDWARE_SAID_BYTES] = "";
        support_machine(rows[i].name, &h);
        assert_string_equal(h.name, rows[i].same);
        assert_int_equal(h.device_count, rows[i].devices);
        assert_int_equal(hardware_name_completed(rows[i].name, said), rows[i].said != NULL);
        assert_string_equal(said, rows[i].said ? rows[i].said : "");
        hardware_release(&h);
    }
}

/* A count that looks like a part of the name ("4" of "40gb", "2" of "dgx-2") is still a count. */
static void counts_have_several_spellings(void **state)
{
    (void)state;
    static const struct {
        const char *name, *same;
        uint32_t devices;
    } rows[] = {
        {"4 a100-sxm4-40gb", "4x a100-sxm4-40gb", 4},    {"4-a100-sxm4-40gb", "4x a100-sxm4-40gb", 4},
        {"4*a100-sxm4-40gb", "4x a100-sxm4-40gb", 4},    {"4 \xc3\x97 a100-sxm4-40gb", "4x a100-sxm4-40gb", 4},
        {"4\xc3\x97" "a100-sxm4-40gb", "4x a100-sxm4-40gb", 4}, {"a100-sxm4-40gb*4", "4x a100-sxm4-40gb", 4},
        {"a100-sxm4-40gb x4", "4x a100-sxm4-40gb", 4},   {"a100-sxm4-40gb x 4", "4x a100-sxm4-40gb", 4},
        {"a100-sxm4-40gbx4", "4x a100-sxm4-40gb", 4},    {"a100-sxm4-40gb\xc3\x97" "4", "4x a100-sxm4-40gb", 4},
        {"8 a100-sxm4-80gb", "8x a100-sxm4-80gb", 8},    {"2 rtx-2080-ti-11gb", "2x rtx-2080-ti-11gb", 2},
        {"3 rtx-3090-24gb", "3x rtx-3090-24gb", 3},      {"2\xc3\x97rtx3090", "2x rtx-3090-24gb", 2},
        {"4 rtx4090", "4x rtx-4090-24gb", 4},            {"8 rtx3090", "8x rtx-3090-24gb", 8},
        {"16 t4-16gb", "16x t4-16gb", 16},               {"2 dgx-2", "2x dgx-2", 32},
        {"3*dgx-h100 2:1", "3x dgx-h100 2:1", 24},       {"dgx-h100*3 2:1", "3x dgx-h100 2:1", 24},
        {"2 t4-16gb + rtx3090*3", "2x t4-16gb + 3x rtx-3090-24gb", 5},
        {"NVIDIA GeForce RTX 3090", "rtx-3090-24gb", 1}, {"RTX 3090", "rtx-3090-24gb", 1},
        {"rtx 3090 x2", "2x rtx-3090-24gb", 2},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct hardware h;
        support_machine(rows[i].name, &h);
        assert_string_equal(h.name, rows[i].same);
        assert_int_equal(h.device_count, rows[i].devices);
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
        {"v100-sxm2", "'v100-sxm2' does not say which machine is meant (expected one of v100-sxm2-32gb, "
                      "v100-sxm2-16gb)"},
        {"a100 80gb", "'a100 80gb' does not say which machine is meant (expected one of a100-sxm4-80gb, "
                      "a100-pcie-80gb, dgx-a100-80gb)"},
        {"4 x a100", "'a100' does not say which machine is meant (expected one of a100-sxm4-40gb, "
                     "a100-sxm4-80gb, a100-pcie-40gb, a100-pcie-80gb, dgx-a100-80gb)"},
        {"quadro-t4", "unknown machine 'quadro-t4' (did you mean 't4-16gb'?)"},
        {"tesla v100", "'tesla v100' does not say which machine is meant (expected one of v100-pcie-16gb, "
                       "v100-sxm2-32gb, v100-sxm2-16gb, v100-pcie-32gb)"},
        {"nvidia-a100", "'nvidia-a100' does not say which machine is meant (expected one of a100-sxm4-40gb, "
                        "a100-sxm4-80gb, a100-pcie-40gb, a100-pcie-80gb, dgx-a100-80gb)"},
        {"4 a100", "'a100' does not say which machine is meant (expected one of a100-sxm4-40gb, "
                   "a100-sxm4-80gb, a100-pcie-40gb, a100-pcie-80gb, dgx-a100-80gb)"},
        {"rtx-309", "unknown machine 'rtx-309' (did you mean 'rtx-3090-24gb'?)"},
        {"rtx3O90", "unknown machine 'rtx3O90' (did you mean 'rtx-3090-24gb'?)"},
        {"dgx-a10-80gb", "unknown machine 'dgx-a10-80gb' (did you mean 'dgx-a100-80gb'?)"},
        {"gtx-1080", "unknown machine 'gtx-1080' (did you mean 'gtx-1080-ti-11gb'?)"},
        {"l40", "unknown machine 'l40' (did you mean 'l40s-48gb'?)"},
        {"2 dgx", "'dgx' does not say which machine is meant (expected one of dgx-a100-80gb, dgx-h100, dgx-1v, dgx-2)"},
        {"aws:p3", "'aws:p3' does not say which machine is meant (expected one of p3.16xlarge, p3.2xlarge, "
                   "p3.8xlarge)"},
        {"aws:", "'aws:' does not say which machine is meant (expected one of p4d.24xlarge, p3dn.24xlarge, "
                 "p3.16xlarge, p4de.24xlarge, p5.48xlarge, p5en.48xlarge, p6-b200.48xlarge, p3.2xlarge and 14 more; "
                 "see 'spillway hardware list')"},
        {"4x", "'4x' is a count without a machine (expected its name, as in '4x rtx-3090-24gb')"},
        {"2x t4-16gb 2:1", "'2x t4-16gb 2:1': 't4-16gb' is a GPU, and only nodes have switches that can be "
                           "oversubscribed"},
        {"2x host-2-cores", "'2x host-2-cores': 'host-2-cores' is one machine (expected it without a count; --devices "
                            "makes several devices of it)"},
        {"h100", "'h100' does not say which machine is meant (expected one of h100-sxm5-80gb, h100-pcie-80gb, "
                 "dgx-h100)"},
        {"aws:dgx-2", "unknown machine 'aws:dgx-2' (did you mean 'dgx-2'?)"},
        {"rtx-3090-42gb", "unknown machine 'rtx-3090-42gb' (did you mean 'rtx-3090-24gb'?)"},
        {"mi300", "unknown machine 'mi300' (expected a preset such as a100-sxm4-40gb, '4x "
                  "rtx-3090-24gb', '2x dgx-a100-80gb', or the path of a hardware file)"},
        {"", "the machine has no name (expected a preset such as a100-sxm4-40gb, '4x "
             "rtx-3090-24gb', '2x dgx-a100-80gb', or the path of a hardware file)"},
        {"0x t4-16gb", "'0x t4-16gb' has 0 devices (expected 1 to 24576)"},
        {"24577x t4-16gb", "'24577x t4-16gb' has 24577 devices (expected 1 to 24576)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct hardware h = {0};
        struct error err = {0};
        assert_int_not_equal(hardware_find(rows[i].name, &h, &err), STATUS_OK);
        assert_string_equal(err.text, rows[i].message);
        assert_int_equal(h.device_count, 0);
    }
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
        cmocka_unit_test(names_of_one_candidate_are_taken),
        cmocka_unit_test(counts_have_several_spellings),
        cmocka_unit_test(unknown_names_are_refused),
    };
    return cmocka_run_group_tests_name("hardware presets", tests, NULL, NULL);
}
