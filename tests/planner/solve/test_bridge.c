/* label: medium
 * Instances whose devices share a bridge that binds: bounds, searches and proofs against trying everything; the
 * bytes that a partial schedule cannot avoid; a schedule that waits for what its devices hold.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "planner/solve/certify/certify.h"
#include "planner/solve/exact/branch_bound.h"
#include "planner/solve/instance/bridge_bytes.h"
#include "planner/solve/instance/instance_random.h"
#include "planner/solve/search/list_baseline.h"
#include "planner/solve/search/schedule_search.h"
#include "tests/support/solve/support_exhaustive.h"
#include "tests/support/solve/support_instance.h"
#include "tests/support/support_seed.h"

/* Draws a case of the family, small enough to try everything; in every third case some devices are of another class. */
static bool draw_tiny(uint64_t seed, uint32_t c, struct instance *out)
{
    struct instance_random options = {.family = INSTANCE_FAMILY_BRIDGE, .seed = random_u64(seed, c) >> 8,
                                      .devices = {1, 3},
                                      .jobs = {1, 4}, .shards = {1, 3}, .minibatches = {1, 2}};
    return test_instance_drawn(&options, 6 + (c % 4 == 0), c % 3 == 0, seed + c, out);
}

/* Bound <= optimum <= found, and branch and bound proves the optimum. Sixty iterations of the search miss few. */
static void everything_tried(void **state)
{
    (void)state;
    uint64_t seed = support_seed("everything tried");
    uint32_t tried = 0, binding = 0, met = 0, missed[2] = {0};
    for (uint32_t c = 0; c < 1500; c++) {
        struct instance in;
        struct instance_bounds bounds = {0};
        struct timetable table = {0};
        struct certificate certificate;
        struct certify_options options = {.seed = c, .iterations = 60, .search_limit_s = HUGE_VAL};
        struct branch_bound_options branching = {.until_s = HUGE_VAL, .memory_bytes = 1 << 20};
        struct branch_bound_result branched;
        struct dispatch_step steps[EXHAUSTIVE_TASKS_MAX];
        struct error err = {0};
        int64_t value;
        if (!draw_tiny(seed, c, &in)) continue;
        int64_t best = test_exhaustive(&in);
        tried++;
        if (instance_bounds_make(&in, &bounds, &err)) fail_msg("%s", err.text);
        bool binds = true; /* the weighted bound is of the bridge and the devices together */
        for (uint32_t b = 0; b < INSTANCE_BOUND_COUNT; b++) {
            binds &= b == INSTANCE_BOUND_WEIGHTED || bounds.value[b] <= bounds.value[INSTANCE_BOUND_BRIDGE];
            if (bounds.value[b] > best)
                test_instance_wrong(&in, seed, c, instance_bound_names[b], bounds.value[b], best);
        }
        binding += binds;
        met += instance_bounds_best(&bounds) == best;
        if (certify(&in, &options, &table, &certificate, &err)) fail_msg("%s", err.text);
        if (certificate.value < best) test_instance_wrong(&in, seed, c, "search", certificate.value, best);
        missed[in.class_count - 1] += certificate.value > best;
        if (list_baseline_lrtf(&in, HUGE_VAL, steps, &value, &err) ||
            branch_bound_run(&in, &bounds, &branching, steps, &value, &branched, &err))
            fail_msg("%s", err.text);
        if (value != best || !branched.proven) test_instance_wrong(&in, seed, c, "branch and bound", value, best);
        timetable_release(&table);
        instance_bounds_release(&bounds);
        instance_release(&in);
    }
    printf("%u instances: the bridge binds in %u, the bound is met in %u, the search missed %u, and %u on two "
           "classes of devices\n", tried, binding, met, missed[0], missed[1]);
    assert_true(tried > 200);
    assert_true(binding > tried / 3);
    assert_true(missed[0] <= tried / 50);
}

