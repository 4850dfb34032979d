/*
 * Plans of pipelines that are carried out (label: fast): data, losses and copies of states are in them, buffers have
 * the executor's sizes, each replica brings its share of the data, and evaluations bring held-out data. The judge
 * misses nothing that is left out, late or too small.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/size.h"
#include "models/job/chunk_memory.h"
#include "sim/sim.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/planner/support_parallel_variants.h"

static void copies(void **state)
{
    (void)state;
    for (uint32_t stages = 2; stages <= 4; stages++) {
        struct plan plan;
        test_parallel_variant(&plan, VARIANT_PLAIN + stages);
        const struct job *job = &plan.jobs.jobs[0];
        uint64_t states = 0;
        for (uint32_t c = 0; c < parallel_chunks(&job->parallel); c++)
            states += chunk_memory(job, parallel_layers(job, c)).state_bytes;
        assert_int_equal(test_parallel_copied(&plan, STREAM_H2D, BUFFER_STATE), states);
        assert_int_equal(test_parallel_copied(&plan, STREAM_D2H, BUFFER_STATE), states);
        assert_int_equal(test_parallel_copied(&plan, STREAM_H2D, BUFFER_BATCH),
                         2 * VARIANT_MINIBATCHES * job_batch_bytes(job));
        assert_int_equal(test_parallel_copied(&plan, STREAM_D2H, BUFFER_LOSS), VARIANT_MINIBATCHES * sizeof(double));
        plan_release(&plan);
    }
}

/* The last chunk has a table of its own, with moments. */
static void tables(void **state)
{
    (void)state;
    for (uint32_t stages = 2; stages <= 4; stages++) {
        struct plan plan;
        test_parallel_variant(&plan, VARIANT_PLAIN + stages);
        const struct job *job = &plan.jobs.jobs[0];
        const uint32_t chunks = parallel_chunks(&job->parallel);
        const struct chunk_memory first = chunk_memory(job, parallel_layers(job, 0)),
                                  last = chunk_memory(job, parallel_layers(job, chunks - 1));
        const uint64_t table = job->network.vocabulary * job->network.width * sizeof(float);
        const struct parallel_layers layers = parallel_layers(job, chunks - 1);
        const uint64_t own = size_align(job_state(job, layers.first, layers.count).bytes, MEMORY_ALIGNMENT);
        const uint64_t parts = 1 + optimizer_moments(job->optimizer.kind);
        assert_int_equal(last.state_bytes - own, size_align(parts * table, MEMORY_ALIGNMENT));
        assert_int_equal(last.gradient_bytes,
                         size_align(memory_parameter_bytes(&job->network, layers.first, layers.count),
                                    MEMORY_ALIGNMENT) +
                             size_align(table, MEMORY_ALIGNMENT));
        assert_true(first.has_embedding && last.has_head);
        plan_release(&plan);
    }
}

/* The held-out data come to both ends once per held-out minibatch, and each of its losses leaves once. */
static void held_out(void **state)
{
    (void)state;
    const uint64_t evaluations = 2, minibatches = VARIANT_MINIBATCHES + evaluations * 2;
    for (uint32_t stages = 2; stages <= 4; stages++) {
        struct plan plan;
        test_parallel_variant(&plan, VARIANT_HELD_OUT + stages);
        assert_int_equal(test_parallel_copied(&plan, STREAM_H2D, BUFFER_BATCH),
                         2 * minibatches * job_batch_bytes(&plan.jobs.jobs[0]));
        assert_int_equal(test_parallel_copied(&plan, STREAM_D2H, BUFFER_LOSS), minibatches * sizeof(double));
        plan_release(&plan);
    }
}

