/*
 * Jobs that have devices for themselves (label: fast): random reservations, of jobs that offload and of stages with
 * unequal replicas too, end when the same parts, each planned by itself, end one after the other on the devices that
 * they share; no reservation begins before all of its devices are free; plans survive writing and reading; broken
 * plans, each with its complaint; refused requests; memory that ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json/json_out.h"
#include "base/random.h"
#include "base/size.h"
#include "models/job/parallel_offload.h"
#include "planner/files/plan_io.h"
#include "planner/strategy/subproblem.h"
#include "sim/sim.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/support_seed.h"

enum { LAYERS = 4, DEVICES = 5, JOBS = 7 };

/* --- jobs ------------------------------------------------------------------------------------ */

static struct test_layer layer_of(void *context, uint32_t job, uint32_t layer)
{
    (void)context;
    return (struct test_layer){.forward_ns = 3000000 + 700000 * job, .backward_ns = 6000000 + 300000 * layer,
                               .activation_bytes = 640, .boundary_bytes = 1280, .parameter_bytes = 5000000};
}

static struct parallel parallel_as(uint32_t pipeline, uint32_t data)
{
    return (struct parallel){.tensor = 1, .pipeline = pipeline, .data = data, .chunks = 1,
                             .schedule = PIPELINE_1F1B, .prefetch = 1};
}

/* States, or weights too, on the host; each rank brings its share over a link of its own. */
static struct parallel offloaded_as(uint32_t offload, uint32_t data, bool delayed)
{
    struct parallel p = parallel_as(1, data);
    p.chunks = LAYERS;
    p.offload = offload;
    p.zero = offload == OFFLOAD_WEIGHTS ? 3 : 2;
    p.delayed = delayed;
    return p;
}

/* Gives stages these numbers of replicas; 0 ends them. */
static struct parallel replicated_as(const uint32_t replicas[3])
{
    struct parallel p = parallel_as(0, 1);
    p.schedule = PIPELINE_PIPEDREAM;
    while (p.pipeline < 3 && replicas[p.pipeline] > 0) {
        p.replicas[p.pipeline] = replicas[p.pipeline];
        p.pipeline++;
    }
    p.replicated = p.pipeline;
    return p;
}

/* A job that names these devices; pipeline 0: spilled and run on them. */
static void name_devices(struct job_set *jobs, uint32_t j, struct parallel parallel, const uint32_t *devices,
                         uint32_t count)
{
    uint32_t *named;
    struct error err = {0};
    if (ARENA_NEW(&jobs->arena, count, named, &err)) fail_msg("%s", err.text);
    memcpy(named, devices, count * sizeof *devices);
    jobs->jobs[j].parallel = parallel;
    jobs->jobs[j].devices = named;
    jobs->jobs[j].device_count = count;
    jobs->jobs[j].microbatches = parallel_is_set(&parallel) && parallel.replicated == 0 ? 4 : 1;
}

/* The ways to run: the first USUAL_WAYS are pipelines, replicas, spilled; then states offloaded, weights offloaded,
 * updates delayed, unequal replicas. */
enum { USUAL_WAYS = 3, ALL_WAYS = 7 };

static struct parallel way_to_run(uint32_t way, uint32_t size, bool turned)
{
    static const uint32_t unequal[][3] = {{1, 0, 0}, {1, 1, 0}, {2, 2, 0}, {2, 1, 1}}; /* of 1, 2, 4 devices */
    static const uint32_t other[][3] = {{1, 0, 0}, {1, 1, 0}, {1, 3, 0}, {3, 1, 0}};
    uint32_t row = size < 4 ? size - 1 : turned ? 3 : 2;
    switch (way) {
    case 0: return parallel_as(size, 1);
    case 1: return parallel_as(1, size);
    case 3: return offloaded_as(OFFLOAD_STATES, size, false);
    case 4: return offloaded_as(OFFLOAD_WEIGHTS, size, false);
    case 5: return offloaded_as(OFFLOAD_STATES, size, true);
    case 6: return replicated_as(turned ? other[row] : unequal[row]);
    default: return (struct parallel){0};
    }
}

