/*
 * models/hardware/import/hardware_import.h: output of nvbandwidth and nccl-tests, made by hand from their known
 * formats, lands where it should; a collective takes as long as was measured; a machine that was changed is written and
 * read back; bad files have a place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_out.h"
#include "base/size.h"
#include "models/cost/collective_group.h"
#include "models/cost/cost.h"
#include "models/hardware/import/hardware_import.h"
#include "tests/support/support_models.h"

static enum status import(const char *machine, const char *text, struct hardware *out, struct error *err)
{
    static struct import_report report;
    report.count = 0;
    support_machine(machine, out);
    return hardware_import_text("m", text, strlen(text), "2026-11-22", out, &report, err);
}

static bool near(double a, double b)
{
    return a > b * (1 - 1e-9) && a < b * (1 + 1e-9);
}

static const char bandwidth[] =
    "{\"nvbandwidth\": {\"CUDA Runtime Version\": 12030, \"Driver Version\": \"535.1\", \"git_version\": \"v0.4\", "
    "\"testcases\": [\n"
    "{\"name\": \"host_to_device_memcpy_ce\", \"status\": \"Passed\", \"bandwidth_description\": \"memcpy CE CPU(row) "
    "-> GPU(column) bandwidth (GB/s)\", \"bandwidth_matrix\": [[\"24.50\", \"26.03\"]], \"sum\": 50.53},\n"
    "{\"name\": \"device_to_host_memcpy_ce\", \"status\": \"Passed\", \"bandwidth_matrix\": [[\"25.10\", "
    "\"22.00\"]]},\n"
    "{\"name\": \"device_to_device_memcpy_read_ce\", \"status\": \"Passed\", \"bandwidth_matrix\": [[\"N/A\", "
    "\"243.5\"], [\"241.5\", \"N/A\"]], \"min\": 0},\n"
    "{\"name\": \"all_to_host_memcpy_ce\", \"status\": \"Passed\", \"bandwidth_matrix\": [[\"1\"]]}]}}\n";

static void nvbandwidth_sets_links_and_curves(void **state)
{
    (void)state;
    struct hardware h;
    struct error err = {0};
    if (import("2x a100-sxm4-40gb", bandwidth, &h, &err) != STATUS_OK) fail_msg("%s", err.text);
    const struct device_type *type = &h.types[0];
    const struct sourced_value *first = &h.links[h.devices[0].path[h.devices[0].path_count - 1]].bandwidth,
                        *second = &h.links[h.devices[1].path[h.devices[1].path_count - 1]].bandwidth;
    assert_true(near(first->value, 25.10e9));  /* the better of both directions */
    assert_true(near(second->value, 26.03e9));
    assert_int_equal(first->kind, SOURCE_MEASURED);
    assert_string_equal(first->source, "nvbandwidth, device_to_host_memcpy_ce");
    assert_string_equal(first->as_of, "2026-11-22");
    assert_true(near(h.links[h.devices[0].networks[0].path[0]].bandwidth.value, 243.5e9));
    assert_int_equal(type->h2d_count, 1);
    assert_true(near(type->h2d[0].seconds, 536870912 / 25.265e9)); /* the middle of 24.50 and 26.03 */
    assert_true(near(cost_copy_s(&h, 0, COPY_D2H, 536870912), 536870912 / 23.55e9));
    assert_true(near(type->p2p[0].seconds, 536870912 / 242.5e9));
    hardware_release(&h);
}

/* The same as it is printed without -j, with the lines around it. */
static const char bandwidth_text[] =
    "nvbandwidth Version: v0.4\nBuilt from Git version: v0.4\n\nDevice 0: NVIDIA A100-SXM4-40GB\n\n"
    "Running host_to_device_memcpy_ce.\r\nmemcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\r\n"
    "           0         1\r\n 0     24.50     26.03\r\n\r\nSUM host_to_device_memcpy_ce 50.53\r\n\r\n"
    "Running device_to_host_memcpy_ce.\nmemcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)\n"
    "           0         1\n 0     25.10     22.00\n\nSUM device_to_host_memcpy_ce 47.10\n\n"
    "Running device_to_device_memcpy_read_ce.\nmemcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n"
    "           0         1\n 0       N/A    243.5\n 1     241.5       N/A\n\n"
    "Running all_to_host_memcpy_ce.\nmemcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)\n           0\n 0     1.00\n";

