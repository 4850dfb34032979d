/*
 * models/hardware/hardware.h, files: files that read back to the bit, the effect of the command line, and the checks,
 * each with one thing broken.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/size.h"
#include "models/cost/cost.h"
#include "models/hardware/collective_rate.h"
#include "models/hardware/hardware_dilate.h"
#include "tests/support/support_hardware_text.h"
#include "tests/support/support_models.h"

/* --- files ---------------------------------------------------------------------------------- */

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
    assert_int_equal(h.host_bytes.kind, SOURCE_MEASURED);
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

#define LOAD(others, stolen)                                                                           \
    "\"load\": {\"others\": " SOURCED_VALUE(others, "ratio") ", \"stolen\": " SOURCED_VALUE(stolen, "ratio") ", " \
    "\"disturbed\": " SOURCED_VALUE("0.375", "ratio") "},\n"

/* A share of others of a twentieth or more is reported, with its larger cause. */
static void a_load_is_read_and_told(void **state)
{
    (void)state;
    static const struct {
        const char *text, *told;
    } cases[] = {
        {HEAD LOAD("0.3125", "0.02") TYPES LINKS DEVICES,
         "other programs used 31 % of its processors while it was measured"},
        {HEAD LOAD("0.01", "0.0725") TYPES LINKS DEVICES,
         "7 % of its processors went to other machines while it was measured"},
        {HEAD LOAD("0.02", "0.0275") TYPES LINKS DEVICES, NULL},
        {HEAD TYPES LINKS DEVICES, NULL},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct hardware h = {0};
        struct error err = {0};
        char told[HARDWARE_LOAD_TEXT_BYTES];
        if (support_hardware(cases[i].text, &h, &err) != STATUS_OK) fail_msg("%s", err.text);
        assert_int_equal(hardware_load_text(&h, told), cases[i].told != NULL);
        if (cases[i].told) assert_string_equal(told, cases[i].told);
        if (i == 0) assert_true(h.load.disturbed.value == 0.375);
        hardware_release(&h);
    }
}

static const char profiled[] =
    HEAD
    "\"device_types\": [{\"name\": \"core\", \"memory\": " SOURCED_VALUE("8", "GiB") ",\"peak_fp32\": "
    SOURCED_VALUE("200.5", "GFLOP/s") ", \"memory_bandwidth\": " SOURCED_VALUE("14.5", "GB/s") ",\n"
    "\"profiles\": [{\"threads\": 2, \"kernels\": {\"matmul_forward\": [[64, 64, 128, 1e-5, 0.01],"
    " [32, 64, 128, 5.25e-6, 0.02]], \"gelu_forward\": [[100, 7, 0, 3e-6, 0]]},"
    " \"interference\": {\"compute_by_copy\": " SOURCED_VALUE("0.25", "ratio") ", \"copy_reference_rate\": "
    SOURCED_VALUE("11", "GB/s") "}}, {\"threads\": 1, \"kernels\": {}}],\n"
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
    support_machine("t4-16gb", &h);
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
         "test:2:20: missing keys 'unit', 'kind', 'source' and 'as_of'"},
        {"{\"spillway_hardware\": 1, \"name\": \"m\", \"backend\": \"cuda\",\n"
         "\"host\": {\"memory\": " SOURCED_VALUE("24", "GB/s") ", \"cores\": 2}}",
         "test:2:42: 'memory' has the unit 'GB/s' (expected the unit of a size such as 96MiB)"},
        {"{\"spillway_hardware\": 1, \"name\": \"m\", \"backend\": \"cuda\",\n"
         "\"host\": {\"memory\": " SOURCED_VALUE("2", "0GB") ", \"cores\": 2}}",
         "test:2:41: 'memory' has the unit '0GB' (expected the unit of a size such as 96MiB)"},
        {HEAD "\"device_types\": [{\"name\": \"a\", \"memory\": " SOURCED_VALUE("8", "GB")
         ", \"peak_fp32\": " SOURCED_VALUE("8", "GFLOP/s") ", \"memory_bandwidth\": "
         SOURCED_VALUE("8", "GB/s") ",\n\"matmul_efficiency\": " SOURCED_VALUE("80", "%") "}]}",
         "test:4:44: 'matmul_efficiency' has the unit '%' (expected 'ratio')"},
        {"{\"spillway_hardware\": 1, \"name\": \"m\", \"backend\": \"cuda\",\n"
         "\"host\": {\"memory\": " SOURCED_VALUE("0", "GB") ", \"cores\": 2}}",
         "test:2:30: 'memory' is 0 in base units (expected 1 to 1.15292e+18)"},
        {"{\"spillway_hardware\": 1, \"name\": \"m\", \"backend\": \"cuda\",\n\"host\": {\"memory\": "
         "{\"value\": 2, \"unit\": \"GB\", \"kind\": \"guess\", \"source\": \"\", \"as_of\": \"\"}}}",
         "test:2:55: unknown kind 'guess' (expected datasheet, measured, derived, assumed or fitted)"},
        {"{\"spillway_hardware\": 1, \"name\": \"m\", \"backend\": \"cuda\",\n\"host\": {\"memory\": "
         "{\"value\": 2, \"unit\": \"GB\", \"kind\": \"assumed\", \"as_of\": \"\"}}}",
         "test:2:20: missing key 'source'"},
        {HEAD "\"device_types\": []}", "test:3:17: 'device_types' has 0 elements (expected 1 to 1024)"},
        {HEAD TYPES "\"links\": [{\"name\": \"a\", \"duplex\": true, \"bandwidth\": "
         SOURCED_VALUE("1e-3", "B/s") "}]}", "test:1:1: missing key 'devices'"},
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
         "test:5:48: unknown key 'memory' (did you mean 'memory_bytes'?)"},
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

