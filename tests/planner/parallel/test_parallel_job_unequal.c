/*
 * Plans of jobs that are carried out with unequal numbers of replicas (label: fast): each replica has its own data,
 * states and part of the loss, and the judge misses nothing that is at the wrong replica or left out. Equal numbers are
 * what "data" makes of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/size.h"
#include "planner/check/plan_check.h"
#include "planner/plan_runnable.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/planner/support_planner.h"

enum { MINIBATCHES = 3, MICROBATCHES = 5 };
enum { EVALUATED = 100, CLIPS = 200, GROUPS = 300, PACE = 400 };

/* A variant has the replicas of the first and the last stage as its digits; from EVALUATED on it is evaluated, from
 * CLIPS on it clips, from GROUPS on each replica is a tensor group of two, from PACE on stages update by themselves
 * (pipedream). */
static void make_plan(struct plan *out, uint32_t variant)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    const struct planner_options options = {.weight_buffers = 0};
    test_hardware(&hardware, 8, 1 << 26, 1e9);
    hardware.backend = "host";
    hardware.threads = 1;
    test_gpt_jobs(&jobs, 1, 6, 32, 97, MINIBATCHES);
    struct job *job = &jobs.jobs[0];
    job->microbatches = MICROBATCHES;
    job->parallel = (struct parallel){.tensor = variant >= GROUPS && variant < PACE ? 2 : 1, .data = 1, .pipeline = 2,
                                      .prefetch = 1, .chunks = 1,
                                      .schedule = PIPELINE_1F1B, .replicated = 2,
                                      .replicas = {variant % 100 / 10, variant % 10}};
    if (variant >= EVALUATED && variant < CLIPS)
        job->evaluation = (struct job_evaluation){.every = 2, .minibatches = 2};
    if (variant >= CLIPS && variant < GROUPS) job->optimizer.clip = 0.5;
    if (variant >= PACE) {
        job->network.tied_head = false;
        job->parallel.schedule = PIPELINE_PIPEDREAM;
        job->microbatches = 1;
        job->minibatches = 6;
    }
    *out = (struct plan){0};
    if (planner_plan(&hardware, &jobs, &options, out, &err)) fail_msg("%s", err.text);
}

/* Returns the job's buffer of a kind. */
static struct plan_buffer *buffer_of(struct plan *p, uint32_t kind, bool on_device)
{
    for (uint32_t b = 0; b < p->buffer_count; b++)
        if (p->buffers[b].kind == kind && p->buffers[b].on_device == on_device && p->buffers[b].variant == 0)
        return &p->buffers[b];
    fail_msg("no buffer of kind %u", kind);
    return NULL;
}

/* The first stage has 3 and 2 of the 5 microbatches on its replicas, the last one 2, 2 and 1 on its three. */
static void data_of_replicas(void **state)
{
    (void)state;
    struct plan plan;
    make_plan(&plan, 23);
    const struct job *job = &plan.jobs.jobs[0];
    struct error err = {0};
    assert_true(parallel_is_carried_out(&job->parallel));
    assert_int_equal(plan_runnable(&plan, &err), STATUS_OK);
    const uint64_t counts[2][3] = {{3, 2}, {2, 2, 1}};
    for (uint32_t stage = 0; stage < 2; stage++)
        for (uint32_t d = 0; d < stage + 2; d++) {
            const struct parallel_microbatches own = parallel_microbatches_of(job, stage, d);
            assert_int_equal(own.first, d);
            assert_int_equal(own.step, stage + 2);
            assert_int_equal(own.count, counts[stage][d]);
        }
    assert_int_equal(job_replica_batch_bytes(job), 3 * job_batch_bytes(job) / MICROBATCHES);
    assert_int_equal(buffer_of(&plan, BUFFER_BATCH, true)->bytes, job_replica_batch_bytes(job));
    assert_int_equal(plan_buffer_ranks(&plan, buffer_of(&plan, BUFFER_BATCH, false)), 3);
    for (uint32_t b = 0; b < plan.buffer_count; b++)
        if (plan.buffers[b].kind == BUFFER_STATE && !plan.buffers[b].on_device)
            assert_int_equal(plan_buffer_ranks(&plan, &plan.buffers[b]), plan.buffers[b].shard == 0 ? 2 : 3);
    plan_release(&plan);
}