static void as_text(const struct hardware *h, char **out)
{
    struct json_out *json = json_out_create(NULL);
    size_t length;
    assert_non_null(json);
    hardware_write(h, json, NULL);
    assert_true(json_out_complete(json));
    *out = strdup(json_out_text(json, &length));
    json_out_destroy(json);
}

static void nvbandwidth_as_printed_is_the_same(void **state)
{
    (void)state;
    struct hardware a, b;
    struct error err = {0};
    char *first, *second;
    if (import("2x a100-sxm4-40gb", bandwidth, &a, &err) != STATUS_OK) fail_msg("%s", err.text);
    if (import("2x a100-sxm4-40gb", bandwidth_text, &b, &err) != STATUS_OK) fail_msg("%s", err.text);
    as_text(&a, &first);
    as_text(&b, &second);
    assert_string_equal(first, second);
    free(first);
    free(second);
    hardware_release(&a);
    hardware_release(&b);
}

static const char table[] =
    "# nThread 1 nGpus 8 minBytes 1024 maxBytes 1073741824\n"
    "#  Rank  0 Group  0 Pid 1 on host device  0 [0x10] A100\n#  Rank  1 Group  0 Pid 1 on host device  1 [0x11] A100\n"
    "#  Rank  2 Group  0 Pid 1 on host device  2 [0x12] A100\n#  Rank  3 Group  0 Pid 1 on host device  3 [0x13] A100\n"
    "#                                        out-of-place                       in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
    "#wrong\n"
    "       65536         16384     float     sum      -1    30.00    2.18    3.28      0    29.9    2.19    3.29     "
    " 0\n"
    "  1073741824     268435456     float     sum      -1  7000.00  153.39  230.09      0  6999.0  153.41  230.12     "
    " 0\n"
    "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 116.7\n";

