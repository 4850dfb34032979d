/* SPASE instances and schedules: contents of files, refused files and the place of the fault, modes, lists, the
 * judge. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_out.h"
#include "base/random.h"
#include "base/size.h"
#include "planner/saturn/spase/spase_io.h"
#include "planner/saturn/spase/spase_schedule.h"
#include "tests/support/solve/support_spase.h"
#include "tests/support/solve/support_spase_json.h"
#include "tests/support/support_json.h"
#include "tests/support/support_seed.h"

#define TWO_CLASSES                                                                                  \
    "{'spillway_spase': 1, 'name': 'x', 'nodes': [{'name': 'p4d', 'class': 'a100', 'devices': 4, 'count': 2}," \
    " {'name': 'p3', 'class': 'v100', 'devices': 3}], 'jobs': ["                                      \
    "{'name': 'big', 'configurations': ["                                                             \
    "  {'parallelism': 'ddp', 'devices': 2, 'ticks': {'a100': 50, 'v100': 90}},"                      \
    "  {'parallelism': 'fsdp', 'devices': 2, 'ticks': 60},"                                           \
    "  {'parallelism': 'fsdp', 'devices': 4, 'ticks': 55},"                                           \
    "  {'parallelism': 'pipeline', 'devices': 6, 'ticks': {'a100': 20}, 'spans': true},"              \
    "  {'parallelism': 'pipeline', 'devices': 3, 'ticks': {'v100': 45}, 'spans': true}]},"            \
    "{'name': 'small', 'configurations': [{'parallelism': 'ddp', 'devices': 1, 'ticks': 7}]}]}"

/* --- instances ------------------------------------------------------------------------------- */

/* 'big' on a100: 2 for 50 (fsdp's 60 and 55 on 4 are needless), 6 over nodes for 20; on v100: 2 for 60
 * (ddp's 90 is needless), 3 for 45, which cannot span where there is one node. */
static void reads(void **state)
{
    (void)state;
    struct spase in;
    test_spase(TWO_CLASSES, &in);
    assert_int_equal(in.node_count, 3);
    assert_string_equal(in.nodes[1].name, "p4d-1");
    assert_int_equal(in.nodes[2].first_device, 8);
    assert_int_equal(in.device_count, 11);
    assert_int_equal(in.class_devices[0], 8);
    assert_int_equal(in.class_widest[1], 3);
    static const struct spase_mode modes[] = {{0, 0, 2, false, 50}, {3, 0, 6, true, 20}, {1, 1, 2, false, 60},
                                              {4, 1, 3, false, 45}, {5, 0, 1, false, 7}, {5, 1, 1, false, 7}};
    assert_int_equal(in.mode_count, ARRAY_COUNT(modes));
    assert_int_equal(in.jobs[1].first_mode, 4);
    for (uint32_t m = 0; m < in.mode_count; m++) {
        assert_int_equal(in.modes[m].config, modes[m].config);
        assert_int_equal(in.modes[m].class, modes[m].class);
        assert_int_equal(in.modes[m].devices, modes[m].devices);
        assert_int_equal(in.modes[m].spans, modes[m].spans);
        assert_int_equal(in.modes[m].ticks, modes[m].ticks);
    }
    assert_int_equal(in.horizon, 60 + 7);
    spase_release(&in);
}

#define NODES "{'spillway_spase': 1, 'nodes': [{'devices': 4}], 'jobs': ["
#define CONFIG(text) NODES "{'name': 'a', 'configurations': [{" text "}]}]}"