static void random_jobs(struct job_set *jobs, uint32_t ways, uint64_t seed)
{
    uint64_t n = 0;
    uint32_t count = 2 + (uint32_t)random_below(seed, n++, JOBS - 1);
    test_profile_jobs(jobs, count, LAYERS, 3, layer_of, NULL);
    for (uint32_t j = 0; j < count; j++) {
        uint32_t devices[DEVICES], size = 1 + (uint32_t)random_below(seed, n++, 3);
        for (uint32_t d = 0; d < DEVICES; d++) devices[d] = d;
        for (uint32_t d = 0; d < size; d++) {
            uint32_t k = d + (uint32_t)random_below(seed, n++, DEVICES - d), swap = devices[d];
            devices[d] = devices[k];
            devices[k] = swap;
        }
        if (size == 3) size = 4;
        uint32_t way = (uint32_t)random_below(seed, n++, ways);
        struct parallel parallel = way_to_run(way, size, way == 6 && random_below(seed, n++, 2) > 0);
        name_devices(jobs, j, parallel, devices, size);
        jobs->jobs[j].minibatches = 1 + random_below(seed, n++, 40);
        uint64_t turns = 1; /* rounds of every stage's replicas are whole */
        for (uint32_t p = 0; p < parallel.replicated; p++) turns *= parallel.replicas[p];
        jobs->jobs[j].minibatches *= turns;
    }
}

static void plan_jobs(struct job_set *jobs, struct plan *plan)
{
    struct hardware hardware;
    test_parallel_machine(&hardware, DEVICES, 1e12, 0);
    hardware.host_bandwidth =
        (struct sourced_value){.value = 1e11, .kind = SOURCE_ASSUMED, .source = "a test", .as_of = "2026-11"};
    test_parallel_plan(&hardware, jobs, plan);
}

static void simulate(const struct plan *plan, struct trace *trace, bool no_fold)
{
    struct sim_result result = {0};
    struct error err = {0};
    struct sim_options options = {.no_fold = no_fold};
    *trace = (struct trace){0};
    if (sim_run(plan, &options, &result, trace, &err)) fail_msg("%s", err.text);
    sim_result_release(&result);
}

/* --- two roads ------------------------------------------------------------------------------- */

static bool share(const struct plan *plan, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < plan->reservations[a].device_count; i++)
        for (uint32_t k = 0; k < plan->reservations[b].device_count; k++)
            if (plan_reservation_devices(plan, a)[i] == plan_reservation_devices(plan, b)[k]) return true;
    return false;
}

/* The time that a reservation's jobs take on its devices without other jobs. */
static double alone_s(const struct plan *plan, uint32_t reservation)
{
    uint32_t jobs[JOBS];
    struct subproblem subproblem = {.jobs = jobs, .devices = plan_reservation_devices(plan, reservation),
                                    .device_count = plan->reservations[reservation].device_count};
    struct plan alone = {0};
    struct error err = {0};
    struct trace trace;
    const struct planner_options options = {.activations = 0};
    for (uint32_t j = 0; j < plan->jobs.count; j++)
        if (plan->job_reservation[j] == reservation) jobs[subproblem.job_count++] = j;
    if (subproblem_plan(&plan->hardware, plan->jobs.jobs, &subproblem, NULL, plan->hardware.host_bytes.value, &options,
                        &alone, &err))
        fail_msg("%s", err.text);
    simulate(&alone, &trace, false);
    double makespan_s = trace.makespan_s;
    trace_release(&trace);
    plan_release(&alone);
    return makespan_s;
}

/* Links and computations of different devices do not touch each other here, and the work of the host's processor
 * takes no time (a profile's step). So a reservation takes the time that it takes without the others, from when all
 * earlier reservations with one of its devices have ended. But where several jobs offload, the processor takes their
 * steps in the order of the plan, and one may wait for another's; then reservations end no earlier, and no later
 * than one after the other. */