/* 4 ranks: 6 steps of a quarter of the size. */
static void collectives_take_what_nccl_tests_measured(void **state)
{
    (void)state;
    struct hardware h;
    struct error err = {0};
    if (import("4x h100-sxm5-80gb", table, &h, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_int_equal(h.types[0].ring_count, 2);
    assert_int_equal(h.types[0].ring[0].bytes, 16384);
    assert_true(near(h.types[0].ring[0].seconds, 5e-6));
    struct arena arena = {0};
    struct collective_finder finder;
    struct collective_group group;
    const uint32_t devices[] = {0, 1, 2, 3};
    uint32_t lacking[2];
    assert_int_equal(collective_finder_init(&arena, &h, &finder, &err), STATUS_OK);
    assert_true(collective_groups_find(&finder, devices, 4, 1, &group, lacking));
    assert_true(near(collective_cost(COLLECTIVE_ALL_REDUCE, COLLECTIVE_RING, &group, 65536).seconds, 30e-6));
    assert_true(near(collective_cost(COLLECTIVE_ALL_REDUCE, COLLECTIVE_RING, &group, 1073741824).seconds, 7e-3));
    assert_true(near(collective_cost(COLLECTIVE_ALL_GATHER, COLLECTIVE_RING, &group, 1073741824).seconds, 3.5e-3));
    arena_release(&arena);
    /* a file of it is the same machine */
    char *text = support_hardware_text(&h), *again;
    struct hardware read = {0};
    assert_int_equal(support_hardware(text, &read, &err), STATUS_OK);
    again = support_hardware_text(&read);
    assert_string_equal(text, again);
    free(text);
    free(again);
    hardware_release(&read);
    hardware_release(&h);
}

/* The same all-gather as JSON: 3 steps. */
static void nccl_json_is_the_same(void **state)
{
    (void)state;
    struct hardware h;
    struct error err = {0};
    if (import("4x a100-sxm4-40gb",
               "{\"version\": 3, \"nccl_version\": \"2.28\", \"devices\": [{}, {}, {}, {}], "
               "\"results\": [{\"size\": 1048576, \"count\": 1, \"type\": \"float\", \"redop\": \"none\", "
               "\"root\": -1, \"out_of_place\": {\"time\": 60.0, \"alg_bw\": 17.476, \"bus_bw\": 13.107, "
               "\"nwrong\": \"N/A\"}, \"in_place\": {\"time\": 61, \"alg_bw\": 17, \"bus_bw\": 13, \"nwrong\": 0}}]}",
               &h, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(h.types[0].ring[0].bytes, 262144);
    assert_true(near(h.types[0].ring[0].seconds, 20e-6));
    hardware_release(&h);
}

static void bad_files_have_a_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"{\"nvbandwidth\": {\"testcases\": [{\"name\": \"host_to_device_memcpy_ce\", \"bandwidth_matrix\": [[\"1\", "
         "\"x\"]]}]}}",
         "m:1:96: the cell is 'x' (expected GB/s such as \"26.03\", or \"N/A\")"},
        {"{\"nvbandwidth\": {\"testcases\": [{\"name\": \"a\"}]}}",
         "m:1:31: no test case can be used (expected one of host_to_device_memcpy_ce, device_to_host_memcpy_ce, "
         "device_to_device_memcpy_read_ce)"},
        {"{\"other\": 1}", "m:1:1: neither nvbandwidth's nor nccl-tests' (expected the key 'nvbandwidth' or "
                           "'results')"},
        {"", "m:1:1: neither JSON nor a table of nccl-tests with results"},
        {"# Rank 0 x\n 8 2 float sum -1 fast 1 1\n", "m:2:19: time is 'fast' (expected a number)"},
        {"# Rank 0 x\n 8 2 float\n", "m:2:1: no row of nccl-tests (expected size, count, type, redop, root, time, "
                                     "algbw, busbw)"},
        {" 8 2 float sum -1 5 1 1\n", "m:1:1: the table names no ranks (expected lines '#  Rank  0 ...')"},
        {"# Rank 0 x\n# Rank 1 x\n 1024 2 float sum -1 5 1 0.7\n",
         "m:3:1: neither an all-reduce nor an all-gather of 2 ranks by its bandwidths"},
        {"# Rank 0 x\n# Rank 1 x\n# Rank 2 x\n 8 2 float sum -1 5 1 1\n",
         "m:4:1: 3 ranks (expected 2 to the 2 devices of the machine)"},
        {"Running host_to_device_memcpy_ce.\nmemcpy CE\n 0 1\n 0 24.5 fast\n",
         "m:4:1: the cell is 'fast' (expected GB/s such as 26.03, or N/A)"},
        {"Running host_to_device_memcpy_ce.\nmemcpy CE\n 0\n 0 24.5\n",
         "m:4:1: host_to_device_memcpy_ce has 1 columns (expected 2, of the machine's devices)"},
        {"Running device_to_device_memcpy_read_ce.\nmemcpy CE\n 0 1\n 0 N/A 243.5\nSUM 243.5\n",
         "m:5:1: device_to_device_memcpy_read_ce ends after 1 of 2 rows"},
        {"Running device_to_device_memcpy_read_ce.\nmemcpy CE\n",
         "m:3:1: device_to_device_memcpy_read_ce ends after 0 of 2 rows"},
        {"Running host_to_all_memcpy_ce.\nmemcpy CE\n 0 1\n 0 1 1\n",
         "m:1:1: no test can be used (expected one of host_to_device_memcpy_ce, device_to_host_memcpy_ce, "
         "device_to_device_memcpy_read_ce)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct hardware h;
        struct error err = {0};
        assert_int_equal(import("2x a100-sxm4-40gb", rows[i].text, &h, &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, rows[i].message);
        hardware_release(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nvbandwidth_sets_links_and_curves),
        cmocka_unit_test(nvbandwidth_as_printed_is_the_same),
        cmocka_unit_test(collectives_take_what_nccl_tests_measured),
        cmocka_unit_test(nccl_json_is_the_same),
        cmocka_unit_test(bad_files_have_a_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