static const struct {
    const char *text, *message;
    enum status status;
} refused[] = {
    {NODES "{'name': 'a', 'configurations': []}]}",
     "test:1:91: no configurations (expected at least one)", STATUS_BAD_INPUT},
    {CONFIG("'parallelism': 'x', 'devices': 1, 'ticks': 0"),
     "test:1:136: 'ticks' is 0 (expected 1 to 1000000000000)", STATUS_BAD_INPUT},
    {CONFIG("'parallelism': 'x', 'devices': 1, 'ticks': 1e15"),
     "test:1:136: 'ticks' is 1000000000000000 (expected 1 to 1000000000000)", STATUS_BAD_INPUT},
    {CONFIG("'parallelism': 'x', 'devices': 1, 'ticks': {'devise': 3}"),
     "test:1:137: unknown key 'devise' (did you mean 'device'?)", STATUS_BAD_INPUT},
    {CONFIG("'parallelism': 'x', 'devices': 0, 'ticks': 3"),
     "test:1:124: 'devices' is 0 (expected 1 to 4096)", STATUS_BAD_INPUT},
    {CONFIG("'parallelism': 'x', 'devices': 5, 'ticks': 3"),
     "test: job 'a' fits nowhere: it needs 5 devices at least, and a gang has room for 4", STATUS_INFEASIBLE},
    {CONFIG("'parallelism': 'x', 'devices': 5, 'ticks': {}"),
     "test: job 'a' fits nowhere: no configuration runs on any class", STATUS_INFEASIBLE},
    {NODES "{'name': 'a', 'configurations': [{'parallelism': 'x', 'devices': 1, 'ticks': 3}]},"
           "{'name': 'a', 'configurations': [{'parallelism': 'x', 'devices': 1, 'ticks': 3}]}]}",
     "test:1:141: job 1 has the name 'a', as has job 0", STATUS_BAD_INPUT},
    {NODES "]}", "test:1:58: no jobs (expected at least one)", STATUS_BAD_INPUT},
    {"{'spillway_spase': 1, 'nodes': [], 'jobs': [1]}", "test:1:32: no nodes (expected at least one)",
     STATUS_BAD_INPUT},
    {"{'spillway_spase': 1, 'nodes': [{'devices': 1}, {'devices': 2}], 'jobs': ["
     "{'name': 'a', 'configurations': [{'parallelism': 'x', 'devices': 1, 'ticks': 3}]}]}",
     "test: two nodes have the name 'node'", STATUS_BAD_INPUT},
    {"{'spillway_spase': 1, 'nodes': [{'devices': 4096, 'count': 2}], 'jobs': ["
     "{'name': 'a', 'configurations': [{'parallelism': 'x', 'devices': 1, 'ticks': 3}]}]}",
     "test: too many devices (limit is 4096)", STATUS_LIMIT},
};

static void refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++) {
        struct spase in = {0};
        struct error err = {0};
        struct json_input *input;
        enum status status = test_json_parse(refused[i].text, &input, &err);
        if (!status) status = spase_parse(input, &in, &err);
        json_input_destroy(input);
        assert_string_equal(err.text, refused[i].message);
        assert_int_equal(status, refused[i].status);
        spase_release(&in);
    }
}

static void too_long(void **state)
{
    (void)state;
    struct spase in = {0};
    struct error err = {0};
    char name[300][8];
    assert_int_equal(spase_init(&in, 1, 1, 300, 300, &err), STATUS_OK);
    in.class_names[0] = in.nodes[0].name = "x";
    in.nodes[0].device_count = 1;
    for (uint32_t j = 0; j < 300; j++) { /* 300e12 is past 2^48 = 281e12 */
        snprintf(name[j], sizeof name[j], "%u", j);
        in.jobs[j] = (struct spase_job){.name = name[j], .first_config = j, .config_count = 1};
        in.configs[j] = (struct spase_config){"x", 1, false};
        in.ticks[j] = SPASE_TICKS_MAX;
    }
    assert_int_equal(spase_finish(&in, &err), STATUS_LIMIT);
    assert_string_equal(err.text, "the run times add up to more than 281474976710656 ticks");
    spase_release(&in);
}

static char *text_of(const struct spase *in)
{
    size_t length;
    struct json_out *out = json_out_create(NULL);
    assert_non_null(out);
    test_spase_write(in, out);
    char *text = strdup(json_out_text(out, &length));
    json_out_destroy(out);
    return text;
}

