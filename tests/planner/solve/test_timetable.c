/*
 * Timetables and their checker: the rules of instance.h by hand, and one broken schedule for each.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "base/size.h"
#include "planner/solve/instance/timetable_check.h"
#include "planner/solve/instance/timetable_io.h"
#include "tests/support/solve/support_instance.h"

/* Job a: two passes over shard 0, the second writes it; job b: one unit. Memory 6 + 3 fits 10,
 * 6 + 6 does not. */
static const char *const two_jobs =
    "{'spillway_instance': 1, 'devices': [{'count': 2, 'memory': 10}], 'bridge_bytes_per_tick': 1,"
    " 'jobs': [{'name': 'a', 'units': ["
    "   {'compute': 5, 'in': 2, 'memory': 6, 'shard': 0, 'writes': true, 'out': 3, 'in_bytes': 4},"
    "   {'compute': 7, 'in': 2, 'memory': 6, 'shard': 0, 'writes': true, 'out': 3, 'in_bytes': 4, 'out_bytes': 3}]},"
    "  {'name': 'b', 'units': [{'compute': 4, 'in': 11, 'memory': 3}]},"
    "  {'name': 'c', 'units': [{'compute': 1, 'in': 2, 'memory': 6}]}]}";

static void make(const struct instance *in, const struct dispatch_step *steps, struct timetable *out)
{
    struct error err = {0};
    if (timetable_make(in, steps, out, &err) || timetable_check(in, out, &err)) fail_msg("%s", err.text);
}

/* All on device 0, in the order a a b c: a's first copy ends at 2; its second task finds the shard
 * there, 2 + 5 = 7; b was copied in meanwhile, 7 + max(7, 11) = 18; c during b, 18 + max(4, 2) = 22, and ends at 23.
 * Bytes: 4 in (the second task's shard is there) + 3 out. */
static void one_device(void **state)
{
    (void)state;
    static const struct dispatch_step steps[] = {{0, 0}, {0, 0}, {1, 0}, {2, 0}};
    struct instance in;
    struct timetable t;
    test_instance(two_jobs, &in);
    make(&in, steps, &t);
    assert_int_equal(t.tasks[0].start, 2);
    assert_int_equal(t.tasks[1].start, 7);
    assert_int_equal(t.tasks[2].start, 18);
    assert_int_equal(t.tasks[3].start, 22);
    assert_int_equal(t.value, 23);
    timetable_release(&t);
    instance_release(&in);
}

/* a's second task elsewhere: the first task's output goes out and in again, 2 + 5 + 3 + 2 = 12, and it ends at 12 +
 * 7 + 3 = 22. c after a's first, both of 6: 2 + 5 + 3 + 2 = 12. b first on device 1: 11, then a's second, copied in
 * during b: max(11 + max(4, 2), 12) = 15, ends at 25. */
static void two_devices(void **state)
{
    (void)state;
    static const struct dispatch_step steps[] = {{0, 0}, {1, 1}, {2, 0}, {0, 1}};
    struct instance in;
    struct timetable t;
    test_instance(two_jobs, &in);
    make(&in, steps, &t);
    assert_int_equal(t.tasks[1].start, 12);
    assert_int_equal(t.tasks[2].start, 11);
    assert_int_equal(t.tasks[3].start, 15);
    assert_int_equal(t.value, 25);
    timetable_release(&t);
    instance_release(&in);
}

static void expect(const struct instance *in, const struct timetable *t, const char *message)
{
    struct error err = {0};
    assert_int_equal(timetable_check(in, t, &err), STATUS_CHECK);
    assert_string_equal(err.text, message);
}

