/* label: medium
 * Resident placement of jobs on devices: divisions against all there are, against looking at each device,
 * and against their own sums; no cliff with many jobs a device; plans that are never slower than spilling by the
 * planner's clock, nor below the bound when simulated; n equal jobs on n devices take the time of one job on one
 * device, unequal ones on devices side by side the time of the longest; options under which no job is resident; plans
 * that survive writing and reading; too little host memory, and little that is enough; memory that ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json/json_out.h"
#include "base/random.h"
#include "base/size.h"
#include "planner/files/plan_io.h"
#include "planner/strategy/reservation.h"
#include "planner/strategy/planner.h"
#include "planner/strategy/resident_subproblem.h"
#include "planner/strategy/resident_divide.h"
#include "sim/sim.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_seed.h"

enum { MOST_JOBS = 7, MOST_DEVICES = 4, LAYERS = 5 };

/* --- divisions ------------------------------------------------------------------------------- */

struct random_times {
    double alone_s[MOST_JOBS];
    uint32_t kind[MOST_DEVICES], longest[MOST_JOBS];
    struct resident_times times;
};

/* Makes random times on equal devices. */
static void make_times(struct random_times *out, uint64_t seed)
{
    *out = (struct random_times){0};
    out->times = (struct resident_times){.alone_s = out->alone_s, .kind = out->kind, .longest = out->longest,
                                         .job_count = 1 + (uint32_t)random_below(seed, 0, MOST_JOBS),
                                         .device_count = 2 + (uint32_t)random_below(seed, 1, MOST_DEVICES - 1),
                                         .kind_count = 1};
    for (uint32_t j = 0; j < out->times.job_count; j++) out->alone_s[j] = (double)(1 + random_below(seed, 2 + j, 30));
    resident_order(&out->times, out->longest);
}

/* The best end of all ways to give each job one device. */
static double best_end(const struct resident_times *t)
{
    double best = HUGE_VAL;
    uint64_t ways = 1;
    for (uint32_t j = 0; j < t->job_count; j++) ways *= t->device_count;
    for (uint64_t way = 0; way < ways; way++) {
        double load[MOST_DEVICES] = {0}, end = 0;
        uint64_t left = way;
        for (uint32_t j = 0; j < t->job_count; j++, left /= t->device_count)
            load[left % t->device_count] += t->alone_s[j];
        for (uint32_t d = 0; d < t->device_count; d++) end = fmax(end, load[d]);
        best = fmin(best, end);
    }
    return best;
}

/* Checks Graham's bound; no division is better than the best. */
static void all_resident(void **state)
{
    (void)state;
    uint64_t seed = support_seed("all_settled");
    for (uint32_t round = 0; round < SUPPORT_ROUNDS(200); round++) {
        struct random_times r;
        uint32_t device[MOST_JOBS];
        double load_s[MOST_DEVICES];
        uint32_t order[MOST_DEVICES], kind_end[1];
        struct resident_division division = {.device = device, .load_s = load_s, .order = order, .kind_end = kind_end};
        make_times(&r, random_u64(seed, round));
        resident_divide(&r.times, r.times.device_count, &division);
        double best = best_end(&r.times), worst = best * (4.0 / 3 - 1.0 / 3 / r.times.device_count);
        assert_int_equal(division.left_count, 0);
        if (!(division.resident_s >= best - 1e-9 && division.resident_s <= worst + 1e-9))
            fail_msg("round %u: %g s, expected %g to %g s", round, division.resident_s, best, worst);
        assert_true(resident_share_s(&r.times) <= best + 1e-9);
    }
}

