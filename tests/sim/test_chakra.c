/*
 * Execution traces of MLCommons Chakra: bytes of the format, closed forms of simulated times, plans there
 * and back, and refused inputs with their messages.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/sim/support_chakra.h"
#include "tests/support/support_seed.h"

#define NODE .family = CHAKRA_NONE, .comm_src = CHAKRA_NONE, .comm_dst = CHAKRA_NONE

/* --- the format ----------------------------------------------------------------------------- */

/* A message and a node as protocol buffers has them: tags are field * 8 + form.
 *     GlobalMetadata  0a 05 "1.0.0"                                              7 bytes
 *     Node            08 ac 02          id 300 = 2 * 128 + 44
 *                     12 01 'n'         name
 *                     18 02             type MEM_LOAD
 *                     2a 02 07 09       data_deps 7, 9, packed
 *                     38 05             duration_micros
 *                     52 11 ...         attribute: 0a 09 "is_cpu_op", d8 01 00: field 27, a bool
 *                     52 12 ...         attribute: 0a 0b "tensor_size", 68 80 08: field 13, 1024 */
static const uint8_t known[] = {
    7,    0x0a, 5,    '1',  '.', '0', '.', '0', 52,
    0x08, 0xac, 0x02, 0x12, 1,   'n', 0x18, 2, 0x2a, 2, 7, 9, 0x38, 5,
    0x52, 14, 0x0a, 9, 'i', 's', '_', 'c', 'p', 'u', '_', 'o', 'p', 0xd8, 1, 0,
    0x52, 16, 0x0a, 11, 't', 'e', 'n', 's', 'o', 'r', '_', 's', 'i', 'z', 'e', 0x68, 0x80, 8};

static void bytes(void **state)
{
    (void)state;
    const uint64_t deps[] = {7, 9};
    const struct chakra_node node = {NODE, .id = 300, .name = "n", .type = CHAKRA_MEM_LOAD, .data_deps = deps,
                                     .data_count = 2, .duration_micros = 5, .tensor_size = 1024};
    char *text, path[CHAKRA_PATH_BYTES];
    size_t length;
    struct error err = {0};
    uint8_t expected[sizeof known];
    memcpy(expected, known, sizeof known);
    expected[8] = sizeof known - 9;
    test_chakra_begin();
    test_chakra_write(0, &node, 1);
    assert_int_equal(chakra_path(test_chakra_prefix(), 0, path, &err), STATUS_OK);
    if (file_read(path, 1 << 20, &text, &length, &err)) fail_msg("%s", err.text);
    assert_int_equal(length, sizeof expected);
    assert_memory_equal(text, expected, sizeof expected);
    free(text);
    test_chakra_end();
}

