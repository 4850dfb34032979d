/*
 * models/hardware/hardware_detect.h: machines as a driver and a kernel would describe them. GPUs that the catalogue
 * knows come out as its own machines except where the driver knows better; in every case the file makes sense and is
 * read back the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_in.h"
#include "base/json/json_out.h"
#include "models/hardware/hardware_detect.h"

#define MIB 0x1p20
#define GIB 0x1p30

enum { GPUS_MAX = 8 };

struct case_gpus {
    struct hardware_detected_gpu gpus[GPUS_MAX];
    bool reaches[GPUS_MAX * GPUS_MAX];
    uint32_t count;
};

static void add(struct case_gpus *c, uint32_t count, struct hardware_detected_gpu gpu)
{
    for (uint32_t i = 0; i < count; i++) c->gpus[c->count++] = gpu;
}

static void reach(struct case_gpus *c, uint32_t to, uint32_t from)
{
    c->reaches[to * c->count + from] = true;
}

static void reach_both(struct case_gpus *c, uint32_t a, uint32_t b)
{
    reach(c, a, b);
    reach(c, b, a);
}

static struct hardware_detected found_of(const struct case_gpus *c)
{
    return (struct hardware_detected){.cpu = "Some CPU",
                                      .cores = 24,
                                      .host_bytes = (uint64_t)(100 * GIB),
                                      .clock_hz = 3e9,
                                      .flops_per_cycle = 32,
                                      .gpus = c ? c->gpus : NULL,
                                      .gpu_count = c ? c->count : 0,
                                      .reaches = c ? c->reaches : NULL,
                                      .as_of = "2026-11-23"};
}

/* Returns the text of the machine's file. */
static char *text_of(const struct hardware *hardware)
{
    struct json_out *json = json_out_create(NULL);
    size_t length;
    hardware_write(hardware, json, NULL);
    assert_true(json_out_complete(json));
    const char *text = json_out_text(json, &length);
    char *copy = strndup(text, length);
    json_out_destroy(json);
    return copy;
}

