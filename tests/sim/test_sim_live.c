/*
 * sim/live/live.h: workload W to the last digit, random instances against a slow simulator, closed forms by
 * hand, and refused inputs.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "base/size.h"
#include "planner/policy/policies.h"
#include "sim/live/live.h"
#include "tests/support/solve/support_instance.h"
#include "tests/support/sim/support_live_reference.h"
#include "tests/support/support_seed.h"

struct outcome {
    struct sim_result result;
    struct trace trace;
};

static void run(const struct instance *in, const struct sim_live_options *options, struct outcome *out)
{
    struct error err = {0};
    *out = (struct outcome){0};
    if (sim_live_run(in, options, &out->result, &out->trace, &err)) fail_msg("%s", err.text);
    if (trace_check(&out->trace, &err)) fail_msg("%s", err.text);
}

static void release(struct outcome *out)
{
    sim_result_release(&out->result);
    trace_release(&out->trace);
}

/* --- workload W -------------------------------------------------------------------------------- */

static double workload_makespan(const struct workload *w, bool published)
{
    struct hardware hw;
    struct instance in;
    struct outcome out;
    workload_machine(w->devices, &hw);
    workload_instance(w, &in);
    double *compute_s = published ? live_reference_compute_s(w) : NULL;
    struct sim_live_options options = {.hardware = &hw, .compute_s = compute_s,
                                       .policy = published ? live_reference_policy(w)
                                                           : policy_find("lrtf-emptiest")};
    run(&in, &options, &out);
    double makespan_s = out.result.makespan_s;
    assert_int_equal(out.result.operations, workload_activities(w));
    release(&out);
    free(compute_s);
    instance_release(&in);
    hardware_release(&hw);
    return makespan_s;
}

/* Sizes of all kinds: an incomplete group, one device, more slots than models. */
static void agrees_with_the_reference(void **state)
{
    (void)state;
    static const struct workload sizes[] = {{1, 1, 1, 1}, {1, 2, 3, 2}, {3, 2, 2, 3}, {4, 8, 4, 3}, {5, 12, 3, 4},
                                            {8, 16, 3, 4}, {9, 40, 5, 3}, {16, 33, 7, 2}, {8, 16, 24, 50},
                                            {64, 256, 24, 2}};
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
        struct live_ref_rounding once = {0}, published = {.twice = true, .sums = true};
        SIM_ASSERT_CLOSE(workload_makespan(&sizes[i], false), live_reference_workload(&sizes[i], once));
        SIM_ASSERT_CLOSE(workload_makespan(&sizes[i], true), live_reference_workload(&sizes[i], published));
    }
}

static void published_small(void **state)
{
    (void)state;
    static const struct workload w = {8, 16, 24, 50};
    assert_true(fabs(live_reference_workload(&w, (struct live_ref_rounding){true, true}) - 872.259540) < 5e-7);
    assert_true(fabs(workload_makespan(&w, true) - 872.259540) < 5e-7);
}

static void published_large(void **state)
{
    (void)state;
    static const struct workload w = {64, 256, 24, 20};
    assert_true(fabs(workload_makespan(&w, true) - 694.725695) < 5e-7);
}

/* Nothing in memory grows with the minibatches. */
static void memory_is_constant(void **state)
{
    (void)state;
    uint64_t bytes[2];
    struct hardware hw;
    workload_machine(8, &hw);
    for (uint32_t i = 0; i < 2; i++) {
        struct workload w = {8, 16, 3, i == 0 ? 1 : 500};
        struct instance in;
        struct outcome out;
        workload_instance(&w, &in);
        run(&in, &(struct sim_live_options){.hardware = &hw, .policy = policy_find("lrtf-emptiest")}, &out);
        bytes[i] = out.result.memory_bytes;
        release(&out);
        instance_release(&in);
    }
    assert_int_equal(bytes[0], bytes[1]);
    hardware_release(&hw);
}

/* --- by hand ----------------------------------------------------------------------------------- */

/*
 * Ticks of a second, copies as in the instance. One device, two slots, jobs a (7, in 3, out 2) and b (5, in
 * 4, out 1), fifo. Both copies in share the link: a's 3 are there at 6, and b's last second, with no other copy, at 7.
 * a computes 6 to 13, copies out to 15; b computes 13 to 18, out to 19.
 */