/* Repeated entries that must be single, and tables past their limits. */
static void repetitions_and_excess_are_refused(void **state)
{
    (void)state;
    static const char *const type = "{\"name\": \"core\", \"memory\": " SOURCED_VALUE("8", "GiB")
        ", \"peak_fp32\": " SOURCED_VALUE("2", "GFLOP/s") ", \"memory_bandwidth\": " SOURCED_VALUE("1", "GB/s");
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
        {", \"collectives\": [{\"kind\": \"send\", \"members\": 2, \"points\": [[1, 1, 0]]}, "
         "{\"kind\": \"send\", \"members\": 2, \"points\": [[2, 1, 0]]}]}", "", LINKS,
         "two lists of send among 2 members"},
        {", \"collectives\": [{\"kind\": \"send\", \"members\": 2, \"points\": []}]}", "", LINKS,
         "a collective has no points (expected 1 to 256)"},
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
                                             "\"bandwidth\": " SOURCED_VALUE("2", "GB/s") "}");
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
    support_machine(path, &h);
    assert_string_equal(h.name, "m");
    hardware_release(&h);
    unlink(path);
    struct error err = {0};
    assert_int_equal(hardware_find(path, &h, &err), STATUS_BAD_INPUT);
}

static void bad_points_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *kernels, *message;
    } rows[] = {
        {"\"matmul\": []", "test:4:30: unknown key 'matmul' (did you mean 'matmul_forward', 'matmul_input', "
                           "'matmul_weight', "
                            "'matmul_bf16_forward' or 5 more?)"},
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
                 HEAD "\"device_types\": [{\"name\": \"core\", \"memory\": " SOURCED_VALUE("8", "GiB")
                      ",\"peak_fp32\": " SOURCED_VALUE("2", "GFLOP/s") ", \"memory_bandwidth\": "
                      SOURCED_VALUE("1", "GB/s")
                      ", \"profiles\": [{\"threads\": 1,\n                 \"kernels\": {%s}}]}],\n"
                      LINKS DEVICES,
                 rows[i].kernels);
        struct hardware h = {0};
        struct error err = {0};
        assert_int_equal(support_hardware(text, &h, &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, rows[i].message);
    }
}

static void bad_collectives_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *collectives, *message;
    } rows[] = {
        {"\"kind\": \"all-sum\", \"members\": 2, \"points\": [[1, 1, 0]]", "unknown kind 'all-sum'"},
        {"\"kind\": \"send\", \"members\": 1, \"points\": [[1, 1, 0]]", "'members' is 1 (expected 2 to 24576)"},
        {"\"kind\": \"send\", \"members\": 2, \"points\": [[1, 0, 0]]", "element 1 is 0 (expected 1e-12"},
        {"\"kind\": \"send\", \"members\": 2, \"point\": []", "unknown key 'point'"},
        {"\"kind\": \"send\", \"members\": 2", "a collective has no points"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char text[4096];
        snprintf(text, sizeof text,
                 HEAD "\"device_types\": [{\"name\": \"core\", \"memory\": " SOURCED_VALUE("8", "GiB")
                      ",\"peak_fp32\": " SOURCED_VALUE("2", "GFLOP/s") ", \"memory_bandwidth\": "
                      SOURCED_VALUE("1", "GB/s") ", \"collectives\": [{%s}]}],\n" LINKS DEVICES, rows[i].collectives);
        struct hardware h = {0};
        struct error err = {0};
        assert_int_equal(support_hardware(text, &h, &err), STATUS_BAD_INPUT);
        if (!strstr(err.text, rows[i].message)) fail_msg("%s", err.text);
    }
}