/* Everything that is written can be read. */
static void fields(void **state)
{
    (void)state;
    const uint64_t deps[] = {0, UINT64_MAX};
    const struct chakra_node nodes[] = {
        {NODE, .id = 0, .type = CHAKRA_METADATA, .name = ""},
        {NODE, .id = UINT64_MAX, .type = CHAKRA_COMP, .is_cpu_op = true, .num_ops = INT64_MAX, .has_seconds = true,
         .seconds = 0x1.23456789abcdep-20, .stream = "cpu", .duration_micros = 77},
        {.id = 9, .type = CHAKRA_SEND, .comm_src = 3, .comm_dst = 4095, .comm_tag = 2147483647, .comm_size = 12345,
         .is_signal = true, .ctrl_deps = deps, .ctrl_count = 2, .data_deps = deps, .data_count = 1,
         .family = CHAKRA_NONE},
        {.id = 10, .type = CHAKRA_COLLECTIVE, .comm_type = CHAKRA_BARRIER, .pg_name = "17", .algorithm = "ring",
         .family = 5, .comm_src = CHAKRA_NONE, .comm_dst = CHAKRA_NONE}};
    char *text, path[CHAKRA_PATH_BYTES];
    size_t length;
    struct error err = {0};
    struct chakra_rank rank = {0};
    test_chakra_begin();
    test_chakra_write(0, nodes, ARRAY_COUNT(nodes));
    assert_int_equal(chakra_path(test_chakra_prefix(), 0, path, &err), STATUS_OK);
    if (file_read(path, 1 << 20, &text, &length, &err)) fail_msg("%s", err.text);
    if (chakra_rank_parse("t", text, length, &rank, &err)) fail_msg("%s", err.text);
    assert_int_equal(rank.count, ARRAY_COUNT(nodes));
    for (uint32_t n = 0; n < rank.count; n++) {
        const struct chakra_node *a = &nodes[n], *b = &rank.nodes[n];
        assert_true(a->id == b->id && a->type == b->type && a->is_cpu_op == b->is_cpu_op);
        assert_true(a->is_signal == b->is_signal && a->has_seconds == b->has_seconds);
        assert_memory_equal(&a->seconds, &b->seconds, sizeof a->seconds);
        assert_true(a->num_ops == b->num_ops && a->comm_size == b->comm_size && a->family == b->family);
        assert_true(a->comm_src == b->comm_src && a->comm_dst == b->comm_dst && a->comm_tag == b->comm_tag);
        assert_int_equal(chakra_rank_find(&rank, a->id), n);
        assert_int_equal(a->duration_micros, b->duration_micros);
    }
    assert_int_equal(rank.nodes[3].comm_type, CHAKRA_BARRIER);
    assert_string_equal(rank.nodes[3].pg_name, "17");
    assert_string_equal(rank.nodes[3].algorithm, "ring");
    assert_string_equal(rank.nodes[1].stream, "cpu");
    assert_int_equal(rank.nodes[2].ctrl_count, 2);
    assert_true(rank.nodes[2].ctrl_deps[1] == UINT64_MAX && rank.nodes[2].data_deps[0] == 0);
    assert_int_equal(chakra_rank_find(&rank, 8), CHAKRA_NONE);
    /* cut off anywhere, or cut between nodes, it is refused with a byte, or is shorter */
    for (size_t cut = 0; cut < length; cut++) {
        struct chakra_rank part = {0};
        struct error why = {0};
        enum status status = chakra_rank_parse("t", text, cut, &part, &why);
        if (status == STATUS_OK) assert_true(part.count < rank.count);
        else assert_int_equal(strncmp(why.text, "t: byte ", 8), 0);
        chakra_rank_release(&part);
    }
    chakra_rank_release(&rank);
    free(text);
    test_chakra_end();
}

/* Other writers use other types of integers: the value is what counts. */
static void integer_types(void **state)
{
    (void)state;
    static const struct {
        uint32_t field;
        uint64_t bits;
        bool refused;
    } cases[] = {{7, 385, false}, {9, 385, false},  {11, 385, false}, {13, 385, false}, {15, 770, false},
                 {17, 770, false}, {15, 769, true}, {9, UINT64_MAX - 2, true}, {29, 0, true}};
    for (size_t c = 0; c < ARRAY_COUNT(cases); c++) {
        struct protobuf_out node = {0}, attribute = {0}, file = {0};
        struct chakra_rank rank = {0};
        struct error err = {0};
        protobuf_out_string(&attribute, 1, "comm_size");
        if (cases[c].field == 29) protobuf_out_string(&attribute, 29, "385");
        else protobuf_out_u64(&attribute, cases[c].field, cases[c].bits);
        protobuf_out_u64(&node, 1, 1);
        protobuf_out_u64(&node, 3, CHAKRA_SEND);
        protobuf_out_bytes(&node, 10, attribute.bytes, attribute.length);
        protobuf_out_bytes(&node, 99, "not known", 9);
        protobuf_out_bytes(&file, 1, node.bytes, node.length); /* a tag, then what a stream of messages has */
        file.bytes[0] = 0; /* an empty GlobalMetadata */
        enum status status = chakra_rank_parse("t", file.bytes, file.length, &rank, &err);
        if (cases[c].refused) assert_int_equal(status, STATUS_BAD_INPUT);
        else if (status != STATUS_OK) fail_msg("case %zu: %s", c, err.text);
        else assert_int_equal(rank.nodes[0].comm_size, 385);
        chakra_rank_release(&rank);
        protobuf_out_release(&node);
        protobuf_out_release(&attribute);
        protobuf_out_release(&file);
    }
}