static void two_jobs_on_one_link(void **state)
{
    (void)state;
    struct instance in;
    struct hardware hw = {0};
    struct error err = {0};
    struct outcome out;
    test_instance("{'spillway_instance': 1, 'tick_s': 1, 'devices': [{'memory': 9}], 'jobs': ["
                  "{'name': 'a', 'units': [{'compute': 7, 'in': 3, 'out': 2, 'writes': true, 'memory': 4}]},"
                  "{'name': 'b', 'units': [{'compute': 5, 'in': 4, 'out': 1, 'writes': true, 'memory': 5}]}]}", &in);
    assert_int_equal(sim_live_machine(&in, &hw, &err), STATUS_OK);
    run(&in, &(struct sim_live_options){.hardware = &hw, .policy = policy_find("fifo"), .timed_copies = true,
                                        .record_spans = true}, &out);
    static const double expected[6][2] = {{0, 6}, {0, 7}, {6, 13}, {13, 15}, {13, 18}, {18, 19}};
    assert_int_equal(out.trace.span_count, 6);
    for (uint32_t i = 0; i < 6; i++) {
        /* numbers are in the order of beginnings: a's in, b's in, a's compute, a's out, b's compute ... */
        const struct trace_span *span = &out.trace.spans[i];
        SIM_ASSERT_NEAR(span->start_s, expected[i][0], 1);
        SIM_ASSERT_NEAR(span->end_s, expected[i][1], 1);
    }
    SIM_ASSERT_CLOSE(out.result.makespan_s, 19);
    SIM_ASSERT_CLOSE(out.result.streams[0].busy_s, 12);
    SIM_ASSERT_CLOSE(out.result.links[0].busy_s, 7 + 2 + 1);
    SIM_ASSERT_CLOSE(out.result.links[0].saturated_s, 7);
    assert_int_equal(out.trace.places[1].peak_bytes, 9);
    release(&out);
    hardware_release(&hw);
    instance_release(&in);
}

/*
 * One job, two units of one shard: the second finds its parameters, 2 + 3 + 5, and 4 to copy out once. With
 * one of another job between them on the device they are copied in again: slots 1, b chosen second.
 */
static void parameters_that_are_there(void **state)
{
    (void)state;
    static const char *const jobs[2] = {
        "{'name': 'a', 'units': [{'compute': 3, 'in': 2}, {'compute': 5, 'in': 2, 'out': 4, 'writes': true, 'shard': "
        "0}]}",
        "{'name': 'a', 'units': [{'compute': 3, 'in': 2}, {'compute': 5, 'in': 2, 'out': 4, 'writes': true, 'shard': "
        "0}]},{'name': 'b', 'units': [{'compute': 1, 'in': 6}]}"};
    static const double expected[2] = {2 + 3 + 5 + 4, 2 + 3 + 6 + 1 + 2 + 5 + 4};
    for (int i = 0; i < 2; i++) {
        struct instance in;
        struct hardware hw = {0};
        struct error err = {0};
        struct outcome out;
        char text[512];
        snprintf(text, sizeof text, "{'spillway_instance': 1, 'tick_s': 1, 'devices': [{'memory': 1, 'slots': 1}],"
                 " 'jobs': [%s]}", jobs[i]);
        test_instance(text, &in);
        assert_int_equal(sim_live_machine(&in, &hw, &err), STATUS_OK);
        run(&in, &(struct sim_live_options){.hardware = &hw, .policy = policy_find("fifo"), .timed_copies = true},
            &out);
        SIM_ASSERT_CLOSE(out.result.makespan_s, expected[i]);
        release(&out);
        hardware_release(&hw);
        instance_release(&in);
    }
}

/* --- random machines and instances --------------------------------------------------------------- */

static uint32_t draw(uint64_t seed, uint64_t *counter, uint32_t low, uint32_t high)
{
    return low + (uint32_t)random_below(seed, (*counter)++, high - low + 1u);
}

