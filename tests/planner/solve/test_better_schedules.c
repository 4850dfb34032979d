/* label: medium
 * A better schedule of a cut as an instance is a better plan: random workloads, each with two schedules of which the
 * instance's clock prefers one. Both become plans, which are simulated.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "planner/policy/policies.h"
#include "planner/policy/trial/policy_run.h"
#include "planner/solve/certify/certify.h"
#include "planner/solve/instance/timetable_io.h"
#include "planner/spill/order/order_of_instance.h"
#include "planner/strategy/planner.h"
#include "sim/sim.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_seed.h"

enum { WORKLOADS = 100, TRIES = 1000 };

static char folder[SUPPORT_FOLDER_BYTES], file[SUPPORT_FOLDER_BYTES + 16];

static int make_folder(void **state)
{
    (void)state;
    support_folder_make(folder);
    snprintf(file, sizeof file, "%s/timetable.json", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    support_folder_remove(folder);
    return 0;
}

static struct test_layer random_layer(void *context, uint32_t job, uint32_t layer)
{
    uint64_t key = *(const uint64_t *)context, at = (uint64_t)job * 1000 + layer;
    uint64_t widest = random_below(key, 12, 2) ? 5 : 800;
    return (struct test_layer){.parameter_bytes = 64 * (1 + random_below(key, at, 8000)),
                               .boundary_bytes = 64 * (1 + random_below(key + 1, at, widest)),
                               .activation_bytes = 64 * (1 + random_below(key + 2, at, 200)),
                               .forward_ns = 20000 + random_below(key + 3, at, 500000),
                               .backward_ns = 20000 + random_below(key + 4, at, 900000)};
}

/* Puts all devices' links behind one, of half of their rates. */
static void share_link(struct hardware *hw)
{
    struct error err = {0};
    struct hardware_link *links = NULL;
    uint32_t shared = hw->link_count;
    if (ARENA_NEW(&hw->arena, shared + 1u, links, &err)) fail_msg("%s", err.text);
    for (uint32_t l = 0; l < shared; l++) links[l] = hw->links[l];
    links[shared] = links[0];
    links[shared].name = "bridge";
    links[shared].bandwidth.value *= 0.5 * hw->device_count;
    hw->links = links;
    hw->link_count++;
    for (uint32_t d = 0; d < hw->device_count; d++) { /* the host's end first */
        hw->devices[d].path[1] = hw->devices[d].path[0];
        hw->devices[d].path[0] = shared;
        hw->devices[d].path_count = 2;
    }
}

/* Machines with and without a shared link, whose host's processor is slow or fast; networks with and without an
 * embedding. Returns false if the jobs do not fit. */
static bool plan_of(uint64_t key, bool shared, const struct planner_options *options, struct plan *out,
                    struct error *err)
{
    struct hardware hardware = {0};
    struct job_set jobs = {0};
    uint32_t count = 2 + (uint32_t)random_below(key, 1, 4);
    uint32_t devices = shared ? 2 + (uint32_t)random_below(key, 0, 2) : 1 + (uint32_t)random_below(key, 0, 3);
    *out = (struct plan){0};
    test_hardware(&hardware, devices, 1000000 + random_below(key, 4, 1000000), 1e9);
    if (shared) share_link(&hardware);
    hardware.host_bandwidth.value = exp(log(2e9) + random_unit(key, 10) * log(500));
    hardware.host_bandwidth.source = "made up";
    if (random_below(key, 11, 3) == 0)
        test_gpt_jobs(&jobs, count, 1 + (uint32_t)random_below(key, 2, 4), 32, 97, 1 + random_below(key, 3, 3));
    else
        test_profile_jobs(&jobs, count, 2 + (uint32_t)random_below(key, 2, 4), 1 + random_below(key, 3, 3),
                          random_layer, &key);
    return planner_plan(&hardware, &jobs, options, out, err) == STATUS_OK;
}