/* Each replica brings its own half of a minibatch. */
static void replicas(void **state)
{
    (void)state;
    struct plan plan;
    test_parallel_variant(&plan, VARIANT_PLAIN + 12);
    const struct plan_buffer *on_host = test_parallel_buffer(&plan, BUFFER_BATCH, PLAN_NONE, false);
    const uint64_t half = job_batch_bytes(&plan.jobs.jobs[0]) / 2;
    assert_int_equal(test_parallel_buffer(&plan, BUFFER_BATCH, PLAN_NONE, true)->bytes, half);
    assert_int_equal(on_host->bytes * plan_buffer_ranks(&plan, on_host), 2 * half);
    assert_int_equal(test_parallel_copied(&plan, STREAM_H2D, BUFFER_BATCH), 2 * VARIANT_MINIBATCHES * half);
    plan_release(&plan);
}

/* Timed as planned, without charges for states beside their copies: the first copy begins at 0, and the last ends the
 * run. */
static void simulated(void **state)
{
    (void)state;
    for (uint32_t stages = 2; stages <= 4; stages++) {
        struct plan plan;
        struct sim_result result = {0};
        struct trace trace = {0};
        struct error err = {0};
        test_parallel_variant(&plan, VARIANT_PLAIN + stages);
        const struct sim_options options = {.record_spans = true};
        if (sim_run(&plan, &options, &result, &trace, &err)) fail_msg("%s", err.text);
        double last_s = 0;
        for (uint64_t i = 0; i < trace.span_count; i++) {
            const struct trace_span *span = &trace.spans[i];
            if (span->pass != PLAN_LOAD && span->pass != PLAN_STORE) continue;
            if (span->kind == OP_COMPUTE) assert_true(span->end_s <= span->start_s);
            if (span->pass == PLAN_STORE && span->end_s > last_s) last_s = span->end_s;
        }
        test_parallel_near(result.makespan_s, last_s);
        sim_result_release(&result);
        trace_release(&trace);
        plan_release(&plan);
    }
}

/* --- broken plans ---------------------------------------------------------------------------- */

static void data_short(struct plan *p) { test_parallel_op(p, PLAN_BATCH, 0, OP_COPY)->bytes -= 4; }
static void labels_short(struct plan *p) { test_parallel_op(p, PLAN_BATCH, 1, OP_COPY)->bytes -= 4; }
static void data_elsewhere(struct plan *p)
{
    test_parallel_swap_places(test_parallel_task(p, PLAN_BATCH, 0, 0), test_parallel_task(p, PLAN_BATCH, 1, 0));
}
static void data_small(struct plan *p) { test_parallel_buffer(p, BUFFER_BATCH, PLAN_NONE, true)->bytes -= 4; }
static void data_unused(struct plan *p)
{
    struct plan_op *op = test_parallel_op(p, PLAN_FORWARD, 0, OP_COMPUTE);
    test_parallel_access(p, op, BUFFER_BATCH)->buffer =
        (uint32_t)(test_parallel_buffer(p, BUFFER_LOSS, PLAN_NONE, true) - p->buffers);
}
static void loss_read(struct plan *p)
{
    test_parallel_access(p, test_parallel_op(p, PLAN_BACKWARD, 1, OP_COMPUTE), BUFFER_LOSS)->flags = ACCESS_READ;
}
static void state_lost(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_STORE, 1, 0), test_parallel_task(p, PLAN_UPDATE, 1, 0));
}
static void gradient_small(struct plan *p) { test_parallel_buffer(p, BUFFER_GRADIENT, 1, true)->bytes -= 64; }
static void not_reduced(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_REDUCE, 1, 0), test_parallel_task(p, PLAN_JOIN, 0, 0));
}
static void one_more(struct plan *p) { p->segments[p->segment_count - 2].repeat_count++; }
static void a_billion(struct plan *p) { p->segments[p->segment_count - 2].repeat_count = 1000000000; }
static void held_out_early(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_EVALUATE, 0, 0), test_parallel_task(p, PLAN_UPDATE, 0, 1));
}
static void held_out_short(struct plan *p) { test_parallel_op(p, PLAN_EVALUATE, 0, OP_COPY)->bytes -= 4; }
static void held_out_not_read(struct plan *p)
{
    test_parallel_op(p, PLAN_EVALUATE, 0, OP_COMPUTE)->pass = PLAN_EVALUATE;
}
static void held_out_out_of_turn(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_EVALUATE, 1, 0), test_parallel_task(p, PLAN_EVALUATE, 1, 1));
}
static void held_out_trains(struct plan *p)
{
    for (uint32_t u = 0; u < p->unit_count; u++)
        if (p->units[u].pass == PLAN_EVALUATE && p->units[u].shard == 0) p->units[u].pass = PLAN_FORWARD;
}