/* Groups behind links of their own, and sometimes all behind one more. */
static void random_machine(uint64_t seed, struct hardware *out)
{
    uint64_t c = 0;
    uint32_t devices = draw(seed, &c, 1, 6), group = draw(seed, &c, 1, 4), top = UINT32_MAX, middle = 0;
    sim_test_machine(out, "cuda", devices);
    if (draw(seed, &c, 0, 2) == 0) top = sim_test_link(out, 1e6 * draw(seed, &c, 11, 90), 0, draw(seed, &c, 0, 1));
    for (uint32_t d = 0; d < devices; d++) {
        if (d % group == 0) middle = sim_test_link(out, 1e6 * draw(seed, &c, 11, 60), 0, draw(seed, &c, 0, 1));
        double latency_s = draw(seed, &c, 0, 1) ? 1e-3 * draw(seed, &c, 1, 40) : 0;
        uint32_t own = sim_test_link(out, 1e6 * draw(seed, &c, 7, 40), latency_s, draw(seed, &c, 0, 2) > 0);
        if (top != UINT32_MAX) sim_test_connect(out, d, top);
        sim_test_connect(out, d, middle);
        if (draw(seed, &c, 0, 4) > 0) sim_test_connect(out, d, own);
    }
}

static void random_instance(uint64_t seed, uint32_t devices, struct instance *out)
{
    struct error err = {0};
    uint64_t c = 0;
    uint32_t jobs = draw(seed, &c, 1, 7), classes = devices > 1 ? draw(seed, &c, 1, 2) : 1,
        slots = draw(seed, &c, 1, 3);
    *out = (struct instance){.tick_s = 1e-3};
    assert_int_equal(instance_init(out, classes, jobs, 5 * jobs, &err), STATUS_OK);
    for (uint32_t k = 0; k < classes; k++)
        out->classes[k] = (struct instance_class){
            .name = "device", .device_count = k == 0 ? devices - (classes - 1) : 1, .memory = k == 0 ? 20 : 12,
            .slots = k == 0 ? slots : draw(seed, &c, 1, 3)};
    out->unit_count = 0;
    for (uint32_t j = 0; j < jobs; j++) {
        uint32_t units = draw(seed, &c, 1, 5), first = out->unit_count;
        out->jobs[j] = (struct instance_job){.name = "job", .first_unit = first, .unit_count = units,
                                             .repeat = draw(seed, &c, 1, 4), .weight = 1,
                                             .deadline = INSTANCE_HORIZON_MAX};
        for (uint32_t u = first; u < first + units; u++, out->unit_count++) {
            bool writes = draw(seed, &c, 0, 2) > 0;
            out->units[u] = (struct instance_unit){
                .memory = draw(seed, &c, 1, 12), .in_bytes = draw(seed, &c, 0, 5) ? draw(seed, &c, 1, 9000000) : 0,
                .out_bytes = writes && draw(seed, &c, 0, 5) ? draw(seed, &c, 1, 9000000) : 0, .job = j,
                .shard = draw(seed, &c, 0, 2), .writes = writes};
            for (uint32_t k = 0; k < classes; k++) out->compute[(size_t)u * classes + k] = draw(seed, &c, 1, 900);
        }
    }
    if (instance_finish(out, &err)) fail_msg("%s", err.text);
}

static void assert_same_use(const struct outcome *out, const struct live_ref *ref, const struct hardware *hw,
                            uint32_t slots)
{
    double span_s = ref->makespan_s;
    for (uint32_t l = 0; l < hw->link_count; l++) {
        const struct sim_link_use *use = &out->result.links[l];
        SIM_ASSERT_NEAR(use->busy_s, ref->link_busy_s[l], span_s);
        SIM_ASSERT_NEAR(use->saturated_s, fmax(ref->link_dir_full_s[2 * l], ref->link_dir_full_s[2 * l + 1]), span_s);
        for (uint32_t k = 0; k < 2; k++) SIM_ASSERT_NEAR(use->bytes[k], ref->link_bytes[l][k], 1);
    }
    for (uint32_t d = 0; d < hw->device_count; d++)
        SIM_ASSERT_NEAR(out->result.streams[d * (1 + 2 * slots)].busy_s, ref->compute_busy_s[d], span_s);
}