/* Loads are sums; no device has more than an even share unless it has one job; a job left over fits nowhere. */
static void some_left(void **state)
{
    (void)state;
    uint64_t seed = support_seed("some_left");
    for (uint32_t round = 0; round < SUPPORT_ROUNDS(400); round++) {
        struct random_times r;
        uint32_t device[MOST_JOBS], jobs[MOST_DEVICES] = {0}, left_count = 0;
        double load_s[MOST_DEVICES], sum_s[MOST_DEVICES] = {0}, left = 0, longest = 0;
        uint32_t order[MOST_DEVICES], kind_end[1];
        struct resident_division division = {.device = device, .load_s = load_s, .order = order, .kind_end = kind_end};
        make_times(&r, random_u64(seed, round));
        uint32_t resident = 1 + round % (r.times.device_count - 1);
        double share = resident_share_s(&r.times);
        resident_divide(&r.times, resident, &division);
        for (uint32_t j = 0; j < r.times.job_count; j++) {
            assert_true(device[j] < resident || device[j] == RESIDENT_NOWHERE);
            if (device[j] == RESIDENT_NOWHERE) {
                left_count++;
                left += r.alone_s[j];
                longest = fmax(longest, r.alone_s[j]);
                continue;
            }
            jobs[device[j]]++;
            sum_s[device[j]] += r.alone_s[j];
        }
        assert_int_equal(left_count, division.left_count);
        assert_true(fabs(division.left_s - fmax(longest, left / (r.times.device_count - resident))) < 1e-9);
        for (uint32_t d = 0; d < resident; d++) {
            assert_true(fabs(sum_s[d] - load_s[d]) < 1e-9);
            assert_true(jobs[d] == 1 || load_s[d] <= share + 1e-9);
            for (uint32_t j = 0; j < r.times.job_count; j++)
                if (device[j] == RESIDENT_NOWHERE) assert_true(load_s[d] + r.alone_s[j] > share);
        }
    }
}

/* Does the same by examining every device, by the words of resident_divide.h. Times are whole numbers, so sums are
 * exact. */
static uint32_t look_at_each(const struct resident_times *t, const double *load_s, uint32_t resident, double share,
                             uint32_t job)
{
    uint32_t best = RESIDENT_NOWHERE;
    bool all = resident == t->device_count;
    for (uint32_t d = 0; d < resident; d++) {
        double end_s = load_s[d] + t->alone_s[job * t->kind_count + t->kind[d]];
        if (!all && load_s[d] > 0 && end_s > share) continue;
        double best_s = best == RESIDENT_NOWHERE ? 0 : load_s[best] + t->alone_s[job * t->kind_count + t->kind[best]];
        if (best == RESIDENT_NOWHERE || (all ? end_s < best_s : load_s[d] > load_s[best])) best = d;
    }
    return best;
}

static void like_looking_at_each_device(void **state)
{
    (void)state;
    enum { JOBS = 60, DEVICES = 14, KINDS = 3 };
    uint64_t seed = support_seed("like_looking_at_each_device");
    for (uint32_t round = 0; round < SUPPORT_ROUNDS(300); round++) {
        uint64_t key = random_u64(seed, round);
        double alone_s[JOBS * KINDS], load_s[DEVICES], plain_s[DEVICES] = {0};
        uint32_t kind[DEVICES], longest[JOBS], device[JOBS], order[DEVICES], kind_end[KINDS];
        struct resident_times times = {.alone_s = alone_s, .kind = kind, .longest = longest, .kind_count = KINDS,
                                       .job_count = 1 + (uint32_t)random_below(key, 0, JOBS),
                                       .device_count = 2 + (uint32_t)random_below(key, 1, DEVICES - 1)};
        struct resident_division division = {.device = device, .load_s = load_s, .order = order, .kind_end = kind_end};
        for (uint32_t d = 0; d < times.device_count; d++) kind[d] = (uint32_t)random_below(key, 500 + d, KINDS);
        for (uint32_t i = 0; i < times.job_count * KINDS; i++) alone_s[i] = (double)(1 + random_below(key, 2 + i, 9));
        for (uint32_t k = 0; k < KINDS; k++) { /* where there is no such device */
            bool there = false;
            for (uint32_t d = 0; d < times.device_count; d++) there |= kind[d] == k;
            for (uint32_t j = 0; j < times.job_count && !there; j++) alone_s[j * KINDS + k] = HUGE_VAL;
        }
        resident_order(&times, longest);
        uint32_t resident = 1 + round % times.device_count;
        double share = resident_share_s(&times);
        resident_divide(&times, resident, &division);
        for (uint32_t i = 0; i < times.job_count; i++) {
            uint32_t job = longest[i], expected = look_at_each(&times, plain_s, resident, share, job);
            if (device[job] != expected)
                fail_msg("round %u: job %u on device %u (expected %u)", round, job, device[job], expected);
            if (expected != RESIDENT_NOWHERE) plain_s[expected] += alone_s[job * KINDS + kind[expected]];
        }
    }
}

/* --- plans ----------------------------------------------------------------------------------- */

static void make_plan(struct hardware *hardware, struct job_set *jobs, bool resident, struct plan *out)
{
    struct error err = {0};
    const struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO,
                                            .resident = resident};
    *out = (struct plan){0};
    if (planner_plan(hardware, jobs, &options, out, &err)) fail_msg("%s", err.text);
}