/* --- closed forms --------------------------------------------------------------------------- */

static struct hardware machine(uint32_t devices)
{
    struct hardware hardware;
    test_parallel_machine(&hardware, devices, 3e9, 2e-6); /* and 1e10 bytes/s from and to the host */
    return hardware;
}

/* Returns the time of a trace of one rank by itself. */
static double alone_s(const struct chakra_node *nodes, uint32_t count)
{
    struct hardware hardware = machine(1);
    test_chakra_begin();
    test_chakra_write(0, nodes, count);
    double makespan_s = test_chakra_makespan(&hardware);
    test_chakra_end();
    hardware_release(&hardware);
    return makespan_s;
}

/* As Chakra's generator makes them: computations of 7 us, which a device does one at a time whether they
 * depend on each other or not; the host's thread runs at the same time. Copies of 40 000 bytes at 1e10 bytes/s take
 * 4 us each way, at the same time. */
static void one_rank(void **state)
{
    (void)state;
    const uint64_t first[] = {1};
    const struct chakra_node computations[] = {
        {NODE, .id = 1, .type = CHAKRA_COMP, .duration_micros = 7},
        {NODE, .id = 2, .type = CHAKRA_COMP, .duration_micros = 7, .data_deps = first, .data_count = 1},
        {NODE, .id = 3, .type = CHAKRA_COMP, .duration_micros = 7},
        {NODE, .id = 4, .type = CHAKRA_COMP, .duration_micros = 20, .is_cpu_op = true},
        {NODE, .id = 5, .type = CHAKRA_COMP, .duration_micros = 4, .is_cpu_op = true, .ctrl_deps = first,
         .ctrl_count = 1},
        {NODE, .id = 6, .type = CHAKRA_METADATA, .duration_micros = 1000},
        {NODE, .id = 7, .type = CHAKRA_COLLECTIVE, .duration_micros = 2, .is_cpu_op = true}}; /* the call of one */
    test_parallel_near(alone_s(computations, 1), 7e-6);
    test_parallel_near(alone_s(computations, 2), 14e-6);
    test_parallel_near(alone_s(computations, 3), 21e-6);
    test_parallel_near(alone_s(computations, 4), 21e-6);
    test_parallel_near(alone_s(computations, 6), 24e-6);
    test_parallel_near(alone_s(computations, 7), 26e-6);
    const struct chakra_node copies[] = {
        {NODE, .id = 1, .type = CHAKRA_MEM_LOAD, .tensor_size = 40000},
        {NODE, .id = 2, .type = CHAKRA_MEM_STORE, .tensor_size = 40000},
        {NODE, .id = 3, .type = CHAKRA_MEM_LOAD, .tensor_size = 20000},
        {NODE, .id = 4, .type = CHAKRA_MEM_LOAD}};
    test_parallel_near(alone_s(copies, 1), 4e-6);
    test_parallel_near(alone_s(copies, 2), 4e-6);
    test_parallel_near(alone_s(copies, 4), 6e-6);
}

