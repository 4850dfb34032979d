/* label: medium
 * Saturn's choices as plans: nodes of machines; configurations of jobs; run times from a few
 * minibatches against whole runs; plans that end when the schedule says, where no jobs share a link; jobs that cost the
 * same are timed once; jobs that stop and go on elsewhere; jobs that do not fit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "models/job/learning_rate.h"
#include "planner/saturn/saturn.h"
#include "planner/strategy/subproblem.h"
#include "sim/sim.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/support_seed.h"

enum { LAYERS = 6, DEVICES = 4 };

static enum status simulated_s(void *context, const struct plan *plan, double *seconds, struct error *err)
{
    struct sim_result result = {0};
    struct trace trace = {0};
    const struct sim_options options = {.record_spans = false};
    enum status status = sim_run(plan, &options, &result, &trace, err);
    if (context) ++*(uint32_t *)context;
    *seconds = result.makespan_s;
    sim_result_release(&result);
    trace_release(&trace);
    return status;
}

/* Layers long enough that some hide copies and exchanges and others do not. */
static struct test_layer layer_of(void *context, uint32_t job, uint32_t layer)
{
    uint64_t key = *(uint64_t *)context;
    return (struct test_layer){.forward_ns = 1000000 + random_below(key, 3 * job, 4000000),
                               .backward_ns = 2000000 + random_below(key, 3 * job + 1, 7000000) + 1000 * layer,
                               .activation_bytes = 640000, .boundary_bytes = 12800,
                               .parameter_bytes = 1000000 + random_below(key, 3 * job + 2, 200000000)};
}

static void make_jobs(struct job_set *jobs, uint32_t count, uint64_t key, uint64_t minibatches)
{
    test_profile_jobs(jobs, count, LAYERS, minibatches, layer_of, &key);
    for (uint32_t j = 0; j < count; j++) jobs->jobs[j].microbatches = 8;
}

/* --- machines -------------------------------------------------------------------------------- */

static void check_nodes(const char *name, uint32_t nodes, uint32_t devices, uint32_t classes)
{
    struct hardware hardware = {0};
    struct saturn_machine machine = {0};
    struct error err = {0};
    if (hardware_find(name, &hardware, &err) || saturn_machine_find(&hardware, &machine, &err))
        fail_msg("%s", err.text);
    assert_int_equal(machine.node_count, nodes);
    assert_int_equal(machine.class_count, classes);
    for (uint32_t n = 0; n < nodes; n++) {
        assert_int_equal(machine.nodes[n].count, devices);
        for (uint32_t i = 0; i < devices; i++) /* presets number devices node by node */
            assert_int_equal(machine.devices[machine.nodes[n].first + i], n * devices + i);
    }
    saturn_machine_release(&machine);
    hardware_release(&hardware);
}

static void nodes(void **state)
{
    (void)state;
    check_nodes("8x a100-sxm4-40gb", 1, 8, 1);
    check_nodes("3x dgx-a100-80gb", 3, 8, 1);
}

/* Every second device has less memory: two classes in one place. */
static void classes(void **state)
{
    (void)state;
    struct hardware hardware;
    struct saturn_machine machine = {0};
    struct error err = {0};
    test_parallel_machine(&hardware, 5, 1e12, 0);
    hardware.devices[1].memory_bytes /= 2;
    hardware.devices[3].memory_bytes /= 2;
    if (saturn_machine_find(&hardware, &machine, &err)) fail_msg("%s", err.text);
    static const uint32_t expected[] = {0, 2, 4, 1, 3};
    assert_int_equal(machine.node_count, 2);
    assert_int_equal(machine.class_count, 2);
    assert_memory_equal(machine.devices, expected, sizeof expected);
    saturn_machine_release(&machine);
    hardware_release(&hardware);
}

/* --- configurations -------------------------------------------------------------------------- */