static void check_parts(const char *name, uint32_t ways, uint32_t rounds)
{
    uint64_t seed = support_seed(name);
    for (uint32_t round = 0; round < rounds; round++) {
        struct job_set jobs;
        struct plan plan = {0};
        struct trace trace;
        double ends_s[JOBS] = {0}, makespan_s = 0, row_s = 0;
        uint32_t offloading = 0;
        random_jobs(&jobs, ways, random_u64(seed, round));
        plan_jobs(&jobs, &plan);
        simulate(&plan, &trace, round % 2 == 0);
        for (uint32_t l = 0; l < plan.reservation_count; l++) {
            double begin_s = 0;
            for (uint32_t k = 0; k < l; k++)
                if (share(&plan, k, l) && ends_s[k] > begin_s) begin_s = ends_s[k];
            double reservation_s = alone_s(&plan, l);
            row_s += reservation_s;
            ends_s[l] = begin_s + reservation_s;
            if (ends_s[l] > makespan_s) makespan_s = ends_s[l];
        }
        for (uint32_t j = 0; j < plan.jobs.count; j++) offloading += parallel_offloads(&plan.jobs.jobs[j].parallel);
        double latest_s = offloading > 1 ? row_s : makespan_s;
        if (!(trace.makespan_s >= makespan_s * (1 - 1e-9) && trace.makespan_s <= latest_s * (1 + 1e-9)))
            fail_msg("round %u: %.17g s, expected %.17g to %.17g s", round, trace.makespan_s, makespan_s, latest_s);
        trace_release(&trace);
        plan_release(&plan);
    }
}

static void parts_one_behind_the_other(void **state)
{
    (void)state;
    check_parts("parts_one_behind_the_other", USUAL_WAYS, 150);
}

static void parts_of_all_kinds(void **state)
{
    (void)state;
    check_parts("parts_of_all_kinds", ALL_WAYS, 150);
}

/* Jobs 0 on devices 0 and 1, short; 1 on 3 and 2, long; 2 on 1 and 2; 3 spilled on 0. */
static void make_four(struct plan *out, uint32_t variant)
{
    (void)variant;
    struct job_set jobs;
    *out = (struct plan){0};
    test_profile_jobs(&jobs, 4, LAYERS, 5, layer_of, NULL);
    name_devices(&jobs, 0, parallel_as(2, 1), (const uint32_t[]){0, 1}, 2);
    name_devices(&jobs, 1, parallel_as(1, 2), (const uint32_t[]){3, 2}, 2);
    name_devices(&jobs, 2, parallel_as(2, 1), (const uint32_t[]){1, 2}, 2);
    name_devices(&jobs, 3, (struct parallel){0}, (const uint32_t[]){0}, 1);
    jobs.jobs[1].minibatches = 50;
    plan_jobs(&jobs, out);
}

/* Job 2 has device 1 early and still waits for job 1, job 3 only has to wait for job 0. */
static void gangs_begin_together(void **state)
{
    (void)state;
    struct plan plan = {0};
    struct trace trace;
    make_four(&plan, 0);
    simulate(&plan, &trace, false);
    assert_true(trace.jobs[0].end_s < 0.5 * trace.jobs[1].end_s);
    assert_true(trace.jobs[2].start_s >= trace.jobs[1].end_s);
    assert_true(trace.jobs[3].start_s >= trace.jobs[0].end_s && trace.jobs[3].start_s < trace.jobs[1].end_s);
    trace_release(&trace);
    plan_release(&plan);
}

/* Spilled jobs that name nothing have the devices that are left, or all devices after the other jobs. */
static void devices_that_are_left(void **state)
{
    (void)state;
    for (uint32_t width = DEVICES - 2; width <= DEVICES; width++) {
        struct job_set jobs;
        struct plan plan = {0};
        test_profile_jobs(&jobs, 3, DEVICES, 5, layer_of, NULL);
        jobs.jobs[1].parallel = parallel_as(width, 1);
        jobs.jobs[1].microbatches = 4;
        plan_jobs(&jobs, &plan);
        assert_int_equal(plan.reservation_count, 2);
        assert_int_equal(plan.job_reservation[0], 1);
        assert_int_equal(plan.job_reservation[1], 0);
        assert_int_equal(plan.job_reservation[2], 1);
        assert_int_equal(plan.reservations[1].device_count, width == DEVICES ? DEVICES : DEVICES - width);
        assert_int_equal(plan_reservation_devices(&plan, 1)[0], width % DEVICES);
        assert_true(width < DEVICES ? plan.reservations[1].begin_s <= 0
                                    : plan.reservations[1].begin_s >= plan.reservations[0].end_s);
        plan_release(&plan);
    }
}

