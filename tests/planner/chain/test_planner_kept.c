/*
 * Activations of single shards that stay on the device: the dynamic programme against trying
 * everything; what a plan saves by them in the simulator, to the nanosecond of a closed form; where they
 * are not to be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>

#include "base/random.h"
#include "planner/chain/chain.h"
#include "planner/chain/chain_keep.h"
#include "planner/strategy/planner.h"
#include "sim/sim.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_seed.h"

enum { LAYERS = 9, MINIBATCHES = 6 };

/* --- the dynamic programme -------------------------------------------------------------------- */

/* Least ticks of needs[l ..] with `left` bytes taken; INT64_MAX: none fits. */
static int64_t try_all(const struct chain_need *needs, uint32_t l, uint32_t count, uint64_t left, uint64_t memory)
{
    if (l == count) return left <= memory ? 0 : INT64_MAX;
    if (left + needs[l].runs > memory) return INT64_MAX;
    int64_t keep = try_all(needs, l + 1, count, left + needs[l].kept, memory);
    int64_t again = try_all(needs, l + 1, count, left + needs[l].recomputed, memory);
    if (again < INT64_MAX) again += needs[l].again;
    return keep < again ? keep : again;
}

static void exact(void **state)
{
    (void)state;
    uint64_t seed = support_seed("keeping");
    for (uint32_t i = 0; i < 500; i++) {
        struct chain_need needs[10];
        uint8_t choices[10];
        struct error err = {0};
        uint64_t c = 0, key = random_u64(seed, i), scale = i % 2 ? 1 : 4096;
        uint64_t memory = scale * random_below(key, c++, 60);
        uint32_t count = 1 + (uint32_t)random_below(key, c++, 10);
        bool fits;
        for (uint32_t l = 0; l < count; l++) {
            needs[l].kept = scale * random_below(key, c++, 20);
            needs[l].recomputed = scale * random_below(key, c++, 5);
            needs[l].runs = i % 3 ? scale * random_below(key, c++, 20) : 0;
            needs[l].again = (int64_t)random_below(key, c++, 50);
        }
        int64_t least = try_all(needs, 0, count, 0, memory), found = 0;
        uint64_t left = 0;
        assert_int_equal(chain_keep_best(needs, count, memory, choices, &fits, &err), STATUS_OK);
        if (fits != (least < INT64_MAX)) fail_msg("seed %" PRIu64 ", case %u: fits %d", seed, i, fits);
        for (uint32_t l = 0; l < count && fits; l++) {
            assert_true(left + needs[l].runs <= memory);
            bool kept = choices[l] == CHAIN_KEEP;
            left += kept ? needs[l].kept : needs[l].recomputed;
            found += kept ? 0 : needs[l].again;
        }
        if (fits && (found != least || left > memory))
            fail_msg("seed %" PRIu64 ", case %u: %" PRId64 " ticks again, %" PRId64 " by trying all", seed, i,
                     found, least);
    }
}

/* --- plans ------------------------------------------------------------------------------------ */

/* Layers of 1 KB, so that all states stay; 1 MB of activations each, and forward passes of 1, 2, 3 ..
 * ms. Links are so slow that nothing is spilled. */
static struct test_layer heavy(void *context, uint32_t job, uint32_t layer)
{
    (void)context, (void)job;
    return (struct test_layer){.parameter_bytes = 1024, .boundary_bytes = 256, .activation_bytes = 1 << 20,
                               .forward_ns = 1000000u * (layer + 1), .backward_ns = 5000000};
}

static uint32_t plan_of(uint64_t memory, uint32_t devices, uint32_t jobs, bool mixed, double *makespan_s)
{
    struct hardware hardware;
    struct job_set set;
    struct plan plan = {0};
    struct error err = {0};
    struct sim_result result = {0};
    struct trace trace = {0};
    const struct planner_options options = {.activations = PLANNER_AUTO, .mixed = mixed,
                                            .optimizer = PLANNER_PLACE_DEVICE, .shards = LAYERS};
    test_hardware(&hardware, devices, memory, 1e7);
    test_profile_jobs(&set, jobs, LAYERS, MINIBATCHES, heavy, NULL);
    if (planner_plan(&hardware, &set, &options, &plan, &err)) fail_msg("%s", err.text);
    if (sim_run(&plan, &(struct sim_options){0}, &result, &trace, &err)) fail_msg("%s", err.text);
    uint32_t kept = 0;
    for (uint32_t j = 0; j < jobs; j++) kept += plan_kept_shards(&plan, j);
    *makespan_s = result.makespan_s;
    sim_result_release(&result);
    trace_release(&trace);
    plan_release(&plan);
    return kept;
}

/*
 * Forward passes of 1 to 8 ms are recomputed (the last shard's is one with its loss). All shards take the
 * same bytes: with room for k of them the k dearest are kept, and each minibatch is shorter by what
 * their forward passes take: 8 + 7 + ... ms.
 */
static void saves_what_it_promises(void **state)
{
    (void)state;
    uint32_t some = 0;
    for (uint64_t memory = 3 << 20; memory <= 12 << 20; memory += 1 << 20) {
        double without_s, with_s;
        uint32_t none = plan_of(memory, 1, 1, false, &without_s);
        uint32_t kept = plan_of(memory, 1, 1, true, &with_s);
        assert_int_equal(none, 0);
        double saved_s = 0;
        for (uint32_t k = 0; k < kept; k++) saved_s += 1e-3 * (LAYERS - 1 - k);
        if (kept == 0) continue;
        some++;
        double promised_s = without_s - MINIBATCHES * saved_s;
        if (with_s < 0.99 * promised_s || with_s > 1.01 * promised_s)
            fail_msg("%" PRIu64 " bytes, %u kept: %g s, promised %g (%g without)", memory, kept, with_s,
                     promised_s, without_s);
    }
    assert_true(some >= 5);
}

/* Jobs that share a device share the bytes; if a job may use several devices, nothing is kept. */
static void where_it_may(void **state)
{
    (void)state;
    double one_s, with_s;
    assert_int_equal(plan_of(9 << 20, 1, 2, false, &one_s), 0);
    assert_true(plan_of(9 << 20, 1, 2, true, &with_s) >= 2);
    assert_true(with_s < one_s);
    assert_int_equal(plan_of(9 << 20, 2, 3, true, &with_s), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(exact), cmocka_unit_test(saves_what_it_promises),
                                       cmocka_unit_test(where_it_may)};
    return cmocka_run_group_tests_name("planner_kept", tests, NULL, NULL);
}
