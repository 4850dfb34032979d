/* Instances: contents of files, refused files and the place of the fault, written files that read back, the
 * generator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_out.h"
#include "base/json/json_stream.h"
#include "base/size.h"
#include "planner/solve/instance/instance_io.h"
#include "planner/solve/instance/instance_random.h"
#include "tests/support/solve/support_instance.h"
#include "tests/support/sim/support_traces.h"
#include "tests/support/sim/support_traces_long.h"
#include "tests/support/support_json.h"

/* --- reading --------------------------------------------------------------------------------- */

static void reads(void **state)
{
    (void)state;
    struct instance in;
    test_instance("{'spillway_instance': 1, 'name': 'x', 'objective': 'tardiness',"
                  " 'devices': [{'name': 'fast', 'count': 2, 'memory': 100, 'speed': 1.5}, {'memory': 60}],"
                  " 'jobs': [{'name': 'a', 'repeat': 3, 'weight': 4, 'deadline': 90, 'units': ["
                  "   {'compute': 7, 'in': 3, 'memory': 40},"
                  "   {'compute': [5, 9], 'out': 4, 'memory': 70, 'shard': 0, 'writes': true}]}]}", &in);
    assert_int_equal(in.device_count, 3);
    assert_int_equal(in.device_class[1], 0);
    assert_int_equal(in.device_class[2], 1);
    assert_int_equal(in.task_count, 6);
    assert_int_equal(in.objective, OBJECTIVE_TARDINESS);
    assert_int_equal(instance_compute(&in, 0, 0), 5); /* 7 / 1.5 = 4.67, rounded up */
    assert_int_equal(instance_compute(&in, 0, 1), 7);
    assert_int_equal(instance_compute(&in, 1, 1), 9);
    assert_false(instance_fits(&in, 1, 1)); /* 70 of 60 */
    assert_int_equal(instance_compute_min(&in, 1), 5);
    assert_int_equal(in.jobs[0].deadline, 90);
    assert_int_equal(instance_through_host(&in, 1, 0), 4 + 3);
    instance_release(&in);
}

/* Units 1, 2, 0 by "after". */
static void orders(void **state)
{
    (void)state;
    struct instance in;
    test_instance("{'spillway_instance': 1, 'devices': [{'memory': 1}], 'jobs': [{'name': 'a', 'units': ["
                  " {'compute': 7, 'after': 2}, {'compute': 5}, {'compute': 3, 'after': 1}]}]}", &in);
    assert_int_equal(instance_compute(&in, 0, 0), 5);
    assert_int_equal(instance_compute(&in, 1, 0), 3);
    assert_int_equal(instance_compute(&in, 2, 0), 7);
    assert_int_equal(in.units[2].shard, 0);
    instance_release(&in);
}

#define ONE_SLOT " 'jobs': [{'name': 'a', 'units': [{'compute': 7, 'out': 4, 'writes': true, 'memory': 4}," \
                 " {'compute': 5, 'in': 3, 'memory': 5}]}]}"

#define HEAD "{'spillway_instance': 1, 'devices': [{'memory': 10}], 'jobs': ["
#define UNIT(text) HEAD "{'name': 'a', 'units': [{" text "}]}]}"

