/* label: long, all rounds: slow
 * Rounds of a schedule that nearly repeat (planner/spill/order/schedule_near.h): long plans of unequal jobs end about
 * when they do with all units placed by the policy, and do not grow with the number of minibatches. For that the test
 * puts a schedule_near_begin() in place of the library's that can be switched off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/random.h"
#include "base/size.h"
#include "planner/strategy/planner.h"
#include "sim/sim.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_seed.h"

#define schedule_near_begin near_begin
#define schedule_near_skip near_skip
#include "planner/spill/order/schedule_near.c"
#undef schedule_near_begin
#undef schedule_near_skip

enum status schedule_near_begin(struct schedule_near *near, struct schedule_builder *builder, bool one_device,
                                const struct policy *policy, uint64_t units, struct error *err);
void schedule_near_skip(struct schedule_near *near, struct schedule_cycle *cycle);

static bool places_all;
static uint64_t skipped; /* rounds */
static uint32_t turned;  /* plans of jobs that take turns in host memory */

enum status schedule_near_begin(struct schedule_near *near, struct schedule_builder *builder, bool one_device,
                                const struct policy *policy, uint64_t units, struct error *err)
{
    if (!places_all) return near_begin(near, builder, one_device, policy, units, err);
    *near = (struct schedule_near){0};
    return STATUS_OK;
}

void schedule_near_skip(struct schedule_near *near, struct schedule_cycle *cycle)
{
    near_skip(near, cycle);
    skipped += cycle->times;
}

enum { PLANS_MAX = 24 };
#define PLANS support_rounds(8, PLANS_MAX)

/* --- plans ------------------------------------------------------------------------------------ */

static const char *const policies[] = {"sharded-lrtf", "sharded-lrtf-cached", "lrtf-emptiest", "srtf", "fifo"};

/* `scale`: times as many minibatches. `more`: some minibatches more. */
static void draw_jobs(uint64_t key, uint64_t scale, uint64_t more, struct job_set *out)
{
    uint32_t count = 3 + (uint32_t)random_below(key, 1, 5);
    struct test_random_layers layers = {key, 1 + random_below(key, 3, 6)};
    bool text = random_below(key, 4, 3) == 0;
    if (text) test_gpt_jobs(out, count, 2 + (uint32_t)random_below(key, 5, 3), 8, 64, 1);
    else test_profile_jobs(out, count, 3 + (uint32_t)random_below(key, 5, 4), 1, test_random_layer, &layers);
    for (uint32_t j = 0; j < count; j++) {
        struct job *job = &out->jobs[j];
        job->minibatches = scale * (6000 + random_below(key, 10 + j, 6000)) + (more > 0 ? random_below(more, j, 5) : 0);
        if (text && random_below(key, 20 + j, 3) == 0)
            job->evaluation = (struct job_evaluation){.every = 1 + random_below(key, 30 + j, 20), .minibatches = 1};
        if (text && random_below(key, 40 + j, 4) == 0) job->optimizer.clip = 0.5;
    }
}

static const char *policy_of(uint64_t key) { return policies[random_below(key, 53, ARRAY_COUNT(policies))]; }

/* Plans, with plan_check() in the planner, for `host_bytes` of host memory; 0: plenty. Returns false if the jobs do not
 * fit. */
static bool make_plan_in(uint64_t key, uint64_t scale, uint64_t more, bool all, uint64_t host_bytes, struct plan *out)
{
    struct error err = {0};
    struct hardware hardware;
    struct job_set jobs;
    places_all = all;
    test_hardware(&hardware, 2 + (uint32_t)random_below(key, 50, 3), 60000 + random_below(key, 51, 300000), 1e9);
    hardware.host_bandwidth.value = 4e9;
    hardware.host_bandwidth.source = "made up";
    if (host_bytes > 0) hardware.host_bytes.value = (double)host_bytes;
    draw_jobs(key, scale, more, &jobs);
    const struct planner_options options = {.policy = policy_of(key), .seed = key >> 1, .activations = PLANNER_AUTO,
                                            .optimizer = PLANNER_AUTO,
                                            .shards = 2 + (uint32_t)random_below(key, 54, 3)};
    const enum status status = planner_plan(&hardware, &jobs, &options, out, &err);
    if (status && status != STATUS_INFEASIBLE) fail_msg("key %" PRIu64 ": %s", key, err.text);
    return status == STATUS_OK;
}

