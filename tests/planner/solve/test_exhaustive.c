/* label: medium
 * Small instances with copies, on devices that are alike or of two classes: bounds, searches and proofs against a
 * checker that tries everything and shares no code with them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/random.h"
#include "planner/solve/bounds/priced_bound.h"
#include "planner/solve/certify/certify.h"
#include "planner/solve/exact/label_setting.h"
#include "planner/solve/instance/instance_random.h"
#include "planner/solve/search/list_baseline.h"
#include "tests/support/solve/support_exhaustive.h"
#include "tests/support/solve/support_instance.h"
#include "tests/support/support_seed.h"

/* One of the families with copies; in two of three, some devices are of another class. False: too large. */
static bool draw_tiny(uint64_t seed, uint32_t c, struct instance *out)
{
    static const enum instance_family families[] = {INSTANCE_FAMILY_HIDDEN, INSTANCE_FAMILY_TIGHT,
                                                    INSTANCE_FAMILY_COPY};
    struct instance_random options = {.family = families[c / 3 % 3], .seed = random_u64(seed, c) >> 8,
                                      .devices = {1 + c % 2, 3}, .jobs = {1, 4}, .shards = {1, 3},
                                      .minibatches = {1, 2}};
    return test_instance_drawn(&options, 6, c % 3 > 0, seed + c, out);
}

struct tally {
    uint32_t tried, met, weighted, priced, missed;
};

static void check_bounds(const struct instance *in, uint64_t seed, uint32_t c, int64_t best,
                         struct instance_bounds *bounds, struct tally *tally)
{
    struct error err = {0};
    int64_t priced;
    if (instance_bounds_make(in, bounds, &err)) fail_msg("%s", err.text);
    for (uint32_t b = 0; b < INSTANCE_BOUND_COUNT; b++)
        if (bounds->value[b] > best) test_instance_wrong(in, seed, c, instance_bound_names[b], bounds->value[b], best);
    if (priced_bound(in, bounds, best + 1 + c % 7, HUGE_VAL, &priced, &err)) fail_msg("%s", err.text);
    if (priced > best) test_instance_wrong(in, seed, c, "prices", priced, best);
    tally->met += instance_bounds_best(bounds) == best;
    tally->weighted += bounds->best == INSTANCE_BOUND_WEIGHTED;
    tally->priced += priced > instance_bounds_best(bounds);
}

/* From a schedule of one tick more, and from none but LRTF's. */
static void check_layers(const struct instance *in, const struct instance_bounds *bounds, uint64_t seed, uint32_t c,
                         int64_t best)
{
    struct label_setting_options options = {.until_s = HUGE_VAL, .memory_bytes = 1 << 20};
    struct label_setting_result result;
    struct dispatch_step steps[EXHAUSTIVE_TASKS_MAX];
    struct error err = {0};
    int64_t value;
    if (list_baseline_lrtf(in, HUGE_VAL, steps, &value, &err)) fail_msg("%s", err.text);
    if (c % 2 && value > best) value = best + 1;
    if (label_setting_run(in, bounds, &options, steps, &value, &result, &err)) fail_msg("%s", err.text);
    if (!result.proven || value != best) test_instance_wrong(in, seed, c, "label setting", value, best);
}

/* Bound <= optimum <= found; label setting proves the optimum; forty iterations of the search miss few. */
static void everything_tried(void **state)
{
    (void)state;
    uint64_t seed = support_seed("everything tried");
    struct tally tallies[2] = {{0}};
    for (uint32_t c = 0; c < 1200; c++) {
        struct instance in;
        struct instance_bounds bounds = {0};
        struct timetable table = {0};
        struct certificate certificate;
        struct certify_options options = {.seed = c, .iterations = 40, .search_limit_s = HUGE_VAL};
        struct error err = {0};
        if (!draw_tiny(seed, c, &in)) continue;
        struct tally *tally = &tallies[in.class_count - 1];
        int64_t best = test_exhaustive(&in);
        tally->tried++;
        check_bounds(&in, seed, c, best, &bounds, tally);
        check_layers(&in, &bounds, seed, c, best);
        if (certify(&in, &options, &table, &certificate, &err)) fail_msg("%s", err.text);
        if (certificate.value < best) test_instance_wrong(&in, seed, c, "search", certificate.value, best);
        tally->missed += certificate.value > best;
        timetable_release(&table);
        instance_bounds_release(&bounds);
        instance_release(&in);
    }
    for (uint32_t classes = 0; classes < 2; classes++) {
        const struct tally *t = &tallies[classes];
        printf("%u instances on %u class(es): a bound is met in %u, weights bind in %u, prices raise %u, the search "
               "missed %u\n", t->tried, classes + 1, t->met, t->weighted, t->priced, t->missed);
        assert_true(t->tried > 80);
        assert_true(t->priced > 10);
    }
    assert_true(tallies[0].missed <= tallies[0].tried / 15);
    assert_true(tallies[1].missed <= tallies[1].tried / 4);
    assert_true(tallies[1].weighted > 10);
}

/*
 * Six jobs of one task on a slow device, 20 ticks each, and a fast one, 10. With every task at its fastest the area is
 * 60 over two devices, 30. A tick of the fast device weighs 2, one of the slow device 1: every task costs 20, 120 in
 * all, over a weight of 3 are 40. That is reached with four tasks on the fast device.
 */
static void slow_devices_weigh_less(void **state)
{
    (void)state;
    struct instance in = {0};
    struct instance_bounds bounds = {0};
    struct timetable table = {0};
    struct certificate certificate;
    struct certify_options options = {.iterations = 40, .search_limit_s = HUGE_VAL};
    struct error err = {0};
    assert_int_equal(instance_init(&in, 2, 6, 6, &err), STATUS_OK);
    in.name = "weights";
    in.classes[0] = (struct instance_class){.name = "slow", .device_count = 1, .memory = 100};
    in.classes[1] = (struct instance_class){.name = "fast", .device_count = 1, .memory = 100};
    for (uint32_t i = 0; i < 6; i++) {
        in.jobs[i] = (struct instance_job){.name = "job", .first_unit = i, .unit_count = 1, .repeat = 1, .weight = 1,
                                           .deadline = INSTANCE_HORIZON_MAX};
        in.units[i] = (struct instance_unit){.memory = 10, .job = i};
        in.compute[2 * i] = 20;
        in.compute[2 * i + 1] = 10;
    }
    assert_int_equal(instance_finish(&in, &err), STATUS_OK);
    if (instance_bounds_make(&in, &bounds, &err)) fail_msg("%s", err.text);
    assert_int_equal(bounds.value[INSTANCE_BOUND_AREA], 30);
    assert_int_equal(bounds.value[INSTANCE_BOUND_WEIGHTED], 40);
    if (certify(&in, &options, &table, &certificate, &err)) fail_msg("%s", err.text);
    assert_int_equal(certificate.value, 40);
    assert_int_equal(certificate.status, CERTIFICATE_BOUND);
    timetable_release(&table);
    instance_bounds_release(&bounds);
    instance_release(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(everything_tried), cmocka_unit_test(slow_devices_weigh_less)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