static void equal_replicas(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t microbatches;
        uint32_t schedule, partition, data; /* data 0: the replicas stay */
    } cases[] = {
        {"replicas=2", 4, PIPELINE_GPIPE, PARALLEL_EQUAL, 2},
        {"replicas=3-3", 6, PIPELINE_1F1B, PARALLEL_EQUAL, 3},
        {"replicas=1", 1, PIPELINE_1F1B, PARALLEL_EQUAL, 1},
        {"replicas=2", 5, PIPELINE_GPIPE, PARALLEL_EQUAL, 0},
        {"replicas=2-1", 4, PIPELINE_GPIPE, PARALLEL_EQUAL, 0},
        {"replicas=2-2", 4, PIPELINE_2BW, PARALLEL_EQUAL, 0},
        {"replicas=2", 4, PIPELINE_GPIPE, PARALLEL_PIPEDREAM, 0},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct job_set jobs;
        struct error err = {0};
        test_gpt_jobs(&jobs, 1, 6, 32, 97, MINIBATCHES);
        struct job *job = &jobs.jobs[0];
        job->microbatches = cases[i].microbatches;
        assert_int_equal(parallel_parse_text(cases[i].text, &job->parallel, &err), STATUS_OK);
        job->parallel.schedule = cases[i].schedule;
        job->parallel.partition = cases[i].partition;
        job->parallel.zero = ZERO_STATES; /* which only "data" has */
        assert_int_equal(parallel_settle_replicas(job), cases[i].data > 0);
        assert_int_equal(parallel_check(job, &err), cases[i].data > 0 ? STATUS_OK : STATUS_BAD_INPUT);
        assert_int_equal(job->parallel.replicated > 0, cases[i].data == 0);
        assert_int_equal(job->parallel.data, cases[i].data > 0 ? cases[i].data : 1);
        job_set_release(&jobs);
    }
}

/* --- broken plans ---------------------------------------------------------------------------- */

