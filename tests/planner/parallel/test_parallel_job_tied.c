/*
 * A tied table's gradients, summed between the first and the last stage (label: fast): by a closed form, where plans
 * have the sum and where they leave it out, broken plans.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "base/size.h"
#include "models/job/parallel_memory.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_parallel_plan.h"

static void make_plan(struct parallel parallel, bool tied, double rate, double latency_s, struct plan *out)
{
    struct hardware hardware;
    struct job_set jobs;
    *out = (struct plan){0};
    test_parallel_machine(&hardware, (uint32_t)parallel_devices(&parallel), rate, latency_s);
    test_gpt_jobs(&jobs, 1, 8, 64, 256, 1);
    struct job *job = &jobs.jobs[0];
    job->network.heads = 4;
    job->network.head_width = 16;
    job->network.tied_head = tied;
    job->microbatches = 4 * parallel.data;
    for (uint32_t s = 0; s < parallel.replicated; s++) job->microbatches += parallel.replicas[s];
    job->parallel = parallel;
    test_parallel_plan(&hardware, &jobs, out);
}

static double step_s(struct parallel parallel, bool tied, double rate, double latency_s)
{
    struct plan plan;
    make_plan(parallel, tied, rate, latency_s, &plan);
    double makespan_s = test_parallel_simulate(&plan, false).makespan_s;
    test_parallel_near(test_parallel_simulate(&plan, true).makespan_s, makespan_s);
    plan_release(&plan);
    return makespan_s;
}

/* A separate table has the same parameters and the same work. The first stage ends last: after its last backward
 * pass, and the sum over replicas, nothing hides the all-reduce of two, which sends b / 2 bytes twice, each over two
 * links. */
static void exposed(void **state)
{
    (void)state;
    const double rate = 1e8, latency_s = 1e-6;
    for (uint32_t stages = 2; stages <= 4; stages++)
        for (uint32_t data = 1; data <= 2; data++) {
            struct parallel p = {.tensor = 1, .pipeline = stages, .data = data, .chunks = 1,
                                 .schedule = PIPELINE_1F1B, .prefetch = 1};
            double bytes = 256.0 * 64 * sizeof(float);
            test_parallel_near(step_s(p, true, rate, latency_s),
                               step_s(p, false, rate, latency_s) + 2 * (2 * latency_s + bytes / 2 / rate));
        }
}

/* Each rank of a tensor group has half of the table, and sends it to its counterpart. The sums that a group makes
 * during its last pass over weights end before the table's sum here; where they do not, they hide an equal part of
 * it. */
static void tensor_groups(void **state)
{
    (void)state;
    const double rate = 1e11;
    for (uint32_t stages = 2; stages <= 4; stages++) {
        struct parallel p = {.tensor = 2, .pipeline = stages, .data = 1, .chunks = 1, .schedule = PIPELINE_1F1B,
                             .prefetch = 1};
        test_parallel_near(step_s(p, true, rate, 0), step_s(p, false, rate, 0) + 256.0 * 64 / 2 * sizeof(float) / rate);
    }
}

/* Stages of other numbers of replicas: 2 and 1 are one group of three, whose ring sends 1 / n of the table 2 (n - 1)
 * times, 4 and 2 two such groups, 3 and 2 one of five, 6 and 4 two. The first stage has no fewer, so that it still
 * ends last. */
static void unequal(void **state)
{
    (void)state;
    static const struct {
        uint32_t first, last, groups;
    } cases[] = {{2, 1, 1}, {4, 2, 2}, {3, 2, 1}, {6, 4, 2}, {2, 2, 2}};
    const double rate = 1e8, latency_s = 1e-6, bytes = 256.0 * 64 * sizeof(float);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct parallel p = {.tensor = 1, .pipeline = 3, .data = 1, .chunks = 1, .schedule = PIPELINE_1F1B,
                             .replicated = 3,
                             .replicas = {cases[i].first, 1, cases[i].last}, .collective = PARALLEL_RING};
        uint32_t n = (cases[i].first + cases[i].last) / cases[i].groups;
        test_parallel_near(step_s(p, true, rate, latency_s),
                           step_s(p, false, rate, latency_s) + 2 * (n - 1) * (2 * latency_s + bytes / n / rate));
    }
}

static uint32_t joins_of(const struct plan *plan)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->task_count; i++)
        count += plan->units[plan->tasks[i].unit].pass == PLAN_JOIN;
    return count;
}

enum { TABLE = 256 * 64 * sizeof(float) };

static struct plan_op *join_of(struct plan *p) { return test_parallel_op(p, PLAN_JOIN, 0, OP_COLLECTIVE); }