/* Measured collectives of a file are there, in the order of the file, and written again. */
static void collectives_are_read_and_written(void **state)
{
    (void)state;
    static const char text[] =
        HEAD "\"device_types\": [{\"name\": \"core\", \"memory\": " SOURCED_VALUE("8", "GiB")
             ",\"peak_fp32\": " SOURCED_VALUE("2", "GFLOP/s") ", \"memory_bandwidth\": " SOURCED_VALUE("1", "GB/s")
             ", \"collectives\": [{\"kind\": \"broadcast\", \"members\": 8, \"computing\": 3, \"points\": [[9, 4, "
             "0.5], [5, 3, 0]]},{\"kind\": \"all-gather\", \"members\": 2, \"points\": [[7, 2, 0]]},"
             "{\"kind\": \"all-gather\", \"members\": 2, \"processes\": 2, \"points\": [[7, 2, 0]]}]}],\n"
             LINKS DEVICES;
    struct hardware h = {0};
    struct error err = {0};
    if (support_hardware(text, &h, &err) != STATUS_OK) fail_msg("%s", err.text);
    const struct device_type *const type = &h.types[0];
    assert_int_equal(type->collective_count, 3);
    assert_int_equal(type->collectives[2].processes, 2);
    const struct collective_rate *const rate = support_collective_rate(type, COLLECTIVE_BROADCAST, 8, 3);
    assert_ptr_equal(rate, &type->collectives[0]);
    assert_true(rate->point_count == 2 && rate->points[0].bytes == 5 && rate->points[1].spread == 0.5);
    assert_null(support_collective_rate(type, COLLECTIVE_BROADCAST, 8, 0));
    char *const first = support_hardware_text(&h);
    struct hardware again = {0};
    if (support_hardware(first, &again, &err) != STATUS_OK) fail_msg("%s", err.text);
    char *const second = support_hardware_text(&again);
    assert_string_equal(first, second);
    assert_non_null(strstr(first, "\"computing\": 3"));
    free(first);
    free(second);
    hardware_release(&again);
    hardware_release(&h);
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
        support_machine(hardware_preset_name(i), &h);
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
    support_machine("host-2-cores", &h);
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
    support_machine("4x a100-sxm4-40gb", &h);
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

/* Every computation takes the factor, copies take what they took; the file keeps it. */
static void a_dilated_machine_is_slower(void **state)
{
    (void)state;
    struct hardware h, slow;
    struct error err = {0};
    support_machine("host-2-cores", &h);
    support_machine("host-2-cores", &slow);
    const struct hardware_options one = {.threads = 1}, dilated = {.device_count = 6, .dilation = 8};
    assert_int_equal(hardware_adjust(&h, &one, &err), STATUS_OK);
    assert_int_equal(hardware_adjust(&slow, &dilated, &err), STATUS_OK);
    assert_int_equal(slow.threads, 1);
    assert_true(hardware_dilation(&h) == 1 && hardware_dilation(&slow) == 8);
    assert_false(hardware_has_cpu(&slow)); /* but parallel jobs step there */
    for (uint32_t kernel = 0; kernel < KERNEL_COUNT; kernel++) {
        const struct work_item item = {.kernel = kernel, .m = 200, .n = 300, .k = 400, .count = 3};
        if (kernel == KERNEL_FIXED || kernel == KERNEL_COLLECTIVE) continue; /* the same on every device */
        const double s = cost_item_s(&h, 0, &item), slow_s = cost_item_s(&slow, 5, &item);
        if (fabs(slow_s - 8 * s) > 1e-9 * slow_s) fail_msg("kernel %u: %g, %g", kernel, slow_s, 8 * s);
        const double host_s = cost_item_s(&h, hardware_cpu(&h), &item),
            slow_host_s = cost_item_s(&slow, hardware_cpu(&slow), &item);
        if (fabs(slow_host_s - 8 * host_s) > 1e-9 * slow_host_s)
            fail_msg("kernel %u: %g, %g", kernel, slow_host_s, 8 * host_s);
    }
    assert_true(cost_copy_s(&slow, 3, COPY_H2D, 1 << 20) == cost_copy_s(&h, 0, COPY_H2D, 1 << 20));
    assert_int_equal(hardware_check(&slow, &err), STATUS_OK);
    check_round_trip(&slow);
    const struct hardware_options again = {.dilation = 2};
    assert_int_not_equal(hardware_adjust(&slow, &again, &err), STATUS_OK);
    assert_string_equal(err.text, "machine 'host-2-cores' is dilated already, by 8");
    hardware_release(&h);
    hardware_release(&slow);
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
        {"host-2-cores", {.device_count = 24577}, "too many devices (limit is 24576)"},
        {"t4-16gb", {.device_memory_bytes = UINT64_C(15) << 30},
         "device memory 15 GiB is more than the 14.5 GiB usable on 't4-16gb'"},
        {"t4-16gb", {.threads = 2}, "only host machines have threads, and 't4-16gb' has back end 'cuda'"},
        {"t4-16gb", {.dilation = 2}, "only host devices can be dilated, and 't4-16gb' has back end 'cuda'"},
        {"host-2-cores", {.threads = 3}, "3 threads are more than the 2 cores of 'host-2-cores'"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct hardware h;
        struct error err = {0};
        support_machine(rows[i].machine, &h);
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
    support_machine("t4-16gb", &h);
    h.links[1].bandwidth.value = 0;
    check_broken(&h, "bandwidth of 'pcie-0' is 0 (expected more than 0)");
    support_machine("t4-16gb", &h);
    h.links[1].latency.value = -1;
    check_broken(&h, "latency of 'pcie-0' is -1 (expected at least 0)");
    support_machine("t4-16gb", &h);
    h.types[0].usable_bytes.value = 17 * 0x1p30;
    check_broken(&h, "'t4-16gb' has 17 GiB of usable memory but only 16 GiB in total");
    support_machine("t4-16gb", &h);
    h.types[0].matmul_efficiency.value = 1.5;
    check_broken(&h, "matmul_efficiency of 't4-16gb' is 1.5 (expected 0 to 1)");
    support_machine("t4-16gb", &h);
    h.types[0].peak_fp32.value = NAN;
    check_broken(&h, "peak_fp32 of 't4-16gb' is nan (expected more than 0)");
    support_machine("t4-16gb", &h);
    h.devices[0].memory_bytes = UINT64_C(15) << 30;
    check_broken(&h, "device 0 offers 15 GiB of memory (expected more than 0, at most the 14.5 GiB "
                     "usable on 't4-16gb')");
    support_machine("t4-16gb", &h);
    h.devices[0].type = 3;
    check_broken(&h, "device 0 has no type");
    support_machine("t4-16gb", &h);
    h.devices[0].path[1] = 2;
    check_broken(&h, "device 0 has an unknown link");
    support_machine("t4-16gb", &h);
    h.devices[0].path_count = 0;
    check_broken(&h, "device 0 has 0 links to the host (expected 1 to 8)");
    support_machine("t4-16gb", &h);
    h.device_count = 0;
    check_broken(&h, "machine 't4-16gb' has no device");
    support_machine("t4-16gb", &h);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read),
        cmocka_unit_test(profiles_are_read_and_sorted),
        cmocka_unit_test(bad_files_are_refused_with_their_place),
        cmocka_unit_test(repetitions_and_excess_are_refused),
        cmocka_unit_test(a_path_is_read),
        cmocka_unit_test(bad_points_are_refused),
        cmocka_unit_test(bad_collectives_are_refused),
        cmocka_unit_test(collectives_are_read_and_written),
        cmocka_unit_test(machines_survive_writing_to_the_bit),
        cmocka_unit_test(a_load_is_read_and_told),
        cmocka_unit_test(a_host_machine_is_multiplied_and_paced),
        cmocka_unit_test(other_machines_shrink_and_scale),
        cmocka_unit_test(a_dilated_machine_is_slower),
        cmocka_unit_test(impossible_changes_are_refused),
        cmocka_unit_test(nonsense_is_found),
        cmocka_unit_test(memory_may_end_anywhere),
    };
    return cmocka_run_group_tests_name("hardware files", tests, NULL, NULL);
}