static void round_trip(void **state)
{
    (void)state;
    struct job_set jobs;
    struct plan plan = {0}, again = {0};
    struct error err = {0};
    random_jobs(&jobs, ALL_WAYS, 5);
    plan_jobs(&jobs, &plan);
    struct json_out *out = json_out_create(NULL);
    assert_non_null(out);
    plan_write_json(&plan, out);
    size_t length;
    const char *text = json_out_text(out, &length);
    if (plan_parse("reservations", text, length, &again, &err)) fail_msg("%s", err.text);
    assert_int_equal(plan_fingerprint(&plan), plan_fingerprint(&again));
    for (uint32_t l = 0; l < plan.reservation_count; l++)
        test_parallel_near(again.reservations[l].end_s, plan.reservations[l].end_s);
    json_out_destroy(out);
    plan_release(&again);
    plan_release(&plan);
}

/* --- broken plans ---------------------------------------------------------------------------- */

static void no_reservation(struct plan *plan) { plan->job_reservation[2] = plan->reservation_count; }
static void twice(struct plan *plan) { plan->reservation_devices[1] = plan->reservation_devices[0]; }
static void no_device(struct plan *plan) { plan->reservation_devices[1] = DEVICES; }
static void no_devices(struct plan *plan) { plan->reservations[0].device_count = 0; }
static void too_few(struct plan *plan) { plan->reservations[1].device_count = 1; }
static void follows_itself(struct plan *plan) { plan->reservations[1].follows = 1; }
static void backwards(struct plan *plan) { plan->reservations[1].begin_s = 2 * plan->reservations[1].end_s; }
static void other_ranks(struct plan *plan) { plan->reservation_devices[plan->reservations[1].first_device] = 4; }
static void other_device(struct plan *plan) { plan->reservation_devices[plan->reservations[3].first_device] = 4; }

/* Exchanges the task that stores a shard of job 0 and the first task of job 3. */
static void exchange(struct plan *plan, uint32_t shard)
{
    uint32_t last = 0, first = plan->task_count;
    for (uint32_t i = 0; i < plan->task_count; i++) {
        const struct plan_unit *unit = &plan->units[plan->tasks[i].unit];
        if (unit->job == 0 && unit->shard == shard && unit->pass == PLAN_STORE) last = i;
        if (unit->job == 3 && i < first) first = i;
    }
    test_parallel_swap(&plan->tasks[last], &plan->tasks[first]);
}
static void state_stays(struct plan *plan) { exchange(plan, 0); }
static void goes_on(struct plan *plan) { exchange(plan, 1); }

/* Swaps the numbers of reservations 0 and 2, which share device 1: the second then comes first. */
static void renumbered(struct plan *plan)
{
    struct plan_reservation swap = plan->reservations[0];
    plan->reservations[0] = plan->reservations[2];
    plan->reservations[2] = swap;
    plan->job_reservation[0] = 2;
    plan->job_reservation[2] = 0;
}

static void follows_late(struct plan *plan)
{
    plan->reservations[3].follows = 2;
    plan->jobs.jobs[3].first_minibatch = plan->jobs.jobs[2].first_minibatch + plan->jobs.jobs[2].minibatches;
}
static void leaves_a_gap(struct plan *plan)
{
    follows_late(plan);
    plan->jobs.jobs[3].first_minibatch++;
}
static void trains_another(struct plan *plan)
{
    follows_late(plan);
    plan->jobs.jobs[3].precision = PRECISION_BF16_WEIGHTS;
}
static void followed_twice(struct plan *plan)
{
    follows_late(plan);
    plan->reservations[2].follows = 1;
    plan->reservations[3].follows = 1;
}
static void follows_two_jobs(struct plan *plan)
{
    follows_late(plan);
    plan->job_reservation[1] = 2;
}