/* Tensor groups are offered with sequence parallelism, and also without it where the executor carries them out. */
static void tensor_groups(void **state)
{
    (void)state;
    struct hardware hardware;
    struct job_set jobs;
    test_hardware(&hardware, 4, 1 << 26, 1e9);
    test_gpt_jobs(&jobs, 1, 4, 64, 256, 1);
    for (uint32_t host = 0; host < 2; host++) {
        struct saturn_config configs[SATURN_CONFIGS_MAX];
        uint32_t groups[2] = {0};
        hardware.backend = host ? "host" : "cuda";
        const uint32_t count = saturn_configs(&jobs.jobs[0], 4, &hardware, configs);
        for (uint32_t i = 0; i < count; i++) {
            if (configs[i].way != SATURN_TENSOR) continue;
            groups[configs[i].parallel.sequence]++;
            if (!configs[i].parallel.sequence)
                assert_memory_equal(&configs[i - 1].parallel.tensor, &configs[i].parallel.tensor,
                                                                   sizeof configs[i].parallel.tensor);
        }
        assert_int_equal(groups[1], 2); /* of 2 and 4 devices: 3 do not divide the heads */
        assert_int_equal(groups[0], host ? 2 : 0);
    }
    hardware_release(&hardware);
    job_set_release(&jobs);
}

/* With 2, 4 and 8 devices replicas have equal shares of eight microbatches; six layers make up to six stages; a
 * network known by measurement is not cut by tensors. */
static void configurations(void **state)
{
    (void)state;
    struct job_set jobs;
    struct saturn_config configs[SATURN_CONFIGS_MAX];
    uint32_t of[SATURN_WAYS] = {0};
    make_jobs(&jobs, 1, 3, 5);
    uint32_t count = saturn_configs(&jobs.jobs[0], 8, NULL, configs);
    for (uint32_t i = 0; i < count; i++) {
        const struct parallel *p = &configs[i].parallel;
        of[configs[i].way]++;
        if (parallel_is_set(p)) assert_int_equal(parallel_devices(p), configs[i].devices);
        else assert_int_equal(configs[i].way, SATURN_SPILLED);
    }
    assert_int_equal(of[SATURN_ONE_DEVICE], 1);
    assert_int_equal(of[SATURN_SPILLED], 1);
    assert_int_equal(of[SATURN_DATA], 3);
    assert_int_equal(of[SATURN_FSDP], 3);
    assert_int_equal(of[SATURN_PIPELINE], 5);
    assert_int_equal(of[SATURN_TENSOR], 0);
    jobs.jobs[0].parallel = configs[count - 1].parallel;
    assert_int_equal(saturn_configs(&jobs.jobs[0], 8, NULL, configs), 1);
    assert_int_equal(configs[0].way, SATURN_AS_GIVEN);
    job_set_release(&jobs);
}

/* --- run times ------------------------------------------------------------------------------- */

static double whole_s(const struct hardware *hardware, const struct job_set *jobs, const struct saturn_time *t)
{
    const uint32_t devices[] = {0, 1, 2, 3};
    const struct subproblem part = {.jobs = &t->job, .job_count = 1, .devices = devices,
                                    .device_count = t->config.devices};
    const struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO};
    struct plan plan = {0};
    struct error err = {0};
    double seconds;
    if (subproblem_plan(hardware, jobs->jobs, &part, &t->config.parallel, hardware->host_bytes.value, &options, &plan,
                        &err) ||
        simulated_s(NULL, &plan, &seconds, &err))
        fail_msg("%s", err.text);
    plan_release(&plan);
    return seconds;
}

/* All minibatches after the second take the second's time, so the stated time of 23 is right. */
static void few_minibatches_say_it_all(void **state)
{
    (void)state;
    uint64_t seed = support_seed("few_minibatches_say_it_all");
    const struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO};
    const struct saturn_clock clock = {.time = simulated_s};
    uint32_t ways[SATURN_WAYS] = {0};
    for (uint32_t round = 0; round < 8; round++) {
        struct hardware hardware;
        struct job_set jobs;
        struct saturn_machine machine = {0};
        struct saturn_times times = {0};
        struct error err = {0};
        test_parallel_machine(&hardware, DEVICES, 2e10, 1e-6);
        make_jobs(&jobs, 2, random_u64(seed, round), 23);
        if (saturn_machine_find(&hardware, &machine, &err) ||
            saturn_times_find(&machine, &jobs, &options, false, &clock, &times, &err))
            fail_msg("%s", err.text);
        for (size_t i = 0; i < times.count; i++) {
            double seconds = whole_s(&hardware, &jobs, &times.times[i]);
            ways[times.times[i].config.way]++;
            if (!(fabs(times.times[i].run_s - seconds) <= 1e-6 * seconds))
                fail_msg("round %u, %s on %u: %.12g s said, %.12g s simulated", round,
                         saturn_way_names[times.times[i].config.way], times.times[i].config.devices,
                         times.times[i].run_s, seconds);
        }
        saturn_times_release(&times);
        saturn_machine_release(&machine);
        job_set_release(&jobs);
        hardware_release(&hardware);
    }
    for (enum saturn_way way = 0; way <= SATURN_SPILLED; way++)
        if (way != SATURN_TENSOR) assert_true(ways[way] > 0);
}