/* A third of the keys have jobs that take turns in host memory, if they fit. */
static bool make_plan(uint64_t key, uint64_t scale, uint64_t more, bool all, struct plan *out)
{
    struct plan plenty;
    if (random_below(key, 55, 3) > 0) return make_plan_in(key, scale, more, all, 0, out);
    if (!make_plan_in(key, 1, 0, false, 0, &plenty)) return false;
    const uint64_t share = 40 + random_below(key, 56, 50), bytes = plan_host_bytes(&plenty) * share / 100;
    plan_release(&plenty);
    if (!make_plan_in(key, scale, more, all, bytes, out)) return false;
    turned += out->host_ranges != NULL;
    return true;
}

static double seconds_of(const struct plan *plan)
{
    struct error err = {0};
    double seconds;
    if (sim_seconds(NULL, plan, &seconds, &err)) fail_msg("%s", err.text);
    return seconds;
}

/* Simulates the jobs of the key, planned in this way; 0: they do not fit. */
static double simulated(uint64_t key, uint64_t more, bool all)
{
    struct plan plan;
    if (!make_plan(key, 1, more, all, &plan)) return 0;
    double seconds = seconds_of(&plan);
    plan_release(&plan);
    return seconds;
}

/* --- about the same time ---------------------------------------------------------------------- */

static int order_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_shares(const char *text, double *shares, uint32_t count)
{
    double sum = 0;
    qsort(shares, count, sizeof *shares, order_doubles);
    for (uint32_t i = 0; i < count; i++) sum += shares[i];
    print_message("%s: %u plans, makespan %+.2f %% in the mean, %+.2f %% median, %+.2f to %+.2f %%\n", text, count,
                  100 * sum / count, 100 * shares[count / 2], 100 * shares[0], 100 * shares[count - 1]);
}

/* Compares plans in rounds with all units placed; and these, for the policies' own sensitivity, with all units placed
 * of jobs with up to four minibatches more. */
static void about_the_same_time(void **state)
{
    const uint64_t seed = support_seed("near schedules");
    double shares[PLANS_MAX], own[PLANS_MAX], sum = 0;
    uint32_t count = 0;
    (void)state;
    for (uint32_t round = 0; count < PLANS && round < 8 * PLANS; round++) {
        const uint64_t key = random_u64(seed, round), before = skipped;
        const double some = simulated(key, 0, false);
        if (!(some > 0) || skipped == before) continue;
        const double all = simulated(key, 0, true);
        own[count] = simulated(key, random_u64(key, 60), true) / all - 1;
        shares[count] = some / all - 1;
        if (shares[count] > 0.01)
            print_message("key %" PRIu64 ", %s: %.6g s in rounds, %.6g s placed by the policy\n", key, policy_of(key),
                          some, all);
        sum += shares[count++];
    }
    assert_true(count >= PLANS / 2);
    const double mean = sum / count;
    print_shares("rounds", shares, count);
    print_message("%" PRIu32 " plans of jobs that take turns in host memory\n", turned);
    assert_true(turned > 0);
    print_shares("some minibatches more", own, count);
    if (mean > 0.01 || shares[count / 2] > 0.005 || shares[count - 1] > 0.06)
        fail_msg("rounds make plans slower by %.2f %% in the mean, %.2f %% median, %.2f %% at most", 100 * mean,
                 100 * shares[count / 2], 100 * shares[count - 1]);
}

/* --- no growth -------------------------------------------------------------------------------- */

static void plans_do_not_grow(void **state)
{
    const uint64_t seed = support_seed("near schedules");
    uint64_t tasks[2] = {0};
    uint32_t count = 0;
    (void)state;
    for (uint32_t round = 0; count < 6 && round < 60; round++) {
        const uint64_t key = random_u64(seed, round), before = skipped;
        struct plan plan, longer;
        if (!make_plan(key, 1, 0, false, &plan)) continue;
        if (skipped > before) {
            assert_true(make_plan(key, 10, 0, false, &longer));
            tasks[0] += plan.task_count;
            tasks[1] += longer.task_count;
            count++;
            plan_release(&longer);
        }
        plan_release(&plan);
    }
    print_message("%u plans of %" PRIu64 " tasks, with ten times the minibatches %" PRIu64 "\n", count, tasks[0],
                  tasks[1]);
    assert_true(count >= 3 && tasks[1] < 3 * tasks[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(about_the_same_time), cmocka_unit_test(plans_do_not_grow)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