static void broken(void **state)
{
    (void)state;
    const struct test_parallel_damage cases[] = {
        {no_reservation, 0, "reservations: job-2 is in none of the 4 reservations"},
        {twice, 0, "reservation 0 has device 0 twice"},
        {no_device, 0, "reservation 0 has device 5, which does not exist"},
        {no_devices, 0, "reservation 0 is of 0 devices that do not exist"},
        {too_few, 0, "runs on 2 devices, and its reservation has 1"},
        {follows_itself, 0, "reservation 1 follows reservation 1 (expected an earlier one)"},
        {backwards, 0, "reservations: reservation 1 is expected from"},
        {other_ranks, 0, "is not on the devices of stage 0"},
        {other_device, 0, "runs on device 0, which is not of reservation 3"},
        {state_stays, 0, "reservations: reservation 3 begins with the "},
        {goes_on, 0, "reservations: reservation 0 continues after a later reservation has begun"},
        {renumbered, 0, "reservations: reservation 0 takes device 1 after reservation 2 (expected in their order)"},
        {follows_late, 0, "reservations: reservation 3 begins before reservation 2, which it follows"},
        {leaves_a_gap, 0, "reservations: job-3 begins at minibatch 6 (expected 5, where job-2 ends)"},
        {trains_another, 0, "reservations: job-3 goes on from job-2, which trains another network or in another way"},
        {followed_twice, 0, "reservations: a reservation of 1 jobs follows one of 1 jobs, as do 2 (expected 1 each)"},
        {follows_two_jobs, 0, "reservations: a reservation of 1 jobs follows one of 2 jobs, as do 1 (expected 1 each)"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), make_four);
}

/* --- what cannot be asked -------------------------------------------------------------------- */

static void refused(void **state)
{
    (void)state;
    static const struct {
        uint32_t device;
        uint64_t memory_bytes;
        enum status status;
        const char *message;
    } cases[] = {
        {9, 0, STATUS_BAD_INPUT, "names device 9, and machine"},
        {3, 1000, STATUS_INFEASIBLE, "on devices 1, 3, counted from 0: job 'job-1' needs 19.1 MiB on each device of "
                                     "stage 1, and device 1 has "},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        struct error err = {0};
        const struct planner_options options = {.weight_buffers = 0};
        test_parallel_machine(&hardware, DEVICES, 1e12, 0);
        test_profile_jobs(&jobs, 2, LAYERS, 5, layer_of, NULL);
        name_devices(&jobs, 1, parallel_as(2, 1), (const uint32_t[]){1, cases[i].device}, 2);
        if (cases[i].memory_bytes > 0) hardware.devices[3].memory_bytes = cases[i].memory_bytes;
        assert_int_equal(planner_plan(&hardware, &jobs, &options, &plan, &err), cases[i].status);
        if (!strstr(err.text, cases[i].message)) fail_msg("'%s' does not say '%s'", err.text, cases[i].message);
    }
}

/* Every n-th allocation fails: nothing leaks, and the plan is made if none fails. */
static void no_memory(void **state)
{
    (void)state;
    uint32_t failures = 0;
    for (uint64_t n = 1;; n += 1 + n / 32, failures++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        struct error err = {0};
        const struct planner_options options = {.weight_buffers = 0};
        test_parallel_machine(&hardware, DEVICES, 1e12, 0);
        random_jobs(&jobs, USUAL_WAYS, 12);
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
        cmocka_unit_test(parts_one_behind_the_other),
        cmocka_unit_test(parts_of_all_kinds),
        cmocka_unit_test(gangs_begin_together),
        cmocka_unit_test(devices_that_are_left),
        cmocka_unit_test(round_trip),
        cmocka_unit_test(broken),
        cmocka_unit_test(refused),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests_name("reservations", tests, NULL, NULL);
}