/* 3e9 FLOPs at the highest of three peaks, 2e12 FLOP/s. */
static void operations_over_peak(void **state)
{
    (void)state;
    struct hardware hardware = machine(1);
    hardware.types[0].peak_fp32.value = 0.5e12;
    hardware.types[0].peak_bf16.value = 2e12;
    hardware.types[0].peak_tf32.value = 1e12;
    const struct chakra_node node = {NODE, .id = 1, .type = CHAKRA_COMP, .num_ops = 3000000000};
    test_chakra_begin();
    test_chakra_write(0, &node, 1);
    test_parallel_near(test_chakra_makespan(&hardware), 1.5e-3);
    hardware.types[0].peak_fp32.value = hardware.types[0].peak_bf16.value = hardware.types[0].peak_tf32.value = 0;
    assert_non_null(strstr(test_chakra_complaint(&hardware),
                           ".0.et: byte 9: node 1 has no duration, and the peak of device 0"));
    test_chakra_end();
    hardware_release(&hardware);
}

/* Ring all-reduce of b bytes each among n over links of B and latency t on both ends:
 * 2 (n - 1) (2 t + b / n / B); the last rank comes 5 us later. An all-gather is told what each puts in. */
static void collectives(void **state)
{
    (void)state;
    const double step_s = 2 * 2e-6, rate = 3e9;
    for (uint32_t n = 2; n <= 5; n++) {
        struct hardware hardware = machine(5);
        test_chakra_begin();
        for (uint32_t r = 0; r < n; r++) {
            const uint64_t first[] = {1}, second[] = {2};
            const struct chakra_node nodes[] = {
                {NODE, .id = 1, .type = CHAKRA_COMP, .duration_micros = r == n - 1 ? 5 : 1},
                {NODE, .id = 2, .type = CHAKRA_COLLECTIVE, .comm_type = CHAKRA_ALL_REDUCE, .comm_size = 60000000,
                 .algorithm = "ring", .data_deps = first, .data_count = 1},
                {NODE, .id = 3, .type = CHAKRA_COLLECTIVE, .comm_type = CHAKRA_ALL_GATHER, .comm_size = 1200000,
                 .algorithm = "ring", .data_deps = second, .data_count = 1}};
            test_chakra_write(r, nodes, ARRAY_COUNT(nodes));
        }
        double reduce_s = 2 * (n - 1) * (step_s + 6e7 / n / rate), gather_s = (n - 1) * (step_s + 1.2e6 / rate);
        test_parallel_near(test_chakra_makespan(&hardware), 5e-6 + reduce_s + gather_s);
        test_chakra_end();
        hardware_release(&hardware);
    }
}

/* A message begins when both ends are ready; two to one rank go one after the other. */
static void messages(void **state)
{
    (void)state;
    struct hardware hardware = machine(3);
    const uint64_t first[] = {1};
    const double once_s = 4e-6 + 9e6 / 3e9; /* two latencies, then bytes */
    test_chakra_begin();
    for (uint32_t r = 0; r < 3; r++) {
        const struct chakra_node from[] = {
            {NODE, .id = 1, .type = CHAKRA_COMP, .duration_micros = 100},
            {.family = CHAKRA_NONE, .id = 2, .type = CHAKRA_SEND, .comm_src = r, .comm_dst = 2, .comm_tag = 4,
             .comm_size = 9000000, .data_deps = first, .data_count = 1}};
        const struct chakra_node to[] = {
            {.family = CHAKRA_NONE, .id = 1, .type = CHAKRA_RECV, .comm_src = 0, .comm_dst = 2, .comm_tag = 4,
             .tensor_size = 9000000},
            {.family = CHAKRA_NONE, .id = 2, .type = CHAKRA_RECV, .comm_src = 1, .comm_dst = CHAKRA_NONE, .comm_tag = 4,
             .comm_size = 9000000}};
        test_chakra_write(r, r < 2 ? from : to, 2);
    }
    test_parallel_near(test_chakra_makespan(&hardware), 100e-6 + 2 * once_s);
    test_chakra_end();
    hardware_release(&hardware);
}

/* --- plans there and back ------------------------------------------------------------------- */