static double simulated_s(const struct plan *plan)
{
    struct sim_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    if (sim_run(plan, &(struct sim_options){0}, &result, &trace, &err)) fail_msg("%s", err.text);
    double seconds = result.makespan_s;
    sim_result_release(&result);
    trace_release(&trace);
    return seconds;
}

/* A machine and jobs; a device holds one job or several, or not quite one. `single`: one job and one device. */
static void random_case(uint64_t seed, bool single, struct hardware *hardware, struct job_set *jobs)
{
    struct test_random_layers layers = {.key = random_u64(seed, 0), .copy_weight = 1 + random_below(seed, 1, 6)};
    uint32_t devices = single ? 1 : 1 + (uint32_t)random_below(seed, 2, MOST_DEVICES);
    uint64_t needs = 0;
    test_profile_jobs(jobs, single ? 1 : 1 + (uint32_t)random_below(seed, 3, MOST_JOBS), LAYERS, 4, test_random_layer,
                      &layers);
    for (uint32_t j = 0; j < jobs->count; j++) {
        jobs->jobs[j].minibatches = 2 + random_below(seed, 10 + j, 12);
        uint64_t bytes = job_state(&jobs->jobs[j], 0, LAYERS).bytes;
        if (bytes > needs) needs = bytes;
    }
    test_hardware(hardware, devices, needs * (2 + random_below(seed, 4, 5)), 1e9);
}

/* Host memory that just holds the states of all jobs: resident parts may not fit together. A set of jobs that can be
 * spilled has a plan that is not slower; one that cannot is refused. */
static void never_slower_in_little_host_memory(void **state)
{
    (void)state;
    uint64_t seed = support_seed("little_host_memory");
    uint32_t resident = 0;
    for (uint32_t round = 0; round < SUPPORT_ROUNDS(400); round++) {
        struct hardware hardware, same;
        struct job_set jobs, same_jobs;
        struct plan plan = {0}, today = {0};
        struct error err = {0};
        struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO};
        uint64_t key = random_u64(seed, round), states = 0;
        random_case(key, false, &hardware, &jobs);
        random_case(key, false, &same, &same_jobs);
        for (uint32_t j = 0; j < jobs.count; j++) states += job_state(&jobs.jobs[j], 0, LAYERS).bytes;
        hardware.host_bytes.value = same.host_bytes.value = (double)(states + random_below(key, 900, states / 8));
        enum status before = planner_plan(&same, &same_jobs, &options, &today, &err);
        options.resident = true;
        err = (struct error){0};
        enum status now = planner_plan(&hardware, &jobs, &options, &plan, &err);
        if (before == STATUS_OK && now != STATUS_OK) fail_msg("round %u: %s", round, err.text);
        if (before == STATUS_OK && !(plan.estimated_makespan_s <= today.estimated_makespan_s * (1 + 1e-12)))
            fail_msg("round %u: %g s, spilled %g s", round, plan.estimated_makespan_s, today.estimated_makespan_s);
        resident += now == STATUS_OK && strcmp(plan.policy, reservation_policy) == 0;
        plan_release(&plan);
        plan_release(&today);
    }
    assert_true(resident > SUPPORT_ROUNDS(40));
}

/* Never later than spilling, by the clock; never below its bound; nothing else of the machine or the jobs changes. */
static void never_slower(void **state)
{
    (void)state;
    uint64_t seed = support_seed("never_slower");
    uint32_t resident = 0, ways = 0, spilled = 0;
    for (uint32_t round = 0; round < SUPPORT_ROUNDS(80); round++) {
        struct hardware hardware, same;
        struct job_set jobs, same_jobs;
        struct plan plan, today;
        uint64_t key = random_u64(seed, round);
        bool single = round % 10 == 0; /* mostly spilled, which few of the other cases are */
        random_case(key, single, &hardware, &jobs);
        random_case(key, single, &same, &same_jobs);
        make_plan(&hardware, &jobs, true, &plan);
        make_plan(&same, &same_jobs, false, &today);
        if (!(plan.estimated_makespan_s <= today.estimated_makespan_s * (1 + 1e-12)))
            fail_msg("round %u: %g s, spilled %g s", round, plan.estimated_makespan_s, today.estimated_makespan_s);
        assert_true(fabs(plan.lower_bound_s - today.lower_bound_s) <= 1e-12 * today.lower_bound_s);
        assert_true(simulated_s(&plan) >= plan.lower_bound_s * (1 - 1e-9));
        bool reserved = strcmp(plan.policy, reservation_policy) == 0;
        bool same_plan = plan_fingerprint(&plan) == plan_fingerprint(&today);
        assert_int_equal(reserved, plan.reservation_count > 0);
        for (uint32_t j = 0; reserved && j < plan.jobs.count; j++)
            assert_true(plan.jobs.jobs[j].device_count <= 1);
        resident += reserved;
        spilled += same_plan;
        ways += !reserved && !same_plan;
        plan_release(&plan);
        plan_release(&today);
    }
    if (resident < 5 || ways < 2 || spilled < 1)
        fail_msg("%u resident, %u other ways, %u spilled", resident, ways, spilled);
}