/* A generated instance is repeatable, and survives writing and reading. */
static void generates(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < 6; c++) {
        struct test_spase_random options = {.seed = 31 + c, .jobs = 5, .parallelisms = 3, .nodes = 2, .devices = 4,
                                       .slow_nodes = c % 2, .slow_devices = 3, .powers = c % 3 == 0,
                                       .spans = c % 3 == 1};
        struct spase a = {0}, b = {0}, again = {0};
        struct error err = {0};
        struct json_input *input;
        if (test_spase_random(&options, &a, &err) || test_spase_random(&options, &b, &err)) fail_msg("%s", err.text);
        char *first = text_of(&a), *second = text_of(&b);
        assert_string_equal(first, second);
        assert_int_equal(json_input_parse("test", first, strlen(first), &input, &err), STATUS_OK);
        if (spase_parse(input, &again, &err)) fail_msg("%s", err.text);
        json_input_destroy(input);
        assert_int_equal(again.mode_count, a.mode_count);
        assert_memory_equal(again.modes, a.modes, a.mode_count * sizeof *a.modes);
        free(first);
        free(second);
        spase_release(&a);
        spase_release(&b);
        spase_release(&again);
    }
}

/* --- lists ----------------------------------------------------------------------------------- */

/* One node of 4: gangs of 2 for 5, 1 for 3, 1 for 9: devices are free at 5 5 3 9. A gang of 2 starts at
 * 5 on the two that became free last by then, so the one free at 3 is left for a gang of 1. */
static void lists(void **state)
{
    (void)state;
    struct spase in;
    struct spase_list list;
    struct error err = {0};
    uint32_t devices[4];
    test_spase("{'spillway_spase': 1, 'nodes': [{'devices': 4}], 'jobs': [{'name': 'a', 'configurations': ["
               "{'parallelism': 'x', 'devices': 1, 'ticks': 3}]}]}", &in);
    assert_int_equal(spase_list_init(&list, &in, &err), STATUS_OK);
    struct spase_mode two = {.devices = 2, .ticks = 5}, one = {.devices = 1, .ticks = 3},
                      late = {.devices = 1, .ticks = 9}, four = {.devices = 4, .ticks = 1};
    spase_list_clear(&list, NULL);
    assert_int_equal(spase_list_put(&list, &two, SPASE_ANY_NODE, NULL), 0);
    assert_int_equal(spase_list_put(&list, &one, 0, NULL), 0);
    assert_int_equal(spase_list_put(&list, &late, 0, NULL), 0);
    assert_int_equal(spase_list_start(&list, &two, 0), 5);
    assert_int_equal(spase_list_put(&list, &two, 0, devices), 5);
    assert_int_equal(spase_list_put(&list, &one, 0, devices + 2), 3);
    assert_true(devices[0] != devices[1] && devices[0] != devices[2] && devices[1] != devices[2]);
    assert_int_equal(spase_list_put(&list, &four, 0, NULL), 10); /* frees 10 10 6 9 */
    int64_t free_at[] = {7, 2, 7, 4};
    spase_list_clear(&list, free_at);
    assert_int_equal(spase_list_put(&list, &two, 0, devices), 4);
    assert_true(devices[0] + devices[1] == 1 + 3);
    spase_list_release(&list);
    spase_release(&in);
}

static void spans(void **state)
{
    (void)state;
    struct spase in;
    struct spase_schedule schedule = {0};
    struct error err = {0};
    test_spase(TWO_CLASSES, &in);
    /* small on a100 for 7: of p4d's 4 + 4 then 3 + 4 are free, so big takes 6 at once */
    const struct spase_step steps[] = {{1, 4, SPASE_ANY_NODE}, {0, 1, SPASE_ANY_NODE}};
    assert_int_equal(spase_schedule_make(&in, steps, NULL, &schedule, &err), STATUS_OK);
    if (spase_check(&in, &schedule, &err)) fail_msg("%s", err.text);
    assert_int_equal(schedule.tasks[0].start, 0);
    assert_int_equal(schedule.makespan, 20);
    spase_schedule_release(&schedule);
    spase_release(&in);
}

/* --- the judge ------------------------------------------------------------------------------- */