static const struct {
    const char *text, *message;
    enum status status;
} refused[] = {
    {HEAD "{'name': 'a', 'units': []}]}", "test:1:87: an empty chain (expected at least one unit)",
     STATUS_BAD_INPUT},
    {HEAD "{'name': 'a', 'units': [{'compute': 1, 'after': 1}, {'compute': 2, 'after': 0}]}]}",
     "test:1:88: unit 0 comes after itself: 'after' goes round in a circle", STATUS_BAD_INPUT},
    {HEAD "{'name': 'a', 'units': [{'compute': 1}, {'compute': 2, 'after': 2}, {'compute': 2, 'after': 1}]}]}",
     "test:1:104: unit 1 comes after itself: 'after' goes round in a circle", STATUS_BAD_INPUT},
    {HEAD "{'name': 'a', 'units': [{'compute': 1}, {'compute': 2, 'after': 0}, {'compute': 2, 'after': 0}]}]}",
     "test:1:132: unit 2 is after unit 0, as is unit 1 (expected a chain)", STATUS_BAD_INPUT},
    {HEAD "{'name': 'a', 'units': [{'compute': 1, 'after': 1}, {'compute': 2}, {'compute': 2}]}]}",
     "test:1:132: unit 2 is after no other, as is unit 1 (expected one such unit)", STATUS_BAD_INPUT},
    {"{'spillway_instance': 1, 'devices': [{'memory': 10, 'slots': 65}], 'jobs': [1]}",
     "test:1:62: 'slots' is 65 (expected 1 to 64)", STATUS_BAD_INPUT},
    {"{'spillway_instance': 1, 'tick_s': 0, 'devices': [{'memory': 10}], 'jobs': [1]}",
     "test:1:36: 'tick_s' is 0 (expected 1e-12 to 1000000)", STATUS_BAD_INPUT},
    {UNIT("'compute': 0"), "test:1:100: 'compute' is 0 (expected 1 to 1000000000000)", STATUS_BAD_INPUT},
    {UNIT("'compute': -3"), "test:1:100: 'compute' is -3 (expected 1 to 1000000000000)", STATUS_BAD_INPUT},
    {UNIT("'compute': 1e30"), "test:1:100: 'compute' is 1e30 (expected a whole number)", STATUS_BAD_INPUT},
    {UNIT("'compute': 2.5"), "test:1:100: 'compute' is 2.5 (expected a whole number)", STATUS_BAD_INPUT},
    {UNIT("'compute': NaN"), "test:1:100: invalid token near 'NaN'", STATUS_BAD_INPUT},
    {UNIT("'compute': [1, 2]"),
     "test:1:100: 'compute' has 2 elements (expected 1, one for each class of devices)", STATUS_BAD_INPUT},
    {UNIT("'compute': 1, 'out': 2"),
     "test:1:110: 'out' of a unit that does not write its parameters (expected 0)", STATUS_BAD_INPUT},
    {UNIT("'compute': 1, 'memory': 11"),
     "test: job 'a', unit 0: needs memory 11, and no device has more than 10", STATUS_INFEASIBLE},
    {HEAD "{'name': 'a', 'units': [{'compute': 1}]}, null]}", "test:1:106: element 1 is null (expected a job object)",
     STATUS_BAD_INPUT},
    {HEAD "7]}", "test:1:64: element 0 is a number (expected a job object)", STATUS_BAD_INPUT},
    {HEAD "]}", "test:1:63: no jobs (expected at least one)", STATUS_BAD_INPUT},
    {"{'spillway_instance': 1, 'devices': [], 'jobs': [1]}",
     "test:1:37: no devices (expected at least one)", STATUS_BAD_INPUT},
    {HEAD "{'name': 'a', 'repeat': 1000, 'units': [{'compute': 1000000000000}]}]}",
     "test: the durations add up to more than 281474976710656 ticks", STATUS_LIMIT},
    {HEAD "{'name': 'a', 'repeat': 16777216, 'units': [{'compute': 1}, {'compute': 1}]}]}",
     "test: too many tasks (limit is 16777216)", STATUS_LIMIT},
};

/* Room for both of two units, but one slot: 7 computing, 4 out and 3 in between their starts. */
static void one_slot(void **state)
{
    (void)state;
    for (int slots = 1; slots <= 2; slots++) {
        struct instance in;
        test_instance(slots == 1 ? "{'spillway_instance': 1, 'devices': [{'memory': 9, 'slots': 1}], 'tick_s': "
                                   "0.25," ONE_SLOT
                                 : "{'spillway_instance': 1, 'devices': [{'memory': 9}]," ONE_SLOT, &in);
        assert_int_equal(in.classes[0].slots, slots);
        assert_true(slots == 1 ? in.tick_s >= 0.25 : in.tick_s <= 1e-6);
        assert_int_equal(instance_setup(&in, 0, 1, 0), slots == 1 ? 7 + 4 + 3 : 7);
        instance_release(&in);
    }
}

static void refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++) {
        struct instance in = {0};
        struct error err = {0};
        struct json_input *input;
        enum status status = test_json_parse(refused[i].text, &input, &err);
        if (!status) status = instance_parse(input, &in, &err);
        json_input_destroy(input);
        assert_string_equal(err.text, refused[i].message);
        assert_int_equal(status, refused[i].status);
        instance_release(&in);
    }
}