static struct test_layer some_layer(void *context, uint32_t job, uint32_t layer)
{
    uint64_t key = *(const uint64_t *)context;
    (void)job;
    return (struct test_layer){.parameter_bytes = 512 * (1 + random_below(key, layer, 1000)),
                               .boundary_bytes = 512 * (1 + random_below(key, 100 + layer, 500)),
                               .activation_bytes = 512 * (1 + random_below(key, 200 + layer, 500)),
                               .forward_ns = 1000 + random_below(key, 300 + layer, 100000),
                               .backward_ns = 1000 + random_below(key, 400 + layer, 200000)};
}

/* Pipelines, tensor and data parallel, sharded states. Sizes are multiples of 512, so shares of up to four
 * ranks are whole, and the traces say all that the plan does: the makespan is the same. */
static void parallel_plans(void **state)
{
    (void)state;
    static const struct parallel shapes[] = {
        {.tensor = 1, .pipeline = 4, .data = 1, .chunks = 1, .schedule = PIPELINE_1F1B},
        {.tensor = 1, .pipeline = 2, .data = 2, .chunks = 1, .schedule = PIPELINE_GPIPE},
        {.tensor = 1, .pipeline = 2, .data = 1, .chunks = 3, .schedule = PIPELINE_INTERLEAVED},
        {.tensor = 1, .pipeline = 3, .data = 1, .chunks = 1, .schedule = PIPELINE_ZB_H1},
        {.tensor = 1, .pipeline = 1, .data = 4, .chunks = 1, .zero = 1},
        {.tensor = 1, .pipeline = 1, .data = 4, .chunks = 2, .zero = 3},
        {.tensor = 1, .pipeline = 2, .data = 2, .chunks = 1, .zero = 2, .schedule = PIPELINE_1F1B}};
    uint64_t seed = support_seed("chakra, spread");
    for (uint32_t c = 0; c < 4 * ARRAY_COUNT(shapes); c++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        uint64_t key = random_u64(seed, c);
        struct parallel shape = shapes[c % ARRAY_COUNT(shapes)];
        test_parallel_machine(&hardware, shape.tensor * shape.pipeline * shape.data, 5e9, 1e-6);
        test_profile_jobs(&jobs, 1, parallel_chunks(&shape), 2, some_layer, &key);
        jobs.jobs[0].microbatches = 3 * shape.pipeline * shape.data;
        jobs.jobs[0].parallel = shape;
        test_parallel_plan(&hardware, &jobs, &plan);
        double plan_s = test_parallel_simulate(&plan, true).makespan_s, back_s = test_chakra_there_and_back(&plan);
        if (!(fabs(plan_s - back_s) <= 1e-9 * plan_s))
            fail_msg("case %u: %.17g s, and back %.17g s", c, plan_s, back_s);
        plan_release(&plan);
    }
}

/* Jobs whose states are spilled, on two devices: copies, the host's optimizer, signals. */
static void spilled_plans(void **state)
{
    (void)state;
    for (uint32_t devices = 1; devices <= 3; devices++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        test_hardware(&hardware, devices, 2 << 20, 2e9);
        test_gpt_jobs(&jobs, 3, 4, 64, 257, 3);
        test_parallel_plan(&hardware, &jobs, &plan);
        double plan_s = test_parallel_simulate(&plan, true).makespan_s;
        test_parallel_near(test_chakra_there_and_back(&plan), plan_s);
        plan_release(&plan);
    }
}

/* --- refused inputs ------------------------------------------------------------------------- */

struct refusal {
    const char *complaint; /* after the prefix */
    uint32_t ranks;
    struct chakra_node nodes[3]; /* the first rank's; others have but the last */
    uint32_t count;
    const char *groups;
};

static const uint64_t one[] = {1}, two[] = {2}, nine[] = {9};