static void made(const struct spase *in, uint32_t big_mode, struct spase_schedule *out)
{
    struct error err = {0};
    const struct spase_step steps[] = {{1, 4, 0}, {0, big_mode, 0}};
    assert_int_equal(spase_schedule_make(in, steps, NULL, out, &err), STATUS_OK);
    if (spase_check(in, out, &err)) fail_msg("%s", err.text);
}

static void judged(const struct spase *in, struct spase_schedule *schedule, const char *message)
{
    struct error err = {0};
    assert_int_equal(spase_check(in, schedule, &err), STATUS_CHECK);
    assert_string_equal(err.text, message);
    spase_schedule_release(schedule);
}

static void judges(void **state)
{
    (void)state;
    struct spase in;
    struct spase_schedule s = {0};
    test_spase(TWO_CLASSES, &in);
    made(&in, 0, &s);
    s.makespan++;
    judged(&in, &s, "the makespan is 50, not 51");
    made(&in, 0, &s);
    s.devices[0] = s.devices[2]; /* of small */
    judged(&in, &s, "device 3: job 'big' starts at 0, before 'small' ends at 7");
    made(&in, 0, &s);
    s.devices[1] = s.devices[0];
    judged(&in, &s, "device 1: job 'big' starts at 0, before 'big' ends at 50");
    made(&in, 0, &s);
    s.devices[0] = 4;
    judged(&in, &s, "job 'big' spans nodes, and 'ddp' may not");
    made(&in, 0, &s);
    s.devices[0] = 9;
    judged(&in, &s, "job 'big' has devices of two classes");
    made(&in, 0, &s);
    s.devices[0] = s.devices[1] = 9;
    judged(&in, &s, "job 'big' holds its devices for 50 ticks (expected 90)");
    made(&in, 1, &s);
    for (uint32_t i = 0; i < 6; i++) s.devices[i] = 8 + i % 3;
    judged(&in, &s, "job 'big': 'pipeline' does not run on class 'v100'");
    made(&in, 0, &s);
    s.tasks[0].config = 3;
    judged(&in, &s, "job 'big' has 2 devices (its configuration asks for 6)");
    made(&in, 0, &s);
    s.tasks[0].config = 5;
    judged(&in, &s, "job 'big' has no configuration 5");
    made(&in, 0, &s);
    s.tasks[1].start = -1;
    judged(&in, &s, "job 'small' starts before time 0");
    made(&in, 0, &s);
    s.devices[2] = 11;
    judged(&in, &s, "job 'small': there is no device 11");
    spase_release(&in);
}

/* Any order of any modes makes a schedule that passes. */
static void random_orders(void **state)
{
    (void)state;
    uint64_t seed = support_seed("random orders");
    for (uint32_t c = 0; c < 200; c++) {
        struct test_spase_random options = {.seed = random_u64(seed, c), .jobs = 9, .parallelisms = 4, .nodes = 2,
                                       .devices = 4, .slow_nodes = c % 2, .slow_devices = 6, .spans = c % 3 == 0};
        struct spase in = {0};
        struct spase_schedule schedule = {0};
        struct spase_step steps[9];
        struct error err = {0};
        assert_int_equal(test_spase_random(&options, &in, &err), STATUS_OK);
        for (uint32_t j = 0; j < in.job_count; j++) {
            uint32_t m = (uint32_t)random_below(options.seed, 1000 + j, in.jobs[j].mode_count);
            steps[j] = (struct spase_step){j, in.jobs[j].first_mode + m, SPASE_ANY_NODE};
        }
        if (spase_schedule_make(&in, steps, NULL, &schedule, &err) || spase_check(&in, &schedule, &err)) {
            test_spase_print(&in);
            fail_msg("seed %" PRIu64 ": %s", seed, err.text);
        }
        spase_schedule_release(&schedule);
        spase_release(&in);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads),  cmocka_unit_test(refuses), cmocka_unit_test(too_long),
        cmocka_unit_test(generates), cmocka_unit_test(lists), cmocka_unit_test(spans),
        cmocka_unit_test(judges), cmocka_unit_test(random_orders)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