/* Equal jobs are timed once, whatever their names and learning rates. */
static void timed_once(void **state)
{
    (void)state;
    uint32_t timings[2];
    for (uint32_t many = 0; many < 2; many++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        struct saturn_report report = {0};
        struct error err = {0};
        const struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO};
        uint32_t calls = 0;
        const struct saturn_clock clock = {.time = simulated_s, .context = &calls};
        const struct saturn_options how = {.spilled = &options, .clock = &clock};
        test_parallel_machine(&hardware, DEVICES, 2e10, 1e-6);
        make_jobs(&jobs, many ? 5 : 1, 11, 9);
        for (uint32_t j = 1; j < jobs.count; j++) {
            jobs.jobs[j].network = jobs.jobs[0].network;
            jobs.jobs[j].optimizer = jobs.jobs[0].optimizer;
            jobs.jobs[j].optimizer.learning_rate *= j + 1;
            jobs.jobs[j].minibatches += 2 * j;
        }
        if (saturn_plan(&hardware, &jobs, &how, &report, &plan, &err)) fail_msg("%s", err.text);
        timings[many] = calls;
        plan_release(&plan);
    }
    assert_true(timings[0] > 0);
    assert_int_equal(timings[0], timings[1]);
}

/* --- plans ----------------------------------------------------------------------------------- */

/* Links are devices' own here, so jobs do not slow each other down, and the simulated end is the schedule's. */
static void plans_end_as_scheduled(void **state)
{
    (void)state;
    uint64_t seed = support_seed("plans_end_as_scheduled");
    const struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO,
                                            .iterations = 20000};
    const struct saturn_clock clock = {.time = simulated_s};
    const struct saturn_options how = {.spilled = &options, .clock = &clock};
    uint32_t better = 0;
    for (uint32_t round = 0; round < 8; round++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        struct saturn_report report = {0};
        struct error err = {0};
        double seconds, least_s = HUGE_VAL;
        test_parallel_machine(&hardware, DEVICES, 2e10, 1e-6);
        make_jobs(&jobs, 3 + round % 4, random_u64(seed, round), 23);
        for (uint32_t j = 0; j < jobs.count; j++) jobs.jobs[j].minibatches += random_below(seed, j, 40);
        if (saturn_plan(&hardware, &jobs, &how, &report, &plan, &err) ||
            simulated_s(NULL, &plan, &seconds, &err))
            fail_msg("round %u: %s", round, err.text);
        if (!(fabs(seconds - plan.estimated_makespan_s) <= 1e-6 * seconds))
            fail_msg("round %u: %.12g s scheduled, %.12g s simulated", round, plan.estimated_makespan_s, seconds);
        assert_true(plan.lower_bound_s <= seconds * (1 + 1e-9));
        assert_true(plan.order.bound_s <= plan.estimated_makespan_s * (1 + 1e-9));
        assert_int_equal(plan.order.kind, PLAN_ORDER_GANGS);
        assert_int_equal(plan.reservation_count, plan.jobs.count);
        for (uint32_t b = 0; b < SPASE_BASELINE_COUNT; b++)
            if (report.baselines_s[b] < least_s) least_s = report.baselines_s[b];
        if (plan.estimated_makespan_s > least_s * (1 + 1e-9))
            fail_msg("round %u: %.12g s, and by other rules %.12g s", round, plan.estimated_makespan_s, least_s);
        better += plan.estimated_makespan_s < least_s * (1 - 1e-3);
        plan_release(&plan);
    }
    assert_true(better > 0);
}