static void where(void **state)
{
    (void)state;
    static const struct {
        struct parallel parallel;
        bool tied;
        uint64_t bytes; /* that each rank sends of its table's gradient; 0: there is no sum */
    } cases[] = {
        {{.tensor = 1, .pipeline = 2, .data = 1, .chunks = 1, .schedule = PIPELINE_GPIPE}, true, TABLE},
        {{.tensor = 1, .pipeline = 2, .data = 1, .chunks = 1, .schedule = PIPELINE_GPIPE}, false, 0},
        {{.tensor = 1, .pipeline = 2, .data = 2, .chunks = 2, .schedule = PIPELINE_INTERLEAVED}, true, TABLE},
        {{.tensor = 1, .pipeline = 4, .data = 1, .chunks = 1, .schedule = PIPELINE_ZB_H1}, true, TABLE},
        {{.tensor = 1, .pipeline = 4, .data = 1, .chunks = 1, .schedule = PIPELINE_ZB_H2}, true, TABLE},
        {{.tensor = 1, .pipeline = 2, .data = 1, .chunks = 1, .schedule = PIPELINE_TERAPIPE}, true, TABLE},
        {{.tensor = 1, .pipeline = 2, .data = 1, .chunks = 1, .schedule = PIPELINE_1F1B, .zero = 1}, true, TABLE},
        {{.tensor = 1, .pipeline = 1, .data = 2, .chunks = 2, .schedule = PIPELINE_1F1B}, true, 0}, /* one stage */
        /* both on the first */
        {{.tensor = 1, .pipeline = 2, .data = 1, .chunks = 2, .schedule = PIPELINE_ZB_V}, true, 0},
        {{.tensor = 1, .pipeline = 2, .data = 2, .chunks = 1, .schedule = PIPELINE_1F1B, .zero = 1}, true, TABLE},
        {{.tensor = 1, .pipeline = 2, .data = 2, .chunks = 1, .schedule = PIPELINE_1F1B, .zero = 2}, true, TABLE / 2},
        {{.tensor = 2, .pipeline = 2, .data = 2, .chunks = 1, .schedule = PIPELINE_1F1B, .zero = 3}, true, TABLE / 4},
        {{.tensor = 1, .pipeline = 2, .data = 1, .chunks = 1, .schedule = PIPELINE_2BW}, true, 0},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct plan plan;
        struct parallel p = cases[i].parallel;
        p.prefetch = 1;
        make_plan(p, cases[i].tied, 1e10, 0, &plan);
        assert_int_equal(joins_of(&plan), cases[i].bytes > 0);
        if (cases[i].bytes > 0) assert_int_equal(join_of(&plan)->bytes, cases[i].bytes);
        plan_release(&plan);
    }
}

/* Gradients on hosts are not summed: the table exists twice. */
static void offloaded(void **state)
{
    (void)state;
    struct job_set jobs;
    test_gpt_jobs(&jobs, 1, 8, 64, 256, 1);
    struct job *job = &jobs.jobs[0];
    job->parallel = (struct parallel){.tensor = 1, .pipeline = 2, .data = 2, .chunks = 1, .schedule = PIPELINE_1F1B,
                                      .zero = 3};
    assert_int_equal(parallel_joined_bytes(job), TABLE / 2);
    job->parallel.offload = OFFLOAD_STATES;
    assert_int_equal(parallel_joined_bytes(job), 0);
    assert_true(parallel_tied_bytes(job) > 0);
    job_set_release(&jobs);
}

/* --- broken plans ---------------------------------------------------------------------------- */

/* Variant 1: one replica; 2: two; 3: two, which split gradients. */
static void whole_plan(struct plan *out, uint32_t variant)
{
    struct parallel p = {.tensor = 2, .pipeline = 2, .data = variant == 1 ? 1 : 2, .chunks = 1,
                         .schedule = PIPELINE_1F1B, .prefetch = 1, .zero = variant == 3 ? 2 : 0};
    make_plan(p, true, 1e10, 0, out);
}

static struct plan_task *join(struct plan *p) { return test_parallel_task(p, PLAN_JOIN, 0, 0); }
static void break_first(struct plan *p) { test_parallel_swap(join(p), test_parallel_task(p, PLAN_UPDATE, 0, 0)); }
static void break_last(struct plan *p) { test_parallel_swap(join(p), test_parallel_task(p, PLAN_UPDATE, 1, 0)); }
static void break_early(struct plan *p) { test_parallel_swap(join(p), test_parallel_task(p, PLAN_REDUCE, 1, 0)); }
static void break_bytes(struct plan *p) { join_of(p)->bytes /= 2; }
static void break_kind(struct plan *p) { join_of(p)->collective = COLLECTIVE_ALL_GATHER; }
static void break_axis(struct plan *p) { join_of(p)->axes = 1u << AXIS_DATA; }
static void break_stream(struct plan *p) { join_of(p)->stream = STREAM_GROUP; }
static void break_gang(struct plan *p) { join(p)->gang = 0; }
static void break_flags(struct plan *p) { p->accesses[join_of(p)->first_access + 1].flags = ACCESS_READ; }
static void break_ends(struct plan *p)
{
    struct plan_access *a = &p->accesses[join_of(p)->first_access], first = a[0];
    a[0] = a[1];
    a[1] = first;
}
static void break_untied(struct plan *p) { p->jobs.jobs[0].network.tied_head = false; }

