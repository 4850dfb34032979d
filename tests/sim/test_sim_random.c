/*
 * sim/sim.h against the second simulator of support_sim_reference.h: random plans on random machines
 * must have the same start and end of every operation, the same use of links and the same peaks of
 * memory. Then what must hold for any simulator: bounds, equal bytes, indifference to numbering.
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
#include "tests/support/planner/support_random_plan.h"
#include "tests/support/sim/support_chakra.h"
#include "tests/support/sim/support_sim.h"
#include "tests/support/sim/support_sim_reference.h"
#include "tests/support/sim/support_traces.h"
#include "tests/support/support_seed.h"

/* --- comparing ------------------------------------------------------------------------------ */

/* Returns the most bytes in use on a device. Of changes within 1e-9 of each other, releases or acquires come first. */
static uint64_t reference_peak(const struct reference *r, uint32_t device, bool releases_first)
{
    double slack_s = 1e-9 * r->now_s * (releases_first ? -1 : 1);
    uint64_t peak = 0;
    for (uint32_t l = 1; l < r->lifetime_count; l++) { /* when lifetime l begins */
        if (r->lifetimes[l].device != device) continue;
        double begin_s = r->ops[r->lifetimes[l].acquired_by].start_s;
        uint64_t in_use = 0;
        for (uint32_t m = 1; m < r->lifetime_count; m++) {
            if (r->lifetimes[m].device != device) continue;
            double from_s = r->ops[r->lifetimes[m].acquired_by].start_s, to_s = 0;
            for (uint32_t o = 0; o < r->count; o++)
                for (uint32_t i = 0; i < r->ops[o].op->access_count; i++)
                    if (r->ops[o].lifetime[i] == m) to_s = fmax(to_s, r->ops[o].end_s);
            if (m == l || (from_s <= begin_s + slack_s && to_s >= begin_s - slack_s))
                in_use += r->plan->buffers[r->lifetimes[m].buffer].bytes;
        }
        if (in_use > peak) peak = in_use;
    }
    return peak;
}

static void compare(const struct reference *r, const struct sim_test_outcome *outcome)
{
    const struct hardware *hardware = &r->plan->hardware;
    double scale = r->now_s;
    assert_int_equal(outcome->trace.span_count, r->count);
    for (uint32_t o = 0; o < r->count; o++) {
        SIM_ASSERT_NEAR(outcome->trace.spans[o].start_s, r->ops[o].start_s, scale);
        SIM_ASSERT_NEAR(outcome->trace.spans[o].end_s, r->ops[o].end_s, scale);
        assert_int_equal(outcome->trace.spans[o].stream, r->ops[o].stream);
    }
    SIM_ASSERT_CLOSE(outcome->result.makespan_s, r->now_s);
    for (uint32_t s = 0; s < plan_stream_count(r->plan); s++)
        SIM_ASSERT_NEAR(outcome->result.streams[s].busy_s, r->stream_busy_s[s], scale);
    for (uint32_t l = 0; l < hardware->link_count + hardware_has_storage(hardware); l++) {
        const struct sim_link_use *link = &outcome->result.links[l];
        SIM_ASSERT_NEAR(link->busy_s, r->link_busy_s[l], scale);
        SIM_ASSERT_NEAR(link->saturated_s, fmax(r->link_dir_full_s[2 * l], r->link_dir_full_s[2 * l + 1]),
                        scale);
        SIM_ASSERT_CLOSE(link->bytes[0], r->link_bytes[2 * l]);
        SIM_ASSERT_CLOSE(link->bytes[1], r->link_bytes[2 * l + 1]);
    }
    for (uint32_t d = 0; d < hardware->device_count; d++) {
        uint64_t peak = outcome->trace.places[1 + d].peak_bytes;
        assert_true(peak >= reference_peak(r, d, true));
        assert_true(peak <= reference_peak(r, d, false));
    }
}

/* Critical path, busiest stream, busiest link: none can be beaten. */
static void assert_bounds(const struct reference *r, double makespan_s)
{
    static double ready_s[REF_OPS_MAX];
    double stream_s[REF_DEVICES_MAX * STREAM_HOST + 4] = {0}, link_dir_s[REF_LINK_DIRS_MAX] = {0};
    double most_s = makespan_s * (1 + 1e-9);
    for (uint32_t b = 0; b < r->count; b++) {
        const struct ref_op *op = &r->ops[b];
        ready_s[b] = 0;
        for (uint32_t a = 0; a < b; a++)
            if (r->waits[b][a]) ready_s[b] = fmax(ready_s[b], ready_s[a]);
        ready_s[b] += op->alone_s;
        assert_true(ready_s[b] <= most_s);
        stream_s[op->stream] += op->alone_s;
        if (op->op->kind != OP_COPY) continue;
        const struct sim_path *path = &r->paths[sim_reference_path(op)];
        for (uint32_t h = 0; h < path->hop_count; h++) {
            uint32_t link_dir = sim_link_dir(r->links, &path->hops[h]);
            link_dir_s[link_dir] += op->volume / r->links[link_dir / 2].bytes_per_s;
        }
    }
    for (uint32_t s = 0; s < ARRAY_COUNT(stream_s); s++) assert_true(stream_s[s] <= most_s);
    for (uint32_t l = 0; l < REF_LINK_DIRS_MAX; l++) assert_true(link_dir_s[l] <= most_s);
}