static void assert_same_run(const struct outcome *a, const struct outcome *b)
{
    assert_memory_equal(&a->result.makespan_s, &b->result.makespan_s, sizeof(double));
    assert_int_equal(a->trace.span_count, b->trace.span_count);
    assert_memory_equal(a->trace.spans, b->trace.spans, a->trace.span_count * sizeof *a->trace.spans);
}

/* Returns how many runs have a last bit that decides who is first, so that the reference may go another way. */
static uint32_t random_case(uint64_t seed)
{
    static const struct {
        const char *name;
        enum live_ref_rule rule;
    } policies[] = {{"sharded-lrtf", LIVE_REF_LRTF}, {"lrtf-emptiest", LIVE_REF_LRTF_EMPTIEST},
                    {"srtf", LIVE_REF_SRTF}, {"fifo", LIVE_REF_FIFO}};
    struct hardware hw;
    struct instance in;
    uint32_t unclear = 0;
    random_machine(random_mix(seed), &hw);
    random_instance(random_mix(seed + 1), hw.device_count, &in);
    uint32_t slots = 1;
    for (uint32_t c = 0; c < in.class_count; c++) slots = in.classes[c].slots > slots ? in.classes[c].slots : slots;
    for (size_t p = 0; p < ARRAY_COUNT(policies); p++) {
        struct live_ref ref;
        struct outcome out, again, scanned;
        struct sim_live_options options = {
            .hardware = &hw, .policy = policy_find(policies[p].name), .record_spans = true};
        live_reference_run(&in, &hw, policies[p].rule, &ref);
        run(&in, &options, &out);
        run(&in, &options, &again);
        options.scan = true;
        run(&in, &options, &scanned);
        assert_int_equal(ref.units, in.task_count);
        unclear += ref.unclear;
        if (!ref.unclear) {
            SIM_ASSERT_CLOSE(out.result.makespan_s, ref.makespan_s);
            assert_same_use(&out, &ref, &hw, slots);
        }
        assert_same_run(&out, &again);
        assert_same_run(&out, &scanned);
        release(&out);
        release(&again);
        release(&scanned);
    }
    instance_release(&in);
    hardware_release(&hw);
    return unclear;
}

static void random_cases(void **state)
{
    (void)state;
    uint64_t seed = support_seed("sim/live/live.h");
    uint32_t unclear = 0;
    for (uint64_t i = 0; i < 1000; i++) unclear += random_case(seed + 2 * i);
    assert_true(unclear < 40); /* of 4000 */
}

/* --- slower during copies ------------------------------------------------------------------------ */

/* compute_by_copy 0.5, one copy at 0.8 of the reference rate: a computes 4 s during b's copy in of 6 s, at
 * 1 / 1.4, and is done after 4 * 1.4 = 5.6. (a has no copy in.) b computes 2 more from 6 on. */
static void computing_is_slowed(void **state)
{
    (void)state;
    struct instance in;
    struct hardware hw;
    struct outcome out;
    sim_test_machine(&hw, "cuda", 1);
    sim_test_connect(&hw, 0, sim_test_link(&hw, 8e6, 0, true));
    sim_test_interfere(&hw, 0, (struct sim_test_law){.compute_by_copy = 0.5, .reference = 10e6});
    test_instance("{'spillway_instance': 1, 'tick_s': 1, 'devices': [{'memory': 9}], 'jobs': ["
                  "{'name': 'a', 'units': [{'compute': 4}]},"
                  "{'name': 'b', 'units': [{'compute': 2, 'in': 6, 'in_bytes': 48000000}]}]}", &in);
    run(&in, &(struct sim_live_options){.hardware = &hw, .policy = policy_find("fifo")}, &out);
    SIM_ASSERT_CLOSE(out.result.streams[0].busy_s, 5.6 + 2);
    SIM_ASSERT_CLOSE(out.result.makespan_s, 8);
    release(&out);
    instance_release(&in);
    hardware_release(&hw);
}

/* --- refused inputs ------------------------------------------------------------------------------ */

static bool wait_for_ever(void *state, const struct policy_view *view, struct policy_choice *out)
{
    (void)state;
    (void)view;
    (void)out;
    return false;
}

static bool choose_absent(void *state, const struct policy_view *view, struct policy_choice *out)
{
    (void)state;
    *out = (struct policy_choice){view->job_count, 0};
    return true;
}