static struct test_layer equal_layer(void *context, uint32_t job, uint32_t layer)
{
    (void)context, (void)job;
    return (struct test_layer){.parameter_bytes = 4000000, .boundary_bytes = 1024, .activation_bytes = 4096,
                               .forward_ns = 500000 + 1000 * layer, .backward_ns = 1000000};
}

/* Jobs that each have a device take the time of one job on one device, also simulated. */
static void as_many_as_devices(void **state)
{
    (void)state;
    for (uint32_t devices = 2; devices <= MOST_DEVICES; devices++) {
        struct hardware hardware, single;
        struct job_set jobs, one;
        struct plan all, alone;
        test_hardware(&hardware, devices, 200000000, 1e9);
        test_hardware(&single, 1, 200000000, 1e9);
        test_profile_jobs(&jobs, devices, LAYERS, 20, equal_layer, NULL);
        test_profile_jobs(&one, 1, LAYERS, 20, equal_layer, NULL);
        make_plan(&hardware, &jobs, true, &all);
        make_plan(&single, &one, true, &alone);
        assert_int_equal(all.reservation_count, devices);
        assert_true(fabs(all.estimated_makespan_s - alone.estimated_makespan_s) < 1e-9 * alone.estimated_makespan_s);
        double together_s = simulated_s(&all), alone_s = simulated_s(&alone);
        if (!(fabs(together_s - alone_s) <= 1e-9 * alone_s)) fail_msg("%.17g and %.17g s", together_s, alone_s);
        plan_release(&all);
        plan_release(&alone);
    }
}

/* By the clock, of equal jobs, `each` on every device. */
static double seconds_each(uint32_t devices, uint32_t each)
{
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan;
    test_hardware(&hardware, devices, 16000000, 1e9);
    test_gpt_jobs(&jobs, devices * each, 2, 128, 256, 10);
    make_plan(&hardware, &jobs, true, &plan);
    double seconds = plan.estimated_makespan_s / each;
    if (plan.reservation_count != devices) fail_msg("%u jobs on each of %u devices: %s", each, devices, plan.policy);
    plan_release(&plan);
    return seconds;
}

/* More jobs per device do not make each job slower. */
static void no_cliff(void **state)
{
    (void)state;
    const uint32_t devices[] = {5, 91}, each[] = {8, 9, 12};
    for (size_t d = 0; d < ARRAY_COUNT(devices); d++) {
        double few_s = seconds_each(devices[d], 7);
        for (size_t i = 0; i < ARRAY_COUNT(each); i++) {
            double seconds = seconds_each(devices[d], each[i]);
            if (!(seconds <= 1.02 * few_s))
                fail_msg("%u jobs on each of %u devices: %g s each, with 7: %g s", each[i], devices[d], seconds, few_s);
        }
    }
}

/* Jobs of different sizes, on device j % devices each; or only the jobs of one device. */
static void unequal_jobs(struct job_set *jobs, uint32_t devices, uint32_t only)
{
    enum { COUNT = 8 };
    static const uint32_t device_numbers[] = {0, 1, 2, 3};
    uint32_t count = 0;
    test_gpt_jobs(jobs, COUNT, 2, 128, 256, 40);
    for (uint32_t j = 0; j < COUNT; j++) {
        struct job job = jobs->jobs[j];
        job.microbatch = UINT64_C(1) << (j * 5 % 7);
        job.minibatches = 1280 / job.microbatch;
        if (only == RESIDENT_NOWHERE) {
            job.devices = &device_numbers[j % devices];
            job.device_count = 1;
        }
        if (only == RESIDENT_NOWHERE || j % devices == only) jobs->jobs[count++] = job;
    }
    jobs->count = count;
}

/* Two roads: devices side by side, whose links are their own and whose hosts have nothing to compute, take the time
 * that the longest of them takes without the others, though batches of all come in one order. */