/* From the first bytes to the last: the unavoidable bytes never fall, and end as the moved bytes. */
static void bytes_never_fall(void **state)
{
    (void)state;
    uint64_t seed = support_seed("bytes never fall");
    uint32_t rises = 0;
    for (uint32_t c = 0; c < 500; c++) {
        struct instance_random options = {.family = INSTANCE_FAMILY_BRIDGE, .seed = random_u64(seed, c) >> 8,
                                          .devices = {1, 4}, .jobs = {1, 5}, .shards = {1, 4}, .minibatches = {1, 3}};
        struct instance in = {0};
        struct dispatch *d;
        struct error err = {0};
        if (instance_random(&options, &in, &err) || dispatch_create(&in, &d, &err)) fail_msg("%s", err.text);
        uint64_t least = bridge_bytes_least(&in), drawn = 0;
        for (uint32_t t = 0; t < in.task_count; t++) {
            uint32_t job = (uint32_t)random_below(seed ^ c, drawn++, in.job_count);
            uint32_t device = (uint32_t)random_below(seed ^ c, drawn++, in.device_count), last = UINT32_MAX;
            while (d->jobs[job].next == instance_length(&in.jobs[job])) job = (job + 1) % in.job_count;
            uint32_t unit = d->jobs[job].unit, position = 0;
            bool held = false, kept = false;
            if (d->devices[device].job != TIMETABLE_NONE) {
                last = d->devices[device].unit;
                position = d->jobs[d->devices[device].job].next + (d->devices[device].job == job ? 1u : 0);
            }
            for (uint32_t g = 0; g < in.device_count; g++) {
                if (g == device || d->devices[g].job == TIMETABLE_NONE) continue;
                held |= instance_resident(&in.units[d->devices[g].unit], &in.units[unit]);
                kept |= last != UINT32_MAX && instance_resident(&in.units[d->devices[g].unit], &in.units[last]);
            }
            uint64_t rise = bridge_bytes_rise(&in, last, unit, held, kept, position);
            least += rise;
            rises += rise > 0;
            dispatch_put(d, job, device);
            assert_true(d->bytes <= least);
        }
        assert_int_equal(least, d->bytes);
        dispatch_destroy(d);
        instance_release(&in);
    }
    assert_true(rises > 500);
}

/*
 * Five jobs of two shards; two devices share a bridge of one byte a tick. The units write 274 bytes, and each shard
 * comes in once at least, 326 bytes: 600. A schedule reaches it in which one device keeps shard 0 and waits while the
 * other one computes on shard 1. When no device waits, 644 bytes and more are moved.
 */
static void waits_for_what_is_held(void **state)
{
    (void)state;
    static const struct { int64_t compute[3], in[2]; uint64_t memory[2]; uint32_t units; } jobs[] = {
        {{29, 51, 58}, {27, 16}, {56, 47}, 3}, {{15, 48, 30}, {20, 10}, {65, 64}, 3},
        {{25, 21, 50}, {15, 9}, {37, 22}, 3},  {{8, 36, 16}, {7, 10}, {74, 46}, 3},
        {{22, 48, 0}, {26, 23}, {44, 61}, 2},
    };
    struct instance in = {0};
    struct error err = {0};
    assert_int_equal(instance_init(&in, 1, 5, 14, &err), STATUS_OK);
    in.name = "waits";
    in.classes[0] = (struct instance_class){.name = "device", .device_count = 2, .memory = 100};
    in.bridge_bytes_per_tick = 1;
    for (uint32_t i = 0, u = 0; i < 5; i++) {
        in.jobs[i] = (struct instance_job){.name = "job", .first_unit = u, .unit_count = jobs[i].units, .repeat = 1,
                                           .weight = 1, .deadline = INSTANCE_HORIZON_MAX};
        for (uint32_t k = 0; k < jobs[i].units; k++, u++) {
            uint32_t shard = k % 2;
            int64_t copy = jobs[i].in[shard];
            in.units[u] = (struct instance_unit){.in = copy, .out = k > 0 ? copy : 0, .memory = jobs[i].memory[shard],
                                                 .in_bytes = 2 * (uint64_t)copy,
                                                 .out_bytes = k > 0 ? 2 * (uint64_t)copy : 0,
                                                 .job = i, .shard = shard, .writes = k > 0};
            in.compute[u] = jobs[i].compute[k];
        }
    }
    assert_int_equal(instance_finish(&in, &err), STATUS_OK);
    struct instance_bounds bounds = {0};
    struct schedule_search_options options = {.iterations = 60, .until_s = HUGE_VAL};
    struct dispatch_step steps[14];
    int64_t value;
    uint32_t iterations;
    assert_int_equal(instance_bounds_make(&in, &bounds, &err), STATUS_OK);
    assert_int_equal(instance_bounds_best(&bounds), 600);
    if (schedule_search(&in, &bounds, &options, steps, &value, &iterations, &err)) fail_msg("%s", err.text);
    assert_int_equal(value, 600);

    struct branch_bound_options branching = {.until_s = HUGE_VAL, .nodes_max = 100000};
    struct branch_bound_result result;
    assert_int_equal(list_baseline_lrtf(&in, HUGE_VAL, steps, &value, &err), STATUS_OK);
    assert_true(value > 644);
    assert_int_equal(branch_bound_run(&in, &bounds, &branching, steps, &value, &result, &err), STATUS_OK);
    assert_int_equal(value, 600);
    instance_bounds_release(&bounds);
    instance_release(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_tried),
        cmocka_unit_test(bytes_never_fall),
        cmocka_unit_test(waits_for_what_is_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