static void broken(void **state)
{
    (void)state;
    static const struct test_parallel_damage cases[] = {
        {damage_data_late, VARIANT_PLAIN + 2, "reads unwritten bytes of the batch"},
        {labels_short, VARIANT_PLAIN + 2, "work: copies 540 bytes of the batch (expected 544 of the batch)"},
        {data_short, VARIANT_PLAIN + 2, "work: copies 540 bytes of the batch (expected 544 of the batch)"},
        {data_elsewhere, VARIANT_PLAIN + 2, "is not on the devices of stage 0"},
        {data_small, VARIANT_PLAIN + 2, "the batch of job-0 has 540 bytes (expected 544)"},
        {data_unused, VARIANT_PLAIN + 2, "form: has no use for the loss of job-0"},
        {damage_loss_short, VARIANT_PLAIN + 2, "work: copies 4 bytes of the loss (expected 8 of the loss)"},
        {loss_read, VARIANT_PLAIN + 2, "form: only reads the loss of job-0"},
        {damage_loss_elsewhere, VARIANT_PLAIN + 2, "form: a copy on the h2d stream"},
        {damage_state_short, VARIANT_PLAIN + 2, "of the state (expected"},
        {damage_state_small, VARIANT_PLAIN + 2, "state of job-0 shard 1 on the host has"},
        {state_lost, VARIANT_PLAIN + 2, "job-0 shard 1"},
        {damage_workspace_small, VARIANT_PLAIN + 2, "memory: the workspace of job-0 shard 1"},
        {gradient_small, VARIANT_PLAIN + 2, "memory: the gradient of job-0 shard 1"},
        {damage_reduced_short, VARIANT_PLAIN + 12, "0 times all-reduce of"},
        {not_reduced, VARIANT_PLAIN + 12, "(expected reduced gradient of job-0 shard 0, microbatch 2)"},
        {damage_data_late, VARIANT_PLAIN + 12, "reads unwritten bytes of the batch"},
        {damage_loss_elsewhere, VARIANT_PLAIN + 12, "form: a copy on the h2d stream"},
        {one_more, VARIANT_PLAIN + 2, "job-0 shard 0 has more than the 12 forward and backward passes and 3 updates "
                                      "of its minibatches"},
        {a_billion, VARIANT_PLAIN + 2, "job-0 shard 0 has more than the 12 forward and backward passes and 3 updates "
                                       "of its minibatches"},
        {one_more, VARIANT_HELD_OUT + 2, "job-0"},
        {held_out_early, VARIANT_HELD_OUT + 2, "training: no evaluation of minibatch"},
        {held_out_short, VARIANT_HELD_OUT + 2, "copies 540 bytes of the batch in an evaluation"},
        {held_out_not_read, VARIANT_HELD_OUT + 2, "form: a computation on the host stream"},
        {held_out_out_of_turn, VARIANT_HELD_OUT + 3, "job-0 shard 1"},
        {damage_held_out_loss_lost, VARIANT_HELD_OUT + 12, "copies 4 bytes of the loss in an evaluation"},
        {held_out_trains, VARIANT_HELD_OUT + 2, "form: a copy on the h2d stream"},
        {damage_held_out_ends_late, VARIANT_HELD_OUT + 12, "does not end the minibatch"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), test_parallel_variant);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies),
        cmocka_unit_test(tables),
        cmocka_unit_test(held_out),
        cmocka_unit_test(replicas),
        cmocka_unit_test(broken),
        cmocka_unit_test(simulated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