static void build(const struct case_gpus *c, struct hardware *out)
{
    struct error err = {0};
    const struct hardware_detected found = found_of(c);
    if (hardware_from_detected(&found, out, &err) != STATUS_OK || hardware_check(out, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    char *text = text_of(out);
    struct json_input *in = NULL;
    struct hardware again = {0};
    if (json_input_parse("again", text, strlen(text), &in, &err) != STATUS_OK ||
        hardware_parse(in, json_input_root(in), &again, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    char *second = text_of(&again);
    assert_string_equal(second, text);
    hardware_release(&again);
    json_input_destroy(in);
    free(second);
    free(text);
}

static const struct hardware_detected_gpu a100 = {.name = "NVIDIA A100-SXM4-40GB", .total_bytes = (uint64_t)40960 << 20,
                                                  .free_bytes = (uint64_t)40000 << 20, .pcie = 4, .lanes = 16};
static const struct hardware_detected_gpu rtx_3090 = {.name = "NVIDIA GeForce RTX 3090",
                                                      .total_bytes = (uint64_t)24268 << 20,
                                                      .free_bytes = (uint64_t)23700 << 20, .pcie = 4, .lanes = 8};

static void assert_near(double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-9 * expected)) fail_msg("%.17g is not %.17g", value, expected);
}

static void a_host_alone_is_its_device(void **state)
{
    (void)state;
    struct hardware hardware = {0};
    build(NULL, &hardware);
    assert_string_equal(hardware.backend, "host");
    assert_int_equal(hardware.device_count, 1);
    assert_int_equal(hardware.threads, 24);
    assert_near(hardware.host_bytes.value, 100 * GIB);
    assert_near(hardware.types[0].usable_bytes.value, 50 * GIB);
    assert_near(hardware.types[0].peak_fp32.value, 24 * 3e9 * 32);
    assert_true(hardware.types[0].peak_fp32.kind == SOURCE_ASSUMED);
    assert_true(hardware_has_cpu(&hardware));
    hardware_release(&hardware);
}

/* Peaks, bandwidths, NVLink and the way of copies come from "4x a100-sxm4-40gb"; memory and host come from the
 * driver. */
static void known_gpus_are_the_catalogues(void **state)
{
    (void)state;
    struct case_gpus c = {.count = 0};
    struct hardware hardware = {0}, named = {0};
    struct error err = {0};
    add(&c, 4, a100);
    c.gpus[2].free_bytes = (uint64_t)39000 << 20;
    for (uint32_t a = 0; a < 4; a++)
        for (uint32_t b = 0; b < a; b++) reach_both(&c, a, b);
    build(&c, &hardware);
    assert_int_equal(hardware_find("4x a100-sxm4-40gb", &named, &err), STATUS_OK);
    assert_string_equal(hardware.name, named.name);
    assert_int_equal(hardware.link_count, named.link_count);
    for (uint32_t l = 0; l < named.link_count; l++) {
        assert_string_equal(hardware.links[l].name, named.links[l].name);
        assert_near(hardware.links[l].bandwidth.value, named.links[l].bandwidth.value);
    }
    assert_near(hardware.types[0].peak_bf16.value, named.types[0].peak_bf16.value);
    assert_near(hardware.types[0].memory_bandwidth.value, named.types[0].memory_bandwidth.value);
    assert_near(hardware.types[0].usable_bytes.value, 39000 * MIB);
    assert_int_equal(hardware.host_cores, 24);
    assert_near(hardware.host_bytes.value, 100 * GIB);
    for (uint32_t a = 0; a < 4; a++)
        for (uint32_t b = 0; b < 4; b++) {
            if (a == b) continue;
            const struct p2p_route ours = hardware_p2p_route(&hardware, a, b),
                theirs = hardware_p2p_route(&named, a, b);
            assert_true(hardware_p2p_pair(&hardware, a, b));
            assert_memory_equal(ours.links, theirs.links, (ours.up_count + ours.down_count) * sizeof *ours.links);
        }
    hardware_release(&hardware);
    hardware_release(&named);
}

/* Two pairs of devices reach each other, over PCIe with half of its lanes; no other devices do. */
static void only_pairs_that_work_are_joined(void **state)
{
    (void)state;
    struct case_gpus c = {.count = 0};
    struct hardware hardware = {0};
    add(&c, 4, rtx_3090);
    reach_both(&c, 0, 1);
    reach_both(&c, 2, 3);
    reach(&c, 1, 2); /* one way only does not count */
    build(&c, &hardware);
    for (uint32_t a = 0; a < 4; a++)
        for (uint32_t b = 0; b < 4; b++)
            assert_int_equal(hardware_p2p_pair(&hardware, a, b), a != b && a / 2 == b / 2);
    const struct hardware_device *device = &hardware.devices[3];
    const struct hardware_link *link = &hardware.links[device->path[device->path_count - 1]];
    assert_string_equal(link->name, "pcie-3");
    assert_near(link->bandwidth.value, 26e9 / 2);
    assert_string_equal(link->bandwidth.source, "the kernel's PCIe 4 x8, of which x16 of 4 has 26 GB/s");
    hardware_release(&hardware);
}

static void what_is_no_group_is_left_out(void **state)
{
    (void)state;
    struct case_gpus c = {.count = 0};
    struct hardware hardware = {0};
    add(&c, 3, a100);
    reach_both(&c, 0, 1);
    reach_both(&c, 1, 2);
    build(&c, &hardware);
    assert_false(hardware_has_p2p(&hardware));
    assert_non_null(strstr(hardware.note, "planned without direct copies"));
    hardware_release(&hardware);

    struct hardware alone = {0};
    memset(c.reaches, 0, sizeof c.reaches);
    build(&c, &alone);
    assert_false(hardware_has_p2p(&alone));
    assert_null(strstr(alone.note, "planned without direct copies"));
    hardware_release(&alone);
}

static void old_links_are_as_slow(void **state)
{
    (void)state;
    struct case_gpus c = {.count = 0};
    struct hardware hardware = {0};
    add(&c, 1, rtx_3090);
    c.gpus[0].pcie = 2;
    c.gpus[0].lanes = 4;
    build(&c, &hardware);
    const struct hardware_device *device = &hardware.devices[0];
    assert_near(hardware.links[device->path[device->path_count - 1]].bandwidth.value, 12.5e9 / 2 / 4);
    hardware_release(&hardware);
}

static void unknown_gpus_are_what_is_told(void **state)
{
    (void)state;
    struct case_gpus c = {.count = 0};
    struct hardware hardware = {0}, bare = {0};
    add(&c, 2, (struct hardware_detected_gpu){.name = "NVIDIA Something", .total_bytes = (uint64_t)(8 * GIB),
                                              .free_bytes = (uint64_t)(7 * GIB), .fp32_flops_per_s = 5e12,
                                              .memory_bytes_per_s = 200e9});
    reach_both(&c, 0, 1);
    build(&c, &hardware);
    assert_string_equal(hardware.types[0].name, "NVIDIA Something");
    assert_near(hardware.types[0].peak_fp32.value, 5e12);
    assert_near(hardware.types[0].memory_bandwidth.value, 200e9);
    assert_true(hardware_p2p_pair(&hardware, 0, 1));
    hardware_release(&hardware);

    c.gpus[0].fp32_flops_per_s = c.gpus[1].memory_bytes_per_s = 0;
    c.gpus[1].fp32_flops_per_s = c.gpus[0].memory_bytes_per_s = 0;
    build(&c, &bare);
    assert_true(bare.types[0].peak_fp32.kind == SOURCE_ASSUMED && bare.types[0].peak_fp32.spread >= 1);
    hardware_release(&bare);
}

/* Types keep the driver's order, also if kinds alternate; a type gets the memory that is free on all of its devices. */
static void kinds_stay_in_order(void **state)
{
    (void)state;
    struct case_gpus c = {.count = 0};
    struct hardware hardware = {0};
    add(&c, 2, a100);
    add(&c, 1, rtx_3090);
    add(&c, 1, a100);
    c.gpus[3].free_bytes = (uint64_t)30000 << 20;
    reach_both(&c, 0, 1);
    build(&c, &hardware);
    static const char *const names[] = {"a100-sxm4-40gb", "a100-sxm4-40gb", "rtx-3090-24gb", "a100-sxm4-40gb"};
    assert_int_equal(hardware.device_count, 4);
    assert_int_equal(hardware.type_count, 2);
    for (uint32_t d = 0; d < 4; d++)
        assert_string_equal(hardware.types[hardware.devices[d].type].name, names[d]);
    assert_near(hardware.types[hardware.devices[0].type].usable_bytes.value, 30000 * MIB);
    assert_near(hardware.host_bytes.value, 100 * GIB);
    assert_int_equal(hardware.host_cores, 24);
    assert_true(hardware_p2p_pair(&hardware, 0, 1));
    assert_false(hardware_p2p_pair(&hardware, 0, 3));
    hardware_release(&hardware);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_alone_is_its_device),
        cmocka_unit_test(known_gpus_are_the_catalogues),
        cmocka_unit_test(only_pairs_that_work_are_joined),
        cmocka_unit_test(what_is_no_group_is_left_out),
        cmocka_unit_test(old_links_are_as_slow),
        cmocka_unit_test(unknown_gpus_are_what_is_told),
        cmocka_unit_test(kinds_stay_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