/* The join is on other things than the gradients of both ends. */
static void break_one_end(struct plan *p) { join_of(p)->access_count = 1; }
static void break_pass(struct plan *p)
{
    struct plan_op *op = test_parallel_op(p, PLAN_REDUCE, 1, OP_COLLECTIVE);
    assert_int_equal(op->access_count, 2); /* from whole gradients to shares */
    op->axes = 1u << AXIS_ENDS;
}
static void break_buffer(struct plan *p)
{
    struct plan_access *a = &p->accesses[join_of(p)->first_access];
    for (uint32_t b = 0; b < p->buffer_count; b++)
        if (p->buffers[b].kind == BUFFER_STATE && p->buffers[b].shard == 1 && p->buffers[b].on_device) a[1].buffer = b;
}
static void break_offset(struct plan *p) { p->accesses[join_of(p)->first_access].offset_bytes = 64; }

/* Makes the join's first access one to a new buffer like the first stage's gradient, and returns it. */
static struct plan_buffer *other_gradient(struct plan *p)
{
    struct plan_access *access = &p->accesses[join_of(p)->first_access];
    struct plan_buffer *buffers;
    struct error err = {0};
    if (ARENA_NEW(&p->arena, p->buffer_count + 1, buffers, &err)) fail_msg("%s", err.text);
    memcpy(buffers, p->buffers, p->buffer_count * sizeof *buffers);
    buffers[p->buffer_count] = buffers[access->buffer];
    access->buffer = p->buffer_count++;
    p->buffers = buffers;
    return &buffers[access->buffer];
}
/* The larger gradient of the first stage in place of the last one's. */
static void break_shard(struct plan *p)
{
    struct plan_access *a = &p->accesses[join_of(p)->first_access];
    const uint32_t first = a[0].buffer, last = a[1].buffer;
    a[0].buffer = last;
    a[1].buffer = first;
    p->buffers[last].bytes = p->buffers[first].bytes;
}
static void break_variant(struct plan *p) { other_gradient(p)->variant = 1; }
static void break_place(struct plan *p) { other_gradient(p)->on_device = false; }

/* Collectives of any axis. */
static void break_axes(struct plan *p) { join_of(p)->axes = 1u << AXIS_ENDS | 1u << AXIS_DATA; }
static void break_no_axis(struct plan *p) { join_of(p)->axes = 0; }
static void break_unknown(struct plan *p) { join_of(p)->collective = COLLECTIVE_KIND_COUNT; }
static void break_rounds(struct plan *p) { join_of(p)->rounds = 0; }
static void break_empty(struct plan *p) { join_of(p)->bytes = 0; }
static void break_copies(struct plan *p) { join_of(p)->stream = STREAM_D2H; }

static void broken(void **state)
{
    (void)state;
    static const struct test_parallel_damage cases[] = {
        {break_first, 1, "finds gradient of job-0 shard 0, microbatch 4 (expected joined gradient of job-0 shard 0, "
                         "microbatch 4)"},
        {break_first, 2, "finds reduced gradient of job-0 shard 0, microbatch 4 (expected joined gradient of job-0 "
                         "shard 0, microbatch 4)"},
        {break_last, 2, "expected joined gradient of job-0 shard 1, microbatch 4)"},
        {break_early, 2, "(expected reduced gradient of job-0 shard"},
        {break_bytes, 1, "0 times all-reduce of 32768 bytes over the ends group (expected 1)"},
        {break_kind, 1, "0 times all-reduce of 32768 bytes over the ends group (expected 1)"},
        {break_axis, 1, "form: a collective on 2 buffers"},
        {break_stream, 1, "form: a collective over the ends on 2 buffers, in a join on the group stream"},
        {break_gang, 1, "is not on the devices of the first and the last stage"},
        {break_flags, 1, "form: a collective over the ends on the gradient of job-0 shard 1"},
        {break_ends, 1, "form: a collective over the ends on the gradient of job-0 shard 1"},
        {break_one_end, 1, "form: a collective over the ends on 1 buffers, in a join on the data stream"},
        {break_pass, 3, "form: a collective over the ends on 2 buffers, in a reduce on the data stream"},
        {break_buffer, 1, "form: a collective over the ends on the state of job-0 shard 1"},
        {break_shard, 1, "form: a collective over the ends on the gradient of job-0 shard 1"},
        {break_offset, 1, "form: a collective over the ends on the gradient of job-0 shard 0"},
        {break_variant, 1, "form: a collective over the ends on the gradient of job-0 shard 0"},
        {break_place, 1, "form: a collective over the ends on the gradient of job-0 shard 0"},
        {break_axes, 1, "form: a collective over axes 0x6"},
        {break_no_axis, 1, "form: a collective over axes 0x0"},
        {break_unknown, 1, "form: 1 collectives of kind"},
        {break_rounds, 1, "form: 0 collectives of kind"},
        {break_empty, 1, "and 0 bytes on the data stream"},
        {break_copies, 1, "bytes on the d2h stream"},
        {break_untied, 1, "1 collectives over the ends group (expected 0)"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), whole_plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exposed),
        cmocka_unit_test(tensor_groups),
        cmocka_unit_test(unequal),
        cmocka_unit_test(where),
        cmocka_unit_test(offloaded),
        cmocka_unit_test(broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