/* Run times are taken over; the run times of offloaded jobs are slowed, so no schedule ends sooner, and the bound
 * stays. */
static void links_are_shared(void **state)
{
    (void)state;
    const struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO,
                                            .iterations = 20000};
    struct saturn_times times = {0};
    double end_s = 0, bound_s = 0;
    uint32_t calls = 0, timed = 0;
    const struct saturn_clock clock = {.time = simulated_s, .context = &calls};
    for (uint32_t by = 1; by <= 4; by++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        struct saturn_report report = {0};
        struct error err = {0};
        const struct saturn_options how = {
            .spilled = &options, .clock = &clock, .kept_times = &times, .slowed = by, .bound_s = bound_s};
        make_jobs(&jobs, 5, 2385, 23);
        for (uint32_t j = 1; j < jobs.count; j++) {
            jobs.jobs[j].network = jobs.jobs[0].network;
            jobs.jobs[j].minibatches += 2 * j;
        }
        uint64_t state_bytes = job_state(&jobs.jobs[0], 0, LAYERS).bytes;
        test_hardware(&hardware, 2, state_bytes, 1e10); /* none fits on a device, and devices have no links: all are
                                                           spilled */
        if (saturn_plan(&hardware, &jobs, &how, &report, &plan, &err)) fail_msg("%s", err.text);
        if (by == 1) timed = calls;
        if (by == 1) end_s = plan.estimated_makespan_s;
        if (by == 1) bound_s = plan.order.bound_s;
        assert_int_equal(calls, timed);
        assert_true(fabs(plan.estimated_makespan_s - by * end_s) <= 1e-2 * by * end_s);
        assert_true(fabs(plan.order.bound_s - bound_s) <= 1e-9 * bound_s);
        plan_release(&plan);
    }
    for (size_t i = 0; i < times.count; i++) assert_int_equal(times.times[i].config.way, SATURN_SPILLED);
    saturn_times_release(&times);
}

/* --- planned again --------------------------------------------------------------------------- */

/* Returns whether `name`, such as "job-1" or "job-1.2", is a piece of job j. */
static bool is_piece(const char *name, uint32_t j)
{
    char whole[32];
    size_t length = (size_t)snprintf(whole, sizeof whole, "job-%u", j);
    return strncmp(name, whole, length) == 0 && (name[length] == '\0' || name[length] == '.');
}

/* Checks that each step of a piece has the learning rate of that step of the whole job, to the last bit. */
static void check_rates(const struct job *piece, const struct job *whole)
{
    for (uint64_t i = 0; i < piece->minibatches; i++)
        assert_true(optimizer_at(piece, piece->first_minibatch + i).learning_rate ==
                    optimizer_at(whole, piece->first_minibatch + i).learning_rate);
}

/* All minibatches, in order, each piece after the one that it follows, with its restart. */
static void check_pieces(const struct plan *plan, const struct trace *trace, const struct job_set *jobs)
{
    for (uint32_t j = 0; j < jobs->count; j++) {
        uint64_t done = 0;
        for (uint32_t i = 0; i < plan->jobs.count; i++) {
            const struct job *job = &plan->jobs.jobs[i];
            const struct plan_reservation *reservation = &plan->reservations[plan->job_reservation[i]];
            if (!is_piece(job->name, j)) continue;
            assert_int_equal(job->first_minibatch, done);
            check_rates(job, &jobs->jobs[j]);
            done += job->minibatches;
            assert_int_equal(reservation->follows == PLAN_NONE, job->first_minibatch == 0);
            if (reservation->follows == PLAN_NONE) continue;
            uint32_t before = 0;
            while (plan->job_reservation[before] != reservation->follows) before++;
            assert_true(is_piece(plan->jobs.jobs[before].name, j));
            assert_true(trace->jobs[i].start_s >= trace->jobs[before].end_s);
            assert_true(reservation->restart_s > 0 &&
                        trace->jobs[i].end_s - trace->jobs[i].start_s >= reservation->restart_s);
        }
        assert_int_equal(done, jobs->jobs[j].minibatches);
    }
}

/* A piece promises a share of its job's run time; its real time differs by its first minibatch, and by the part of
 * one that a stop lets go. Restarts are simulated: spilled jobs, whose states are on the host, have none. */