static const struct refusal refusals[] = {
    {".0.et: byte 9: node 1 is of type 8 (expected 1 to 7)", 1, {{NODE, .id = 1, .type = 8}}, 1, NULL},
    {".0.et: byte 9: node 1 is of type 0 (expected 1 to 7)", 1, {{NODE, .id = 1, .type = 0}}, 1, NULL},
    {".0.et: byte 9: node 1 depends on node 9, which does not exist", 1,
     {{NODE, .id = 1, .type = CHAKRA_COMP, .data_deps = nine, .data_count = 1}}, 1, NULL},
    {".0.et: byte 36: a second node 1 (the first is at byte 9)", 1,
     {{NODE, .id = 1, .type = CHAKRA_COMP}, {NODE, .id = 1, .type = CHAKRA_COMP}}, 2, NULL},
    {".0.et: byte 9: node 1 never begins: it is in a cycle of dependencies, or waits for a node that is", 1,
     {{NODE, .id = 1, .type = CHAKRA_COMP, .data_deps = two, .data_count = 1},
      {NODE, .id = 2, .type = CHAKRA_COMP, .data_deps = one, .data_count = 1}}, 2, NULL},
    {".0.et: byte 9: node 1 is a message without attribute 'comm_dst'", 2,
     {{NODE, .id = 1, .type = CHAKRA_SEND, .comm_size = 8}}, 1, NULL},
    {".0.et: byte 9: node 1 sends tag 3 to rank 1, which does not receive it", 2,
     {{.family = CHAKRA_NONE, .id = 1, .type = CHAKRA_SEND, .comm_src = 0, .comm_dst = 1, .comm_tag = 3},
      {NODE, .id = 2, .type = CHAKRA_COMP}}, 2, NULL},
    {".0.et: byte 9: node 1 has rank 7 at its other end (there are 2)", 2,
     {{.family = CHAKRA_NONE, .id = 1, .type = CHAKRA_SEND, .comm_src = 0, .comm_dst = 7},
      {NODE, .id = 2, .type = CHAKRA_COMP}}, 2, NULL},
    {".0.et: byte 9: node 1 is collective 1 of its process group, which rank 1 has no node for", 2,
     {{NODE, .id = 1, .type = CHAKRA_COLLECTIVE, .comm_size = 64}, {NODE, .id = 2, .type = CHAKRA_COMP}}, 2, NULL},
    {".0.et: byte 9: node 1 is a GATHER, which is not simulated", 2,
     {{NODE, .id = 1, .type = CHAKRA_COLLECTIVE, .comm_type = CHAKRA_GATHER, .comm_size = 64}}, 1, NULL},
    {".0.et: byte 9: node 1 is of process group '3', which is not in ", 2,
     {{NODE, .id = 1, .type = CHAKRA_COLLECTIVE, .comm_size = 64, .pg_name = "3"}}, 1, NULL},
    {".1.et: byte 9: node 1 is of process group '3', which rank 1 is not in", 2,
     {{NODE, .id = 1, .type = CHAKRA_COLLECTIVE, .comm_size = 64, .pg_name = "3"}}, 1, "{\"3\": [0]}"},
    {".0.et: byte 9: node 1 is of type 4 on stream 'h2d'", 1,
     {{NODE, .id = 1, .type = CHAKRA_COMP, .stream = "h2d"}}, 1, NULL},
    {".groups.json:1:9: process group 'all' is not a number (expected 1 or more)", 1,
     {{NODE, .id = 1, .type = CHAKRA_COMP}}, 1, "{\"all\": [0]}"},
    {".groups.json:1:12: element 1 is 1 (expected 0)", 1, {{NODE, .id = 1, .type = CHAKRA_COMP}}, 1,
     "{\"1\": [0,  1]}"},
    {".groups.json:1:7: rank 0 is in group '1' twice", 1, {{NODE, .id = 1, .type = CHAKRA_COMP}}, 1, "{\"1\": [0, 0]}"},
};