/* Reads the text of a file, with ' for ", as a stream. */
static enum status parse_as_stream(const char *text, struct instance *out, struct error *err)
{
    struct json_stream *stream;
    char *copy = strdup(text);
    assert_non_null(copy);
    for (char *c = copy; *c; c++)
        if (*c == '\'') *c = '"';
    enum status status = json_stream_of_text("test", copy, strlen(copy), instance_long_arrays, &stream, err);
    if (status == STATUS_OK) {
        status = instance_parse_stream(stream, out, err);
        json_stream_close(stream);
    }
    free(copy);
    return status;
}

static void refuses_as_a_stream(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++) {
        struct instance in = {0};
        struct error err = {0};
        enum status status = parse_as_stream(refused[i].text, &in, &err);
        assert_string_equal(err.text, refused[i].message);
        assert_int_equal(status, refused[i].status);
        instance_release(&in);
    }
}

/* --- memory ---------------------------------------------------------------------------------- */

enum { LONG_JOBS = 3000, LONG_UNITS = 64 };

static int read_file(const void *context)
{
    struct instance in = {0};
    struct error err = {0};
    enum status status = context ? instance_read(context, &in, &err) : STATUS_OK;
    if (status == STATUS_OK && context && in.unit_count != LONG_JOBS * LONG_UNITS) status = STATUS_CHECK;
    instance_release(&in);
    return (int)status;
}

/* The limit of all JSON readers: four times the file. A tree of it took thirteen times. */
static void long_files_take_little(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* sanitizers keep freed memory */
#endif
    const char *path = support_path("long.json");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("{\"spillway_instance\": 1, \"devices\": [{\"memory\": 1000}], \"jobs\": [", file);
    for (int j = 0; j < LONG_JOBS; j++) {
        fprintf(file, "%s\n{\"name\": \"job %d\", \"units\": [", j > 0 ? "," : "", j);
        for (int u = 0; u < LONG_UNITS; u++)
            fprintf(file, "%s{\"compute\": %d, \"in\": %d, \"memory\": %d}", u > 0 ? ", " : "", j + u + 1, 7 + u,
                    90 + u);
        fputs("]}", file);
    }
    fputs("]}\n", file);
    long kib = ftell(file) / 1024;
    assert_int_equal(fclose(file), 0);
    long least = support_peak_kib(read_file, NULL), most = support_peak_kib(read_file, path);
    print_message("%ld KiB: %ld KiB more than %ld\n", kib, most - least, least);
    assert_true(most - least < 4 * kib);
    support_clean();
}

/* --- writing, generating --------------------------------------------------------------------- */

static char *text_of(const struct instance *in)
{
    size_t length;
    struct json_out *out = json_out_create(NULL);
    assert_non_null(out);
    instance_write_json(in, out);
    char *text = strdup(json_out_text(out, &length));
    json_out_destroy(out);
    return text;
}

static void generates(void **state)
{
    (void)state;
    for (uint32_t f = 0; f < INSTANCE_FAMILY_COUNT; f++) {
        struct instance_random options = {.family = f, .seed = 11, .devices = {3, 5}, .jobs = {4, 7},
                                          .shards = {2, 5}, .minibatches = {2, 3}};
        struct instance a = {0}, b = {0}, c = {0};
        struct error err = {0};
        struct json_input *input;
        assert_int_equal(instance_random(&options, &a, &err), STATUS_OK);
        assert_int_equal(instance_random(&options, &b, &err), STATUS_OK);
        assert_in_range(a.device_count, 3, 5);
        assert_in_range(a.job_count, 4, 7);
        a.classes[0].slots = b.classes[0].slots = 1 + f;
        a.tick_s = b.tick_s = 0.1 * f + 0.2;
        char *first = text_of(&a), *same = text_of(&b);
        assert_string_equal(first, same);
        assert_int_equal(json_input_parse("test", first, strlen(first), &input, &err), STATUS_OK);
        if (instance_parse(input, &c, &err)) fail_msg("%s", err.text);
        char *again = text_of(&c);
        assert_string_equal(first, again);
        assert_int_equal(a.horizon, c.horizon);
        json_input_destroy(input);
        free(first);
        free(same);
        free(again);
        instance_release(&a);
        instance_release(&b);
        instance_release(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reads), cmocka_unit_test(orders),
                                       cmocka_unit_test(one_slot), cmocka_unit_test(refuses),
                                       cmocka_unit_test(refuses_as_a_stream),
                                       cmocka_unit_test(long_files_take_little), cmocka_unit_test(generates)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