static void side_by_side(void **state)
{
    (void)state;
    for (uint32_t devices = 2; devices <= MOST_DEVICES; devices++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan;
        double longest_s = 0;
        for (uint32_t d = 0; d < devices; d++) {
            test_hardware(&hardware, 1, 2000000000, 1e9);
            unequal_jobs(&jobs, devices, d);
            make_plan(&hardware, &jobs, true, &plan);
            longest_s = fmax(longest_s, simulated_s(&plan));
            plan_release(&plan);
        }
        test_hardware(&hardware, devices, 2000000000, 1e9);
        unequal_jobs(&jobs, devices, RESIDENT_NOWHERE);
        make_plan(&hardware, &jobs, true, &plan);
        assert_int_equal(plan.reservation_count, devices);
        double together_s = simulated_s(&plan);
        if (!(together_s <= 1.02 * longest_s))
            fail_msg("%u devices: %g s, the longest alone %g s", devices, together_s, longest_s);
        plan_release(&plan);
    }
}

/* The estimate of a job that is spilled on one of `busy` devices, whose links share one bridge of this rate. */
static double spilled_s(uint32_t devices, uint32_t busy, double bridge_rate)
{
    static const uint32_t job = 0, device = 0;
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    struct error err = {0};
    const struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_PLACE_DEVICE,
                                            .resident = true};
    const struct subproblem subproblem = {.jobs = &job, .devices = &device, .job_count = 1, .device_count = 1};
    test_hardware(&hardware, devices, 12000000, bridge_rate);
    for (uint32_t d = 0; d < devices; d++) hardware.devices[d].path[0] = 0; /* all share the first link */
    test_profile_jobs(&jobs, 1, LAYERS, 20, equal_layer, NULL);
    const struct resident_company company = resident_company(&hardware, busy);
    if (resident_subproblem_plan(&hardware, jobs.jobs, &subproblem, &company, 1e12, &options, &plan, &err))
        fail_msg("%s", err.text);
    double seconds = plan.estimated_makespan_s;
    plan_release(&plan);
    hardware_release(&hardware);
    job_set_release(&jobs);
    return seconds;
}

/* Copies that share a bridge among two or three devices make a spilled job slower than without the others, but not
 * slower than on a machine whose only device has its part of the bridge. */
static void devices_share_a_bridge(void **state)
{
    (void)state;
    const double bridge = 1e9;
    for (uint32_t busy = 2; busy <= 3; busy++) {
        double alone_s = spilled_s(3, 1, bridge), shared_s = spilled_s(3, busy, bridge),
            slow_s = spilled_s(1, 1, bridge / busy);
        if (!(shared_s >= 1.1 * alone_s && shared_s <= slow_s * (1 + 1e-9)))
            fail_msg("%u devices: alone %g s, shared %g s, slow %g s", busy, alone_s, shared_s, slow_s);
    }
}

static void round_trip(void **state)
{
    (void)state;
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan, again = {0};
    struct error err = {0};
    size_t length;
    test_hardware(&hardware, 2, 200000000, 1e9);
    test_profile_jobs(&jobs, 2, LAYERS, 3, equal_layer, NULL);
    make_plan(&hardware, &jobs, true, &plan);
    assert_true(plan.reservation_count > 0);
    struct json_out *out = json_out_create(NULL);
    assert_non_null(out);
    plan_write_json(&plan, out);
    const char *text = json_out_text(out, &length);
    if (plan_parse("resident", text, length, &again, &err)) fail_msg("%s", err.text);
    assert_int_equal(plan_fingerprint(&plan), plan_fingerprint(&again));
    assert_int_equal(again.jobs.jobs[1].devices[0], plan.jobs.jobs[1].devices[0]);
    json_out_destroy(out);
    plan_release(&again);
    plan_release(&plan);
}

