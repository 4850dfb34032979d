/*
 * Local search: what comes out is a schedule of the value that was said, by the rules and their checker; a case
 * whose optimum is known; same seed, same schedule; no time, no change; no memory, no search.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "planner/solve/bounds/instance_bound.h"
#include "planner/solve/instance/instance_random.h"
#include "planner/solve/instance/timetable_check.h"
#include "planner/solve/search/list_baseline.h"
#include "planner/solve/search/local_search.h"
#include "tests/support/solve/support_instance.h"
#include "tests/support/support_seed.h"

static void start_search(const struct instance *in, struct local_search **search, int64_t *value)
{
    struct error err = {0};
    struct dispatch_step *steps = calloc(in->task_count, sizeof *steps);
    assert_non_null(steps);
    if (list_baseline_lrtf(in, HUGE_VAL, steps, value, &err)) fail_msg("%s", err.text);
    if (local_search_create(in, search, &err)) fail_msg("%s", err.text);
    local_search_begin(*search, steps);
    free(steps);
}

/* The value of the current order, made and checked only from the instance. */
static int64_t checked_value(const struct instance *in, const struct local_search *search, uint64_t seed)
{
    struct timetable table = {0};
    struct error err = {0};
    if (timetable_make(in, local_search_order(search), &table, &err) || timetable_check(in, &table, &err)) {
        test_instance_print(in);
        fail_msg("seed %" PRIu64 ": %s", seed, err.text);
    }
    int64_t value = table.value;
    timetable_release(&table);
    return value;
}

static void values_are_schedules(void **state)
{
    (void)state;
    uint64_t seed = support_seed("values are schedules");
    uint32_t better = 0, cases = 300;
    for (uint32_t c = 0; c < cases; c++) {
        struct instance in = {0};
        struct instance_bounds bounds = {0};
        struct local_search *search;
        struct error err = {0};
        int64_t first, best = INT64_MAX;
        test_instance_mixed(seed, c, &in);
        assert_int_equal(instance_bounds_make(&in, &bounds, &err), STATUS_OK);
        start_search(&in, &search, &first);
        for (uint32_t k = 0; k < 8; k++) {
            struct local_rule rule = {.reach = 1 + (c + 5 * k) % 70, .sharpness = 1 + k % 4 * 2.5,
                                      .temperature = k % 3 * 0.4, .seed = random_u64(seed + c, k)};
            int64_t value = local_search_run(search, &rule, HUGE_VAL);
            int64_t checked = checked_value(&in, search, seed);
            if (value != checked || value < instance_bounds_best(&bounds)) {
                test_instance_print(&in);
                fail_msg("seed %" PRIu64 ": value %" PRId64 ", schedule %" PRId64 ", bound %" PRId64, seed, value,
                         checked, instance_bounds_best(&bounds));
            }
            if (value < best) best = value;
        }
        better += best < first;
        local_search_destroy(search);
        instance_bounds_release(&bounds);
        instance_release(&in);
    }
    assert_true(better > cases / 10); /* a third or so */
}

/*
 * Two jobs of memory 60 and two of 40 on two devices of 100, eight minibatches of two shards, 10 ticks to
 * compute and 7 to copy in. 60 and 60 do not fit together: one after the other, 17 ticks pass. Any other pair takes 10.
 * From the order that keeps large jobs on one device, 7 + 31 * 17 + 10 = 544, the optimum is found: a copy and 32
 * computations on each device, 327.
 */
static void sizes_find_each_other(void **state)
{
    (void)state;
    struct instance in = {0};
    struct error err = {0};
    assert_int_equal(instance_init(&in, 1, 4, 8, &err), STATUS_OK);
    in.name = "sizes";
    in.classes[0] = (struct instance_class){.name = "device", .device_count = 2, .memory = 100};
    for (uint32_t i = 0; i < 4; i++) {
        in.jobs[i] = (struct instance_job){.name = "job", .first_unit = 2 * i, .unit_count = 2, .repeat = 8,
                                           .weight = 1, .deadline = INSTANCE_HORIZON_MAX};
        for (uint32_t s = 0; s < 2; s++) {
            in.units[2 * i + s] = (struct instance_unit){.in = 7, .memory = i < 2 ? 60 : 40, .job = i, .shard = s};
            in.compute[2 * i + s] = 10;
        }
    }
    assert_int_equal(instance_finish(&in, &err), STATUS_OK);
    struct dispatch_step steps[64];
    for (uint32_t t = 0; t < 64; t++)
        steps[t] = t % 2 ? (struct dispatch_step){2 + t / 2 % 2, 1} : (struct dispatch_step){t / 2 % 2, 0};
    struct local_search *search;
    assert_int_equal(local_search_create(&in, &search, &err), STATUS_OK);
    local_search_begin(search, steps);
    assert_int_equal(checked_value(&in, search, 0), 544);
    int64_t best = INT64_MAX;
    for (uint32_t k = 0; k < 200 && best > 327; k++) {
        struct local_rule rule = {.reach = 12, .sharpness = 2.5, .temperature = 0.3 * (200 - k) / 200, .seed = k};
        int64_t value = local_search_run(search, &rule, HUGE_VAL);
        if (value < best) best = value;
    }
    assert_int_equal(best, 327);
    local_search_destroy(search);
    instance_release(&in);
}

static void tight_instance(struct instance *in)
{
    struct instance_random options = {.family = INSTANCE_FAMILY_TIGHT, .seed = 11, .devices = {4, 4}, .jobs = {9, 9},
                                      .shards = {3, 5}, .minibatches = {3, 3}};
    struct error err = {0};
    assert_int_equal(instance_random(&options, in, &err), STATUS_OK);
}

static void same_seed(void **state)
{
    (void)state;
    struct instance in = {0};
    struct local_search *searches[2];
    int64_t first, values[2];
    tight_instance(&in);
    for (uint32_t n = 0; n < 2; n++) {
        start_search(&in, &searches[n], &first);
        for (uint32_t k = 0; k < 5; k++) {
            struct local_rule rule = {.reach = 16, .sharpness = 3, .temperature = 0.2, .seed = k};
            values[n] = local_search_run(searches[n], &rule, HUGE_VAL);
        }
    }
    assert_int_equal(values[0], values[1]);
    assert_memory_equal(local_search_order(searches[0]), local_search_order(searches[1]),
                        in.task_count * sizeof(struct dispatch_step));
    struct local_rule rule = {.reach = 16, .sharpness = 3, .temperature = 0.2, .seed = 6};
    assert_int_equal(local_search_run(searches[0], &rule, 0), values[0]); /* no time */
    assert_int_not_equal(local_search_run(searches[1], &rule, HUGE_VAL), values[1]);
    local_search_destroy(searches[0]);
    local_search_destroy(searches[1]);
    instance_release(&in);
}

static void no_memory(void **state)
{
    (void)state;
    struct instance in = {0};
    struct local_search *search = NULL;
    tight_instance(&in);
    for (uint64_t n = 1;; n++) {
        struct error err = {0};
        alloc_test_fail_at(n);
        enum status status = local_search_create(&in, &search, &err);
        uint64_t made = alloc_test_fail_at(0);
        if (status == STATUS_OK) local_search_destroy(search); /* the table of set-ups can be done without */
        else assert_int_equal(status, STATUS_NO_MEMORY);
        if (made < n) break;
        assert_true(n < 30);
    }
    instance_release(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_schedules), cmocka_unit_test(sizes_find_each_other),
        cmocka_unit_test(same_seed), cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