/* Small plans first: the first one to fail is near the smallest. */
static struct random_plan_shape shape_of(uint64_t seed, uint32_t round)
{
    return (struct random_plan_shape){
        .key = random_mix(seed) + round, .tasks = 1 + round / 8, .repeats = 1 + round % 3};
}

static void test_against_the_reference(void **state)
{
    (void)state;
    static struct reference reference;
    uint64_t seed = support_seed("sim/sim.h"), fetches = 0;
    for (uint32_t round = 0; round < 400; round++) {
        struct random_plan_shape shape = shape_of(seed, round);
        struct plan plan = {0};
        struct sim_test_outcome outcome;
        fetches += random_plan(&shape, &plan);
        sim_reference_run(&plan, &reference);
        sim_test_simulate(&plan, &outcome);
        if (outcome.trace.span_count != reference.count ||
            fabs(outcome.result.makespan_s - reference.now_s) > 1e-9 * reference.now_s)
            print_error("round %u: %u tasks, %u times\n", round, shape.tasks,
                        shape.repeats);
        compare(&reference, &outcome);
        assert_bounds(&reference, outcome.result.makespan_s);
        if (round % 4 == 0) /* as execution traces it takes as long, whatever shares links or slows */
            SIM_ASSERT_CLOSE(test_chakra_there_and_back(&plan), outcome.result.makespan_s);
        sim_test_release(&outcome);
        plan_release(&plan);
    }
    print_message("%llu copies between devices\n", (unsigned long long)fetches);
    assert_true(fetches > 100);
}

/* --- same bytes, same makespan -------------------------------------------------------------- */

static char *written(const struct trace *trace, const char *name, size_t *length)
{
    struct error err = {0};
    const char *path = support_path(name);
    if (trace_write(trace, path, &err) != STATUS_OK) fail_msg("%s", err.text);
    return support_slurp(path, length);
}

/* A trace that is written during the simulation equals one from memory. */
static void test_a_writer_gets_what_is_kept_in_memory(void **state)
{
    (void)state;
    uint64_t seed = support_seed("sim/sim.h");
    for (uint32_t round = 0; round < 60; round++) {
        struct random_plan_shape shape = shape_of(seed, 5 * round);
        struct plan plan = {0};
        struct sim_test_outcome outcome;
        struct sim_options options = {0};
        struct sim_result result = {0};
        struct trace trace = {0};
        struct error err = {0};
        size_t lengths[2];
        char *texts[2];
        random_plan(&shape, &plan);
        sim_test_simulate(&plan, &outcome);
        texts[0] = written(&outcome.trace, "memory.json", &lengths[0]);
        if (trace_writer_create(support_path("stream.json"), &options.writer, &err) ||
            sim_run(&plan, &options, &result, &trace, &err) || trace_writer_commit(options.writer, &trace, &err))
            fail_msg("%s", err.text);
        assert_int_equal(trace.span_count, 0);
        texts[1] = support_slurp(support_path("stream.json"), &lengths[1]);
        assert_int_equal(lengths[0], lengths[1]);
        assert_memory_equal(texts[0], texts[1], lengths[0]);
        free(texts[0]);
        free(texts[1]);
        sim_result_release(&result);
        trace_release(&trace);
        sim_test_release(&outcome);
        plan_release(&plan);
    }
    support_clean();
}

static void test_two_runs_give_the_same_bytes(void **state)
{
    (void)state;
    uint64_t seed = support_seed("sim/sim.h");
    for (uint32_t round = 0; round < 30; round++) {
        struct random_plan_shape shape = shape_of(seed, 5 * round);
        struct plan plan = {0};
        char *texts[2];
        size_t lengths[2];
        random_plan(&shape, &plan);
        for (uint32_t i = 0; i < 2; i++) {
            struct sim_test_outcome outcome;
            sim_test_simulate(&plan, &outcome);
            texts[i] = written(&outcome.trace, "trace.json", &lengths[i]);
            sim_test_release(&outcome);
        }
        assert_int_equal(lengths[0], lengths[1]);
        assert_memory_equal(texts[0], texts[1], lengths[0]);
        free(texts[0]);
        free(texts[1]);
        plan_release(&plan);
    }
    support_clean();
}

static void test_device_numbers_mean_nothing(void **state)
{
    (void)state;
    uint64_t seed = support_seed("sim/sim.h");
    for (uint32_t round = 0; round < 100; round++) {
        double makespan_s[2];
        for (uint32_t turned = 0; turned < 2; turned++) {
            struct random_plan_shape shape = shape_of(seed, 3 * round);
            struct plan plan = {0};
            struct sim_test_outcome outcome;
            shape.turned = turned;
            random_plan(&shape, &plan);
            sim_test_simulate(&plan, &outcome);
            makespan_s[turned] = outcome.result.makespan_s;
            sim_test_release(&outcome);
            plan_release(&plan);
        }
        SIM_ASSERT_CLOSE(makespan_s[1], makespan_s[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_the_reference),
        cmocka_unit_test(test_a_writer_gets_what_is_kept_in_memory),
        cmocka_unit_test(test_two_runs_give_the_same_bytes),
        cmocka_unit_test(test_device_numbers_mean_nothing),
    };
    return cmocka_run_group_tests_name("sim/sim.h, random plans", tests, NULL, NULL);
}