/* Jobs that name their devices are planned with any memory that suffices without resident placement. */
static void tight_devices(void **state)
{
    (void)state;
    static const uint32_t numbers[] = {0, 1};
    uint32_t planned = 0, refused = 0;
    for (uint64_t bytes = 300000; bytes < 2500000; bytes += 50000) {
        enum status status[2];
        for (uint32_t resident = 0; resident < 2; resident++) {
            struct hardware hardware;
            struct job_set jobs;
            struct plan plan = {0};
            struct error err = {0};
            const struct planner_options options = {.activations = PLANNER_AUTO,
                                                    .optimizer = PLANNER_AUTO,
                                                    .resident = resident};
            test_hardware(&hardware, 2, bytes, 1e9);
            hardware.host_bandwidth = (struct sourced_value){.value = 2e10, .kind = SOURCE_ASSUMED, .source = "a test",
                                                             .as_of = "2026-11"};
            test_gpt_jobs(&jobs, 2, 3, 64, 256, 3);
            for (uint32_t j = 0; j < 2; j++) jobs.jobs[j].devices = &numbers[j];
            for (uint32_t j = 0; j < 2; j++) jobs.jobs[j].device_count = 1;
            status[resident] = planner_plan(&hardware, &jobs, &options, &plan, &err);
            plan_release(&plan);
        }
        assert_int_equal(status[0], status[1]);
        planned += status[0] == STATUS_OK;
        refused += status[0] == STATUS_INFEASIBLE;
    }
    if (planned == 0 || refused == 0) fail_msg("%u planned, %u refused", planned, refused);
}

/* Options about spilling are followed. */
static void no_resident_placement(void **state)
{
    (void)state;
    const struct planner_options builder = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO, .resident = true};
    struct planner_options asked[9];
    assert_true(resident_allowed(&builder));
    for (size_t i = 0; i < ARRAY_COUNT(asked); i++) asked[i] = builder;
    asked[0].resident = false;
    asked[1].policy = "sharded-lrtf";
    asked[2].no_persistence = true;
    asked[3].no_double_buffer = true;
    asked[4].live = true;
    asked[5].optimizer = PLANNER_PLACE_CPU;
    asked[6].activations = ACTIVATIONS_SPILL;
    asked[7].shards = 3;
    asked[8].storage = PLANNER_STORAGE_ALL;
    for (size_t i = 0; i < ARRAY_COUNT(asked); i++) assert_false(resident_allowed(&asked[i]));
}

/* Host memory is counted for the given jobs, whatever became of them: memory that just holds their states holds no
 * reservations that need more; memory that is too small for spilling is refused as before. */
static void host_memory(void **state)
{
    (void)state;
    for (uint64_t bytes = 70000000; bytes <= 400000000; bytes += 10000000) {
        struct hardware hardware, same;
        struct job_set jobs, same_jobs;
        struct plan plan = {0}, today = {0};
        struct error err = {0}, today_err = {0};
        struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO};
        test_hardware(&hardware, 2, 30000000, 1e9);
        test_hardware(&same, 2, 30000000, 1e9);
        hardware.host_bytes.value = same.host_bytes.value = (double)bytes;
        test_profile_jobs(&jobs, 4, LAYERS, 3, equal_layer, NULL);
        test_profile_jobs(&same_jobs, 4, LAYERS, 3, equal_layer, NULL);
        enum status before = planner_plan(&same, &same_jobs, &options, &today, &today_err);
        options.resident = true;
        enum status now = planner_plan(&hardware, &jobs, &options, &plan, &err);
        assert_int_equal(now, before);
        if (now == STATUS_OK) assert_true(plan_host_bytes(&plan) <= bytes);
        else assert_string_equal(err.text, today_err.text);
        plan_release(&plan);
        plan_release(&today);
    }
}

static void no_memory(void **state)
{
    (void)state;
    uint32_t failures = 0;
    for (uint64_t n = 1;; n += 1 + n / 24, failures++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        struct error err = {0};
        const struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO,
                                                .resident = true};
        test_hardware(&hardware, 2, 200000000, 1e9);
        test_profile_jobs(&jobs, 3, LAYERS, 3, equal_layer, NULL);
        alloc_test_fail_at(n);
        enum status status = planner_plan(&hardware, &jobs, &options, &plan, &err);
        uint64_t made = alloc_test_fail_at(0);
        if (status == STATUS_OK) {
            assert_true(made < n);
            plan_release(&plan);
            break;
        }
        assert_int_equal(status, STATUS_NO_MEMORY);
    }
    assert_true(failures > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_resident),   cmocka_unit_test(some_left),   cmocka_unit_test(never_slower),
        cmocka_unit_test(never_slower_in_little_host_memory),
        cmocka_unit_test(as_many_as_devices), cmocka_unit_test(side_by_side), cmocka_unit_test(devices_share_a_bridge),
        cmocka_unit_test(round_trip),
        cmocka_unit_test(no_resident_placement), cmocka_unit_test(tight_devices),
        cmocka_unit_test(host_memory),   cmocka_unit_test(no_memory),
        cmocka_unit_test(like_looking_at_each_device), cmocka_unit_test(no_cliff),
    };
    return cmocka_run_group_tests_name("resident", tests, NULL, NULL);
}
