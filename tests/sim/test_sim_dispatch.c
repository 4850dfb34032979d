/* sim/dispatch.h: plans with choices in virtual time. No two units of a job are under
 * way at a time, no device runs more units than it has weight buffers, and a single job takes the sum of its units. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/size.h"
#include "planner/policy/policies.h"
#include "planner/strategy/planner.h"
#include "sim/sim.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/sim/support_sim.h"

enum { BLOCKS = 3, WIDTH = 32, VOCABULARY = 97, MINIBATCHES = 4, DEVICES = 2, WEIGHT_BUFFERS = 2 };

static void make_plan_with(uint32_t jobs_count, uint32_t devices, uint32_t optimizer, struct plan *plan)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    test_hardware(&hardware, devices, 1200000, 10e9);
    if (optimizer == PLANNER_PLACE_CPU)
        hardware.host_bandwidth = (struct sourced_value){.value = 2e7, .kind = SOURCE_ASSUMED, .source = "made up"};
    test_gpt_jobs(&jobs, jobs_count, BLOCKS, WIDTH, VOCABULARY, MINIBATCHES);
    const struct planner_options options = {.live = true, .optimizer = optimizer, .activations = PLANNER_AUTO,
                                            .weight_buffers = WEIGHT_BUFFERS, .shards = 4};
    *plan = (struct plan){0};
    if (planner_plan(&hardware, &jobs, &options, plan, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_true(plan->choice_count > 0);
}

static void make_plan(uint32_t jobs_count, uint32_t devices, struct plan *plan)
{
    make_plan_with(jobs_count, devices, PLANNER_PLACE_DEVICE, plan);
}

static void simulate(const struct plan *plan, const struct policy *policy, struct sim_test_outcome *out)
{
    struct error err = {0};
    const struct plan_dispatch_options live = {.policy = policy, .seed = 4};
    const struct sim_options options = {.live = &live, .record_spans = true};
    *out = (struct sim_test_outcome){0};
    if (sim_run(plan, &options, &out->result, &out->trace, &err)) fail_msg("%s", err.text);
    if (trace_check(&out->trace, &err)) fail_msg("%s", err.text);
    assert_int_equal(out->result.operations, plan_operations(plan));
    assert_true(out->result.makespan_s >= plan->lower_bound_s);
}

/* From the first start to the last end of a unit's operations on its device's streams. */
struct visit {
    double start_s, end_s;
    uint32_t job, device;
};

/* Spans are by number, so those of a unit follow each other, and op_index counts within it. */
static uint32_t find_visits(const struct trace *trace, struct visit **out)
{
    struct visit *visits = calloc(trace->span_count, sizeof *visits);
    uint32_t count = 0;
    assert_non_null(visits);
    for (uint64_t i = 0; i < trace->span_count; i++) {
        const struct trace_span *span = &trace->spans[i];
        const struct trace_stream *stream = &trace->streams[span->stream];
        if (span->op_index == 0) visits[count++] = (struct visit){1e300, 0, span->job, PLAN_NONE};
        struct visit *visit = &visits[count - 1];
        if (stream->device == PLAN_NONE) continue;
        assert_true(visit->device == PLAN_NONE || visit->device == stream->device);
        visit->device = stream->device;
        if (span->start_s < visit->start_s) visit->start_s = span->start_s;
        if (span->end_s > visit->end_s) visit->end_s = span->end_s;
    }
    *out = visits;
    return count;
}

static void one_at_a_time(void **state)
{
    (void)state;
    static const struct policy *const policies[] = {&policy_fifo, &policy_sharded_lrtf, &policy_random};
    struct plan plan;
    make_plan(3, DEVICES, &plan);
    for (size_t p = 0; p < ARRAY_COUNT(policies); p++) {
        struct sim_test_outcome outcome;
        struct visit *visits;
        simulate(&plan, policies[p], &outcome);
        uint32_t count = find_visits(&outcome.trace, &visits), devices = 0, overlaps = 0;
        assert_int_equal(count, plan_first_choice(&plan));
        for (uint32_t i = 0; i < count; i++) {
            uint32_t beside = 1;
            devices |= 1u << visits[i].device;
            for (uint32_t k = 0; k < count; k++) {
                bool under_way = k != i && visits[k].start_s <= visits[i].start_s &&
                                 visits[i].start_s < visits[k].end_s;
                if (under_way && visits[k].job == visits[i].job)
                    fail_msg("two units of job %u at a time", visits[i].job);
                beside += under_way && visits[k].device == visits[i].device;
            }
            assert_true(beside <= WEIGHT_BUFFERS);
            overlaps += beside > 1;
        }
        assert_int_equal(devices, 3);
        assert_true(overlaps > 0);
        free(visits);
        sim_test_release(&outcome);
    }
    plan_release(&plan);
}

static void a_job_by_itself(void **state)
{
    (void)state;
    struct plan plan;
    struct sim_test_outcome outcome;
    struct visit *visits;
    double sum_s = 0;
    make_plan(1, 1, &plan);
    simulate(&plan, &policy_fifo, &outcome);
    uint32_t count = find_visits(&outcome.trace, &visits);
    for (uint32_t i = 0; i < count; i++) sum_s += visits[i].end_s - visits[i].start_s;
    SIM_ASSERT_CLOSE(outcome.result.makespan_s, sum_s);
    free(visits);
    sim_test_release(&outcome);
    plan_release(&plan);
}

/* A unit ends with its operations on the device: the job's next unit need not wait for the processor's step, which
 * takes longer here than the unit. So some units begin during a step of an earlier one. */
static void a_unit_ends_before_its_step(void **state)
{
    (void)state;
    struct plan plan;
    struct sim_test_outcome outcome;
    make_plan_with(1, 1, PLANNER_PLACE_CPU, &plan);
    simulate(&plan, &policy_fifo, &outcome);
    const struct trace *trace = &outcome.trace;
    uint32_t during = 0, steps = 0;
    double step_end_s = 0;
    for (uint64_t i = 0; i < trace->span_count; i++) {
        const struct trace_span *span = &trace->spans[i];
        bool host = trace->streams[span->stream].device == PLAN_NONE;
        if (!host) during += span->start_s < step_end_s;
        if (!host || span->end_s <= step_end_s) continue;
        steps++;
        step_end_s = span->end_s;
    }
    assert_true(steps > MINIBATCHES);
    assert_true(during > 0);
    sim_test_release(&outcome);
    plan_release(&plan);
}

/* On one device jobs end in the order in which they were submitted. */
static void first_come_first_served(void **state)
{
    (void)state;
    struct plan plan;
    struct sim_test_outcome outcome;
    make_plan(3, 1, &plan);
    simulate(&plan, &policy_fifo, &outcome);
    for (uint32_t j = 1; j < 3; j++) assert_true(outcome.trace.jobs[j - 1].end_s <= outcome.trace.jobs[j].end_s);
    sim_test_release(&outcome);
    plan_release(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_at_a_time), cmocka_unit_test(a_job_by_itself),
                                       cmocka_unit_test(first_come_first_served),
                                       cmocka_unit_test(a_unit_ends_before_its_step)};
    return cmocka_run_group_tests_name("sim/dispatch.h", tests, NULL, NULL);
}