static void pass_at_the_other_replica(struct plan *p)
{
    test_parallel_swap_places(test_parallel_task(p, PLAN_FORWARD, 0, 0), test_parallel_task(p, PLAN_FORWARD, 0, 1));
}
static void backward_at_the_other_replica(struct plan *p)
{
    test_parallel_swap_places(test_parallel_task(p, PLAN_BACKWARD, 1, 0), test_parallel_task(p, PLAN_BACKWARD, 1, 1));
}
static void boundary_of_another(struct plan *p)
{
    struct plan_task *a = test_parallel_task(p, PLAN_FORWARD, 1, 0), *b = test_parallel_task(p, PLAN_FORWARD, 1, 1);
    const uint32_t peer = a->peer;
    a->peer = b->peer;
    b->peer = peer;
}
static void data_of_one(struct plan *p)
{
    struct plan_task *task = test_parallel_task(p, PLAN_BATCH, 0, 0);
    task->gang = test_parallel_task(p, PLAN_FORWARD, 0, 0)->gang;
    task->device = test_parallel_task(p, PLAN_FORWARD, 0, 0)->device;
}
static void data_at_the_other_replica(struct plan *p)
{
    test_parallel_swap_places(test_parallel_task(p, PLAN_BATCH, 0, 0), test_parallel_task(p, PLAN_BATCH, 0, 1));
}
static void data_out_of_turn(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_BATCH, 0, 0), test_parallel_task(p, PLAN_BATCH, 0, 2));
}
static void data_of_all(struct plan *p)
{
    test_parallel_task(p, PLAN_BATCH, 0, 0)->gang = test_parallel_task(p, PLAN_UPDATE, 0, 0)->gang;
}
static void not_reduced_in_time(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_UPDATE, 0, 0), test_parallel_task(p, PLAN_REDUCE, 0, 0));
}
static void update_early(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_UPDATE, 0, 0), test_parallel_task(p, PLAN_BACKWARD, 0, 1));
}
static void data_small(struct plan *p) { buffer_of(p, BUFFER_BATCH, true)->bytes -= 4; }
static void data_short(struct plan *p) { test_parallel_op(p, PLAN_BATCH, 1, OP_COPY)->bytes -= 4; }
static void not_reduced(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_REDUCE, 0, 0), test_parallel_task(p, PLAN_JOIN, 0, 0));
}
static void reduced_early(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_REDUCE, 0, 0),
                       test_parallel_task(p, PLAN_BACKWARD, 0, MICROBATCHES - 1));
}
static void reduced_twice(struct plan *p) { test_parallel_op(p, PLAN_REDUCE, 0, OP_COLLECTIVE)->rounds++; }
static void joined_short(struct plan *p) { test_parallel_op(p, PLAN_JOIN, 0, OP_COLLECTIVE)->bytes /= 2; }
static void loss_short(struct plan *p) { test_parallel_op(p, PLAN_UPDATE, 1, OP_COPY)->bytes = 4; }
static void held_out_at_the_other_replica(struct plan *p)
{
    test_parallel_swap_places(test_parallel_task(p, PLAN_EVALUATE, 0, 0), test_parallel_task(p, PLAN_EVALUATE, 0, 1));
}
static void held_out_loss_short(struct plan *p)
{
    const struct plan_unit *unit = &p->units[test_parallel_task(p, PLAN_EVALUATE, 1, MICROBATCHES - 1)->unit];
    for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
        if (p->ops[o].stream == STREAM_D2H) p->ops[o].bytes = 4;
}
static void norms_short(struct plan *p) { test_parallel_op(p, PLAN_NORM, 0, OP_COPY)->bytes -= 8; }
static void norm_early(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_NORM, 0, 0), test_parallel_task(p, PLAN_JOIN, 0, 0));
}
static void state_of_one(struct plan *p)
{
    struct plan_task *task = test_parallel_task(p, PLAN_STORE, 0, 0);
    task->gang = test_parallel_task(p, PLAN_FORWARD, 0, 0)->gang;
}

static void broken(void **state)
{
    (void)state;
    static const struct test_parallel_damage cases[] = {
        {pass_at_the_other_replica, 21, "job-0 shard"},
        {pass_at_the_other_replica, GROUPS + 21, "job-0 shard"},
        {backward_at_the_other_replica, 12, "job-0 shard 1"},
        {boundary_of_another, 21, "boundary"},
        {data_of_one, 21, "is not on the devices of stage 0"},
        {data_small, 23, "the batch of job-0 has"},
        {data_short, 12, "of the batch (expected"},
        {not_reduced, 21, "(expected reduced gradient of job-0 shard 0"},
        {reduced_early, 21, "job-0 shard 0"},
        {reduced_twice, 21, "2 times all-reduce of"},
        {joined_short, 21, "0 times all-reduce of"},
        {loss_short, 12, "copies 4 bytes of the loss (expected 8 of the loss)"},
        {held_out_at_the_other_replica, EVALUATED + 21, "boundary of job-0 shard 1, which is not live on device 0"},
        {held_out_loss_short, EVALUATED + 12, "copies 4 bytes of the loss in an evaluation"},
        {norms_short, CLIPS + 21, "bytes of the norms at 0 (expected"},
        {norm_early, CLIPS + 23, "(expected joined gradient of job-0 shard 0"},
        {pass_at_the_other_replica, PACE + 21, "batch of job-0"},
        {data_at_the_other_replica, PACE + 21, "batch of job-0"},
        {data_out_of_turn, PACE + 21, "batch"},
        {data_of_all, PACE + 21, "is not on the devices of stage 0"},
        {update_early, PACE + 21, "job-0 shard 0"},
        {not_reduced_in_time, PACE + 21, "job-0 shard 0"},
        {loss_short, PACE + 12, "copies 4 bytes of the loss (expected 8 of the loss)"},
        {state_of_one, 21, "is not on the devices of stage 0"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), make_plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_of_replicas),
        cmocka_unit_test(equal_replicas),
        cmocka_unit_test(broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