static double no_number(void *state, const struct policy_view *view, uint32_t job)
{
    (void)state;
    (void)view;
    return job == 0 ? NAN : 1;
}

static const struct policy waits = {.version = SPILLWAY_POLICY_VERSION, .name = "waits", .choose = wait_for_ever};
static const struct policy absent = {.version = SPILLWAY_POLICY_VERSION, .name = "absent", .choose = choose_absent};
static const struct policy nan_rank = {.version = SPILLWAY_POLICY_VERSION, .name = "nan", .rank = no_number};

#define TWO_DEVICES \
    "{'spillway_instance': 1, 'devices': [{'count': 2, 'memory': 9}], 'jobs': [{'name': 'a', 'units': [{'compute': 1"

static void refuses(void **state)
{
    (void)state;
    static const struct {
        const char *instance;
        const struct policy *policy;
        const char *policy_name, *message;
        enum status status;
    } cases[] = {
        {TWO_DEVICES "}]}]}", NULL, "fifo", "machine 'made-up' has 1 devices, but the instance has 2",
         STATUS_BAD_INPUT},
        {TWO_DEVICES ", 'in': 7}]}]}", NULL, "fifo",
         "job 'a', unit 0: copies for 7 ticks, but says no 'in_bytes' (a machine with links needs the bytes)",
         STATUS_BAD_INPUT},
        {TWO_DEVICES "}]}]}", NULL, "shard-parallel",
         "policy 'shard-parallel' keeps states on devices, which instances know nothing of", STATUS_INFEASIBLE},
        {TWO_DEVICES "}]}]}", NULL, "optimal", "policy 'optimal' is a search and cannot decide live",
         STATUS_INFEASIBLE},
        {TWO_DEVICES "}]}]}", &waits, NULL,
         "policy 'waits', decision 1 at 0: waits although nothing runs that could end, so this would never be done",
         STATUS_BAD_INPUT},
        {TWO_DEVICES "}]}]}", &absent, NULL, "policy 'absent', decision 1 at 0: returned job 1 (there are 1, from 0)",
         STATUS_BAD_INPUT},
        {TWO_DEVICES "}]}]}", &nan_rank, NULL, "policy 'nan': the rank of job 0 is not a number", STATUS_BAD_INPUT},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct instance in;
        struct hardware hw;
        struct sim_result result = {0};
        struct trace trace = {0};
        struct error err = {0};
        test_instance(cases[i].instance, &in);
        sim_test_machine(&hw, "cuda", i == 0 ? 1 : 2);
        struct sim_live_options options = {
            .hardware = &hw, .policy = cases[i].policy ? cases[i].policy : policy_find(cases[i].policy_name)};
        assert_int_equal(sim_live_run(&in, &options, &result, &trace, &err), cases[i].status);
        assert_string_equal(err.text, cases[i].message);
        sim_result_release(&result);
        trace_release(&trace);
        hardware_release(&hw);
        instance_release(&in);
    }
}

static void refuses_a_bridge_alone(void **state)
{
    (void)state;
    struct instance in;
    struct hardware hw = {0};
    struct error err = {0};
    test_instance("{'spillway_instance': 1, 'bridge_bytes_per_tick': 3, 'devices': [{'memory': 9}], 'jobs': ["
                  "{'name': 'a', 'units': [{'compute': 4}]}]}", &in);
    assert_int_equal(sim_live_machine(&in, &hw, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "the instance's devices share a bridge of 3 bytes per tick, but nothing says how "
                                  "fast their own links are: name a machine with both");
    hardware_release(&hw);
    instance_release(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_reference), cmocka_unit_test(published_small),
        cmocka_unit_test(published_large),           cmocka_unit_test(memory_is_constant),
        cmocka_unit_test(two_jobs_on_one_link),      cmocka_unit_test(parameters_that_are_there),
        cmocka_unit_test(random_cases),              cmocka_unit_test(computing_is_slowed),
        cmocka_unit_test(refuses),                   cmocka_unit_test(refuses_a_bridge_alone),
    };
    return cmocka_run_group_tests_name("sim/live/live.h", tests, NULL, NULL);
}