static void broken(void **state)
{
    (void)state;
    static const struct dispatch_step steps[] = {{0, 0}, {1, 1}, {2, 0}, {0, 1}};
    struct instance in;
    struct timetable t;
    test_instance(two_jobs, &in);
    make(&in, steps, &t);
    struct timetable_task *a = t.tasks, *c = t.tasks + 1, *b = t.tasks + 2, *a2 = t.tasks + 3;

    a->start = 1;
    expect(&in, &t, "job 'a', task 0: starts at 1 on device 0, which cannot before 2");
    a->start = 2;
    c->start = 11; /* copied in during a, as if both fitted */
    expect(&in, &t, "job 'c', task 0: starts at 11 on device 0, which cannot before 12");
    c->start = 12;
    a2->start = 14; /* while b computes */
    expect(&in, &t, "job 'a', task 1: starts at 14 on device 1, which cannot before 15");
    a2->start = 15;
    a->start = 4; /* 4 + 5 + 3 + 2 = 14, c at 4 + 10 = 14 */
    c->start = 14;
    b->start = 20;
    a2->start = 13;
    struct timetable_task swap = *b; /* device 1: a's second task, then b */
    *b = *a2;
    *a2 = swap;
    a2->start = 30;
    expect(&in, &t, "job 'a', task 1: starts at 13, the previous task lets it start at 14");
    b->start = 14;
    expect(&in, &t, "claims a makespan of 25, and it is 34");
    t.value = 34;
    struct error err = {0};
    assert_int_equal(timetable_check(&in, &t, &err), STATUS_OK);

    b->position = 0;
    expect(&in, &t, "job 'a', task 0: runs twice");
    b->position = 2;
    expect(&in, &t, "job 'a' has no task 2");
    b->position = 1;
    b->job = 3;
    expect(&in, &t, "device 1: there is no job 3");
    b->job = 0;
    in.units[3].memory = 11;
    expect(&in, &t, "job 'c', task 0: needs memory 11, device 0 has 10");
    in.units[3].memory = 6;
    in.units[1].in_bytes = 40; /* is not there any more when the first went elsewhere */
    expect(&in, &t, "claims a makespan of 34, and it is 47");
    t.task_count = 3;
    expect(&in, &t, "a timetable of 3 tasks on 2 devices (expected 4 on 2)");
    timetable_release(&t);
    instance_release(&in);
}

static void objectives(void **state)
{
    (void)state;
    /* ends: a 2, then b: 2 + 3 = 5, c: 5 + 4 = 9 */
    static const struct dispatch_step steps[] = {{0, 0}, {1, 0}, {2, 0}};
    static const int64_t values[] = {9, 2 + 5 + 9, 2 * 3 + 5 * 7 + 9, 9 - 6};
    for (uint32_t o = 0; o < OBJECTIVE_COUNT; o++) {
        struct instance in;
        struct timetable t;
        test_instance("{'spillway_instance': 1, 'devices': [{'memory': 1}], 'jobs': ["
                      " {'name': 'a', 'weight': 3, 'units': [{'compute': 2}]},"
                      " {'name': 'b', 'weight': 7, 'deadline': 4, 'units': [{'compute': 3}]},"
                      " {'name': 'c', 'deadline': 6, 'units': [{'compute': 4}]}]}", &in);
        in.objective = (enum instance_objective)o;
        make(&in, steps, &t);
        assert_int_equal(t.value, values[o]);
        timetable_release(&t);
        instance_release(&in);
    }
}

/* --- files ----------------------------------------------------------------------------------- */

static const char *const file = "test_timetable.json";

static void round_trip(void **state)
{
    (void)state;
    static const struct dispatch_step steps[] = {{0, 0}, {1, 1}, {2, 0}, {0, 1}};
    struct instance in;
    struct timetable t, back = {0};
    struct error err = {0};
    int64_t bound = 0;
    test_instance(two_jobs, &in);
    make(&in, steps, &t);
    assert_int_equal(timetable_write(&in, &t, 21, "so it is", file, &err), STATUS_OK);
    if (timetable_read(&in, file, &back, &bound, &err) || timetable_check(&in, &back, &err)) fail_msg("%s", err.text);
    assert_int_equal(bound, 21);
    assert_int_equal(back.value, t.value);
    assert_memory_equal(back.device_first, t.device_first, 3 * sizeof *t.device_first);
    for (uint32_t k = 0; k < t.task_count; k++) {
        assert_int_equal(back.tasks[k].job, t.tasks[k].job);
        assert_int_equal(back.tasks[k].position, t.tasks[k].position);
        assert_int_equal(back.tasks[k].start, t.tasks[k].start);
    }
    remove(file);
    timetable_release(&back);
    timetable_release(&t);
    instance_release(&in);
}