/* Returns the simulated seconds of the timetable's plan, and its seconds by the planner's clock. */
static double seconds_of(uint64_t key, bool shared, const struct planner_options *options, const struct instance *in,
                         const struct timetable *timetable, double *planned_s)
{
    struct planner_options own = *options;
    struct order_claim claim = {0};
    struct plan plan;
    struct error err = {0};
    double seconds = 0;
    own.timetable = file;
    own.claim = &claim;
    own.time_limit_s = 1e-3;
    if (timetable_write(in, timetable, 0, "it was made", file, &err) || !plan_of(key, shared, &own, &plan, &err) ||
        sim_seconds(NULL, &plan, &seconds, &err))
        fail_msg("%s", err.text);
    *planned_s = plan.estimated_makespan_s;
    plan_release(&plan);
    return seconds;
}

/* Makes a schedule by a policy: the one that is compared with the search's. */
static void by_policy(const struct policy *policy, const struct instance *in, struct timetable *out)
{
    struct policy_run_options options = {0};
    struct policy_run run = {0};
    struct error err = {0};
    if (policy_run(policy, in, &options, &run, &err) || timetable_make(in, run.steps, out, &err))
        fail_msg("%s", err.text);
    policy_run_release(&run);
}

struct count {
    uint32_t pairs, better, better_by_planner;
    double worst;
};

static void compare(uint64_t key, bool shared, struct count *count)
{
    const struct policy *policies[] = {&policy_sharded_lrtf, &policy_fifo, &policy_srtf};
    struct instance in = {0};
    struct timetable some = {0}, good = {0};
    struct certificate certificate;
    struct certify_options how = {.seed = key, .iterations = 120, .search_limit_s = HUGE_VAL};
    struct planner_options options = {.activations = PLANNER_AUTO,
                                      .optimizer = random_below(key, 6, 2) ? PLANNER_PLACE_CPU : PLANNER_AUTO,
                                      .no_persistence = random_below(key, 13, 2),
                                      .weight_buffers = (uint32_t)random_below(key, 7, 4),
                                      .shards = 1 + (uint32_t)random_below(key, 8, 4), .instance = &in};
    struct plan plan;
    struct error err = {0};
    bool fits = plan_of(key, shared, &options, &plan, &err);
    options.instance = NULL;
    if (fits) {
        by_policy(policies[random_below(key, 14, 3)], &in, &some);
        if (certify(&in, &how, &good, &certificate, &err)) fail_msg("%s", err.text);
    }
    if (fits && good.value < some.value) {
        double planned[2], simulated[2];
        simulated[0] = seconds_of(key, shared, &options, &in, &some, &planned[0]);
        simulated[1] = seconds_of(key, shared, &options, &in, &good, &planned[1]);
        count->pairs++;
        count->better += simulated[1] <= simulated[0] * (1 + 1e-9);
        count->better_by_planner += planned[1] <= planned[0] * (1 + 1e-9);
        count->worst = fmax(count->worst, simulated[1] / simulated[0]);
    }
    timetable_release(&some);
    timetable_release(&good);
    instance_release(&in);
    plan_release(&plan);
}

/* Returns how many of WORKLOADS better schedules are better plans. */
static uint32_t count_better(uint64_t seed, bool shared)
{
    struct count count = {0};
    for (uint32_t c = 0; c < TRIES && count.pairs < SUPPORT_ROUNDS(WORKLOADS); c++)
        compare(random_u64(seed, c), shared, &count);
    printf("%u of %u better schedules are better plans (%u by the planner's clock), the worst %.3f times as long\n",
           count.better, count.pairs, count.better_by_planner, count.worst);
    assert_int_equal(count.pairs, SUPPORT_ROUNDS(WORKLOADS));
    return count.better * WORKLOADS / count.pairs;
}

static void on_own_links(void **state)
{
    (void)state;
    assert_true(count_better(support_seed(__func__), false) >= 95);
}

/* The simulator's shares of a link depend on what is copied at the same time; an instance knows the average. */
static void on_a_shared_link(void **state)
{
    (void)state;
    assert_true(count_better(support_seed(__func__), true) >= 75);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(on_own_links), cmocka_unit_test(on_a_shared_link)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