static void planned_anew(void **state)
{
    (void)state;
    uint64_t seed = support_seed("planned_anew");
    const struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO,
                                            .iterations = 20000};
    const struct saturn_clock clock = {.time = simulated_s};
    uint32_t changed = 0;
    for (uint32_t round = 0; round < 6; round++) {
        struct saturn_options how = {.spilled = &options, .clock = &clock, .interval_s = 0.5, .threshold_s = -1,
                                     .restart_s = 0.004};
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        struct saturn_report report = {0};
        struct sim_result result = {0};
        struct trace trace = {0};
        struct error err = {0};
        const struct sim_options plain = {.record_spans = false};
        uint32_t count = 3 + round % 4;
        test_parallel_machine(&hardware, DEVICES, 2e10, 1e-6);
        make_jobs(&jobs, count, random_u64(seed, round), 60);
        for (uint32_t j = 0; j < count; j++) {
            jobs.jobs[j].parallel = (struct parallel){0};
            jobs.jobs[j].minibatches += random_below(seed, 7 * round + j, 200);
            jobs.jobs[j].optimizer.schedule = (struct rate_schedule){
                .kind = j % RATE_SCHEDULE_COUNT, .warmup = jobs.jobs[j].minibatches * 3 / 4, .floor = 0.125};
        }
        if (saturn_plan(&hardware, &jobs, &how, &report, &plan, &err) || sim_run(&plan, &plain, &result, &trace, &err))
            fail_msg("round %u: %s", round, err.text);
        assert_true(plan.estimated_makespan_s <= report.scheduled_s * (1 + 1e-6));
        assert_true(report.replans > 0 || report.restarts == 0);
        if (report.restarts > 0) assert_true(plan.estimated_makespan_s <= report.scheduled_s - 0.25 + 1e-6);
        if (!(fabs(result.makespan_s / plan.estimated_makespan_s - 1) <= 0.05))
            fail_msg("round %u: %g s planned, %g s simulated", round, plan.estimated_makespan_s, result.makespan_s);
        check_pieces(&plan, &trace, &jobs);
        changed += report.restarts > 0;
        sim_result_release(&result);
        trace_release(&trace);
        plan_release(&plan);
    }
    assert_true(changed > 0);
}

static void refused(void **state)
{
    (void)state;
    static const char *const messages[] = {
        "job 'job-0' fits on no node of the machine in any way: ",
        "job 'job-1' names devices, which policy 'saturn' chooses",
        "job 'job-1' fits on no node of the machine in any way: no node has as many devices as it needs",
    };
    for (uint32_t which = 0; which < ARRAY_COUNT(messages); which++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        struct saturn_report report = {0};
        struct error err = {0};
        static const uint32_t devices[] = {1};
        const struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO};
        const struct saturn_clock clock = {.time = simulated_s};
        const struct saturn_options how = {.spilled = &options, .clock = &clock};
        test_parallel_machine(&hardware, DEVICES, 2e10, 1e-6);
        make_jobs(&jobs, 2, 7, 3);
        for (uint32_t d = 0; d < DEVICES && which == 0; d++) hardware.devices[d].memory_bytes = 1 << 16;
        if (which == 1) {
            jobs.jobs[1].devices = devices;
            jobs.jobs[1].device_count = 1;
        }
        if (which == 2)
            jobs.jobs[1].parallel = (struct parallel){.tensor = 1, .pipeline = 6, .data = 1, .chunks = 1,
                                                      .schedule = PIPELINE_1F1B};
        enum status status = saturn_plan(&hardware, &jobs, &how, &report, &plan, &err);
        assert_int_equal(status, which == 1 ? STATUS_BAD_INPUT : STATUS_INFEASIBLE);
        if (!strstr(err.text, messages[which])) fail_msg("'%s' does not say '%s'", err.text, messages[which]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes),      cmocka_unit_test(classes),
        cmocka_unit_test(configurations), cmocka_unit_test(tensor_groups), cmocka_unit_test(few_minibatches_say_it_all),
        cmocka_unit_test(timed_once), cmocka_unit_test(plans_end_as_scheduled), cmocka_unit_test(links_are_shared),
        cmocka_unit_test(planned_anew), cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests_name("saturn", tests, NULL, NULL);
}