static void refused(void **state)
{
    (void)state;
    for (size_t c = 0; c < ARRAY_COUNT(refusals); c++) {
        const struct refusal *refusal = &refusals[c];
        struct hardware hardware = machine(2);
        test_chakra_begin();
        for (uint32_t r = 0; r < refusal->ranks; r++)
            if (r == 0) test_chakra_write(r, refusal->nodes, refusal->count);
            else test_chakra_write(r, &refusal->nodes[refusal->count - 1], 1);
        if (refusal->groups) test_chakra_write_bytes(".groups.json", refusal->groups, strlen(refusal->groups));
        const char *found = test_chakra_complaint(&hardware);
        if (strncmp(found, refusal->complaint, strlen(refusal->complaint)) != 0)
            fail_msg("case %zu: '%s', expected '%s'", c, found, refusal->complaint);
        test_chakra_end();
        hardware_release(&hardware);
    }
}

/* More ranks than the machine has devices; partners that say different things. */
static void refused_together(void **state)
{
    (void)state;
    struct hardware hardware = machine(1);
    test_chakra_begin();
    for (uint32_t r = 0; r < 2; r++) {
        const struct chakra_node node = {NODE, .id = 1, .type = CHAKRA_COLLECTIVE, .comm_size = 64 + r};
        test_chakra_write(r, &node, 1);
    }
    assert_non_null(strstr(test_chakra_complaint(&hardware), " has 2 ranks, and machine 'made-up' 1 devices"));
    hardware_release(&hardware);
    hardware = machine(2);
    assert_string_equal(test_chakra_complaint(&hardware),
                        ".1.et: byte 9: node 1 is ALL_REDUCE of 65 bytes, but its partner, node 1 of rank 0, is "
                        "ALL_REDUCE of 64");
    hardware_release(&hardware);
    test_chakra_end();
}

static void broken_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
        const char *complaint;
    } cases[] = {
        {"", 0, "t: byte 0: the file is empty (expected GlobalMetadata)"},
        {"\x07\x0a\x05", 3, "t: byte 0: a message is cut off: 2 of 7 bytes"},
        {"\xff", 1, "t: byte 0: a number is cut off"},
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10, "t: byte 0: a number has more than 64 bits"},
        {"\x02\x08\x01", 3, "t: byte 1: the first message is not GlobalMetadata: field 1 of form 0"},
        {"\x00\x02\x08\x80", 4, "t: byte 3: a number is cut off"},
        {"\x00\x02\x0b\x01", 4, "t: byte 2: field 1 has form 3 (expected 0, 1, 2 or 5)"},
        {"\x00\x02\x00\x01", 4, "t: byte 2: a field has number 0 (expected 1 to 536870911)"},
        {"\x00\x02\x0a\x05", 4, "t: byte 2: field 1 is cut off: 0 of 5 bytes"},
        {"\x00\x02\x0a\x00", 4, "t: byte 2: field 1 of a node has form 2"},
        {"\x00\x02\x09\x05", 4, "t: byte 2: field 1 is cut off: 1 of 8 bytes"},
        {"\x00\x05\x18\x04\x12\x01\x00", 7, "t: byte 6: a text contains a zero byte"},
        {"\x00\x02\x18\x07", 4, "t: byte 2: node 0 is a collective without attribute 'comm_type'"}};
    for (size_t c = 0; c < ARRAY_COUNT(cases); c++) {
        struct chakra_rank rank = {0};
        struct error err = {0};
        assert_int_equal(chakra_rank_parse("t", cases[c].bytes, cases[c].length, &rank, &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, cases[c].complaint);
        chakra_rank_release(&rank);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes),          cmocka_unit_test(fields),        cmocka_unit_test(integer_types),
        cmocka_unit_test(one_rank),       cmocka_unit_test(operations_over_peak), cmocka_unit_test(collectives),
        cmocka_unit_test(messages),       cmocka_unit_test(parallel_plans),  cmocka_unit_test(spilled_plans),
        cmocka_unit_test(refused),        cmocka_unit_test(refused_together), cmocka_unit_test(broken_bytes),
    };
    return cmocka_run_group_tests_name("sim/chakra_*.h", tests, NULL, NULL);
}
