/* label: medium
 * Searches at the same time: one search equals schedule_search(), each further one leaves a result as good or better,
 * the best schedule of all is kept and is one; same seed, same bytes; a search that is told to stop stops; no memory,
 * no answer.
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
#include "base/process/clock.h"
#include "base/random.h"
#include "planner/solve/certify/search_portfolio.h"
#include "planner/solve/instance/instance_random.h"
#include "planner/solve/instance/timetable_check.h"
#include "tests/support/solve/support_instance.h"
#include "tests/support/support_seed.h"

/* The result of a search. */
struct found {
    struct dispatch_step *steps;
    int64_t value;
    uint32_t iterations;
};

static void make_instance(const struct instance_random *options, struct instance *in, struct instance_bounds *bounds)
{
    struct error err = {0};
    *in = (struct instance){0};
    *bounds = (struct instance_bounds){0};
    assert_int_equal(instance_random(options, in, &err), STATUS_OK);
    assert_int_equal(instance_bounds_make(in, bounds, &err), STATUS_OK);
}

/* Draws an instance of 5 to 9 jobs of three minibatches: local search takes part. */
static void random_instance(uint64_t seed, struct instance *in, struct instance_bounds *bounds)
{
    const struct instance_random options = {.family = INSTANCE_FAMILY_TIGHT, .seed = seed, .devices = {3, 5},
                                            .jobs = {5, 9},
                                            .shards = {3, 5}, .minibatches = {3, 3}};
    make_instance(&options, in, bounds);
}

static void search(const struct instance *in, const struct instance_bounds *bounds,
                   const struct schedule_search_options *options, uint32_t searches, struct found *out)
{
    struct error err = {0};
    *out = (struct found){.steps = calloc(in->task_count, sizeof *out->steps)};
    assert_non_null(out->steps);
    enum status status =
        searches == 0 ? schedule_search(in, bounds, options, out->steps, &out->value, &out->iterations, &err)
                     : search_portfolio(in, bounds, options, searches, out->steps, &out->value, &out->iterations, &err);
    if (status) fail_msg("%s", err.text);
}

static void assert_same(const struct instance *in, const struct found *a, const struct found *b)
{
    assert_int_equal(a->value, b->value);
    assert_int_equal(a->iterations, b->iterations);
    assert_memory_equal(a->steps, b->steps, in->task_count * sizeof *a->steps);
}

static void assert_schedule(const struct instance *in, const struct found *found, uint64_t seed)
{
    struct timetable table = {0};
    struct error err = {0};
    if (timetable_make(in, found->steps, &table, &err) || timetable_check(in, &table, &err) ||
        table.value != found->value) {
        test_instance_print(in);
        fail_msg("seed %" PRIu64 ": %s, value %" PRId64 " for %" PRId64, seed, err.text, table.value, found->value);
    }
    timetable_release(&table);
}

static void more_are_no_worse(void **state)
{
    (void)state;
    uint64_t seed = support_seed("more are no worse");
    uint32_t better = 0;
    for (uint32_t c = 0; c < 12; c++) {
        struct instance in;
        struct instance_bounds bounds;
        struct found alone, of[4], again;
        struct schedule_search_options options = {.seed = random_u64(seed, c), .iterations = 30, .until_s = HUGE_VAL};
        random_instance(random_u64(seed, 100 + c), &in, &bounds);
        assert_true(schedule_search_is_local(&in));
        search(&in, &bounds, &options, 0, &alone);
        for (uint32_t k = 0; k < 4; k++) {
            search(&in, &bounds, &options, k + 1, &of[k]);
            assert_schedule(&in, &of[k], seed);
            assert_true(of[k].value <= of[k > 0 ? k - 1 : 0].value);
        }
        search(&in, &bounds, &options, 4, &again);
        assert_same(&in, &of[0], &alone);
        assert_same(&in, &of[3], &again);
        better += of[3].value < alone.value;
        for (uint32_t k = 0; k < 4; k++) free(of[k].steps);
        free(alone.steps);
        free(again.steps);
        instance_bounds_release(&bounds);
        instance_release(&in);
    }
    assert_true(better >= 1); /* most, as a rule */
}

/* With few tasks there is no local search, so further searches would find nothing new. */
static void few_tasks_go_alone(void **state)
{
    (void)state;
    struct instance in;
    struct instance_bounds bounds;
    struct found alone, three;
    struct schedule_search_options options = {.seed = 7, .iterations = 25, .until_s = HUGE_VAL};
    struct instance_random few = {.family = INSTANCE_FAMILY_TIGHT, .seed = 5, .devices = {2, 2}, .jobs = {2, 2},
                                  .shards = {3, 3}, .minibatches = {1, 1}};
    make_instance(&few, &in, &bounds);
    assert_false(schedule_search_is_local(&in));
    search(&in, &bounds, &options, 0, &alone);
    search(&in, &bounds, &options, 3, &three);
    assert_same(&in, &three, &alone);
    free(alone.steps);
    free(three.steps);
    instance_bounds_release(&bounds);
    instance_release(&in);
}

/* A search that is stopped before it begins makes no iteration; after a time limit all searches return. */
static void told_to_stop(void **state)
{
    (void)state;
    struct instance in;
    struct instance_bounds bounds;
    struct found none, stopped, timed;
    const atomic_bool stop = true;
    struct schedule_search_options options = {.seed = 7, .until_s = HUGE_VAL};
    random_instance(11, &in, &bounds);
    search(&in, &bounds, &options, 0, &none);
    options.iterations = UINT32_MAX;
    options.stop = &stop;
    search(&in, &bounds, &options, 0, &stopped);
    assert_same(&in, &stopped, &none);
    options.stop = NULL;
    options.until_s = clock_s() + 0.05;
    search(&in, &bounds, &options, 3, &timed);
    assert_schedule(&in, &timed, 11);
    assert_true(timed.value <= none.value);
    free(none.steps);
    free(stopped.steps);
    free(timed.steps);
    instance_bounds_release(&bounds);
    instance_release(&in);
}

/* One allocation of some thread fails: an error, or a result without it. */
static void no_memory(void **state)
{
    (void)state;
    struct instance in;
    struct instance_bounds bounds;
    struct schedule_search_options options = {.seed = 7, .iterations = 20, .until_s = HUGE_VAL};
    random_instance(11, &in, &bounds);
    struct dispatch_step *steps = calloc(in.task_count, sizeof *steps);
    uint32_t refused = 0;
    assert_non_null(steps);
    for (uint64_t n = 1; n < 60; n += 3) {
        struct error err = {0};
        int64_t value = 0;
        uint32_t iterations;
        alloc_test_fail_at(n);
        enum status status = search_portfolio(&in, &bounds, &options, 2, steps, &value, &iterations, &err);
        alloc_test_fail_at(0);
        if (status == STATUS_OK) continue;
        assert_int_equal(status, STATUS_NO_MEMORY);
        assert_int_equal(value, 0);
        refused++;
    }
    assert_true(refused > 5);
    free(steps);
    instance_bounds_release(&bounds);
    instance_release(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_are_no_worse), cmocka_unit_test(few_tasks_go_alone), cmocka_unit_test(told_to_stop),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