static void bad_files(void **state)
{
    (void)state;
    static const struct {
        const char *devices, *message;
    } cases[] = {
        {"[[[0, 0, 2]]]", "test_timetable.json:1:108: 1 devices (expected 2, as in the instance)"},
        {"[[[0, 0, 2]], []]", "test_timetable.json:1:108: 1 tasks (expected 4, as in the instance)"},
        {"[[[3, 0, 2]], []]", "test_timetable.json:1:111: element 0 is 3 (expected 0 to 2)"},
        {"[[[1, 1, 2]], []]", "test_timetable.json:1:114: element 1 is 1 (expected 0)"},
        {"[[[0, 0]], []]", "test_timetable.json:1:110: element 0 has 2 elements (expected 3)"},
        {"[[[0,0,2],[0,1,7],[1,0,9],[2,0,9],[2,0,9]], []]",
         "test_timetable.json:1:109: more tasks than the instance has (4)"},
    };
    struct instance in;
    test_instance(two_jobs, &in);
    for (size_t c = 0; c < ARRAY_COUNT(cases); c++) {
        struct timetable t = {0};
        struct error err = {0};
        int64_t bound;
        FILE *out = fopen(file, "w");
        assert_non_null(out);
        fprintf(out, "{\"spillway_timetable\": 1, \"instance\": \"two\", \"objective\": \"makespan\", "
                     "\"value\": 23, \"bound\": 21, \"devices\": %s}", cases[c].devices);
        assert_int_equal(fclose(out), 0);
        assert_int_equal(timetable_read(&in, file, &t, &bound, &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, cases[c].message);
        timetable_release(&t);
    }
    remove(file);
    instance_release(&in);
}

/* The good timetable of two_devices() is accepted, and each broken one is refused with its place. */
static void checked_files(void **state)
{
    (void)state;
    static const struct {
        const char *instance, *devices, *message;
        uint32_t value;
    } cases[] = {
        {"two", "[[[0, 0, 2], [2, 0, 12]], [[1, 0, 11], [0, 1, 15]]]", NULL, 25},
        {"three", "[[[0, 0, 2], [2, 0, 12]], [[1, 0, 11], [0, 1, 15]]]",
         "test_timetable.json:1:39: 'three', but the instance is 'two'", 25},
        {"two", "[[[0, 0, 2], [2, 0, 12]], [[1, 0, 11], [1, 0, 15]]]",
         "test_timetable.json:1:147: job 'b', task 0: runs twice", 25},
        {"two", "[[[0, 0, 2], [2, 0, 11]], [[1, 0, 11], [0, 1, 15]]]",
         "test_timetable.json:1:121: job 'c', task 0: starts at 11 on device 0, which cannot before 12", 25},
        {"two", "[[[0, 0, 9], [2, 0, 19]], [[1, 0, 11], [0, 1, 15]]]",
         "test_timetable.json:1:147: job 'a', task 1: starts at 15, the previous task lets it start at 19", 25},
        {"two", "[[[0, 0, 2], [2, 0, 12]], [[1, 0, 11], [0, 1, 15]]]",
         "test_timetable.json:1:80: claims a makespan of 24, and it is 25", 24},
    };
    struct instance in;
    test_instance(two_jobs, &in);
    in.name = "two";
    for (size_t c = 0; c < ARRAY_COUNT(cases); c++) {
        struct timetable t = {0};
        struct error err = {0};
        int64_t bound = 0;
        FILE *out = fopen(file, "w");
        assert_non_null(out);
        fprintf(out, "{\"spillway_timetable\": 1, \"instance\": \"%s\", \"objective\": \"makespan\", "
                     "\"value\": %u, \"bound\": 21, \"devices\": %s}", cases[c].instance, cases[c].value,
                cases[c].devices);
        assert_int_equal(fclose(out), 0);
        assert_int_equal(timetable_read_checked(&in, file, &t, &bound, &err),
                         cases[c].message ? STATUS_BAD_INPUT : STATUS_OK);
        if (cases[c].message) assert_string_equal(err.text, cases[c].message);
        else assert_int_equal(bound, 21);
        timetable_release(&t);
    }
    remove(file);
    instance_release(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_device), cmocka_unit_test(two_devices), cmocka_unit_test(broken),
        cmocka_unit_test(objectives), cmocka_unit_test(round_trip), cmocka_unit_test(bad_files),
        cmocka_unit_test(checked_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
