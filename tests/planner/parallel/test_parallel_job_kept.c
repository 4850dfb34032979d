/*
 * Parallel jobs that keep the weights of their best evaluation (label: fast): the values come to the host after each
 * evaluation, all ranks share the place of a chunk's weights, and the judge misses nothing that is left out. Tensor
 * groups evaluate, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/size.h"
#include "models/job/chunk_memory.h"
#include "planner/check/plan_check.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/planner/support_planner.h"

enum { MINIBATCHES = 4, OFFLOADED = 100 };

/* Plans a job cut in this way for the machine, which it takes over. */
static void plan_on(struct hardware *hardware, const struct parallel *parallel, bool keeps, struct plan *out)
{
    struct job_set jobs;
    struct error err = {0};
    const struct planner_options options = {.weight_buffers = 0};
    test_gpt_jobs(&jobs, 1, 6, 32, 97, MINIBATCHES);
    struct job *job = &jobs.jobs[0];
    job->microbatches = 4;
    job->evaluation = (struct job_evaluation){.every = 2, .minibatches = 2};
    job->keep_best = keeps;
    job->parallel = *parallel;
    *out = (struct plan){0};
    if (planner_plan(hardware, &jobs, &options, out, &err) || plan_check(out, &err)) fail_msg("%s", err.text);
}

/* Two stages of two replicas with states of level `variant`; from OFFLOADED on, hosts update. */
static void make_plan(struct plan *out, uint32_t variant)
{
    struct hardware hardware;
    const struct parallel parallel = {.tensor = 1, .data = 2, .pipeline = 2, .prefetch = 1, .chunks = 1,
                                      .schedule = PIPELINE_1F1B, .zero = variant % OFFLOADED,
                                      .offload = variant >= OFFLOADED ? OFFLOAD_STATES : OFFLOAD_NOTHING};
    test_hardware(&hardware, 4, 1 << 26, 1e9);
    hardware.host_bandwidth = hardware.types[0].memory_bandwidth;
    plan_on(&hardware, &parallel, true, out);
}

static struct plan_op *op_of(struct plan *p, uint32_t chunk, uint32_t kind)
{
    return test_parallel_op(p, PLAN_KEEP, chunk, kind);
}

static struct plan_buffer *buffer_of(struct plan *p, uint32_t kind, uint32_t shard, uint32_t variant)
{
    for (uint32_t b = 0; b < p->buffer_count; b++)
        if (p->buffers[b].kind == kind && p->buffers[b].shard == shard && !p->buffers[b].on_device &&
            p->buffers[b].variant == variant)
            return &p->buffers[b];
    fail_msg("no buffer of kind %u", kind);
    return NULL;
}

static void places(void **state)
{
    (void)state;
    for (uint32_t zero = 0; zero <= 3; zero++)
        for (uint32_t offloads = 0; offloads < 2; offloads++) {
            struct plan plan;
            make_plan(&plan, zero + offloads * OFFLOADED);
            const struct job *job = &plan.jobs.jobs[0];
            assert_true(parallel_is_carried_out(&job->parallel));
            for (uint32_t c = 0; c < 2; c++) {
                const struct parallel_layers layers = parallel_layers(job, c);
                const struct plan_buffer *kept = buffer_of(&plan, BUFFER_KEPT, c, 0);
                assert_int_equal(kept->bytes, memory_parameter_bytes(&job->network, layers.first, layers.count));
                assert_int_equal(plan_buffer_ranks(&plan, kept), 1);
                assert_int_equal(plan_buffer_ranks(&plan, buffer_of(&plan, BUFFER_STATE, c, 0)), 2);
                if (!offloads) assert_int_equal(op_of(&plan, c, OP_COPY)->bytes, chunk_memory(job, layers).value_bytes);
            }
            assert_int_equal(plan_buffer_ranks(&plan, buffer_of(&plan, BUFFER_LOSS, PLAN_NONE, 1)), 1);
            assert_int_equal(plan_buffer_ranks(&plan, buffer_of(&plan, BUFFER_LOSS, PLAN_NONE, 0)), 2);
            plan_release(&plan);
        }
}

static void values_short(struct plan *p) { op_of(p, 0, OP_COPY)->bytes -= 64; }
static void values_up(struct plan *p) { op_of(p, 1, OP_COPY)->stream = STREAM_H2D; }
static void on_device(struct plan *p) { op_of(p, 1, OP_COMPUTE)->stream = STREAM_COMPUTE; }
static void place_small(struct plan *p) { buffer_of(p, BUFFER_KEPT, 1, 0)->bytes -= 4; }
static void place_read(struct plan *p) { p->accesses[op_of(p, 0, OP_COMPUTE)->first_access + 2].flags = ACCESS_READ; }
static void state_written(struct plan *p) { p->accesses[op_of(p, 0, OP_COMPUTE)->first_access].flags |= ACCESS_WRITE; }
static void without_loss(struct plan *p) { op_of(p, 0, OP_COMPUTE)->access_count = 2; }
static void of_another(struct plan *p)
{
    p->accesses[op_of(p, 0, OP_COMPUTE)->first_access + 2].buffer =
        (uint32_t)(buffer_of(p, BUFFER_KEPT, 1, 0) - p->buffers);
}
static void with_loss_of_training(struct plan *p)
{
    p->accesses[op_of(p, 0, OP_COMPUTE)->first_access + 1].buffer =
        (uint32_t)(buffer_of(p, BUFFER_LOSS, PLAN_NONE, 0) - p->buffers);
}
static void early(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_KEEP, 0, 0), test_parallel_task(p, PLAN_UPDATE, 0, 0));
}
static void before_last_loss(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_KEEP, 0, 0), test_parallel_task(p, PLAN_EVALUATE, 0, 3));
}
static void not_wanted(struct plan *p) { p->jobs.jobs[0].keep_best = false; }
static void twice(struct plan *p)
{
    test_parallel_task(p, PLAN_KEEP, 1, 0)->unit = test_parallel_task(p, PLAN_KEEP, 0, 0)->unit;
}
static void ends_early(struct plan *p) { p->units[test_parallel_task(p, PLAN_KEEP, 0, 0)->unit].ends_minibatch = true; }

static void broken(void **state)
{
    (void)state;
    static const struct test_parallel_damage cases[] = {
        {values_short, 0, "bytes of the state (expected"},
        {values_short, 1, "bytes of the state (expected"},
        {values_up, 0, "form: a copy on the h2d stream"},
        {on_device, 0, "keeps weights with other operands"},
        {place_small, 2, "memory: the kept of job-0 shard 1"},
        {place_read, 0, "form: keeps weights with the kept of job-0 shard 0"},
        {state_written, 3, "form: keeps weights with the state of job-0 shard 0"},
        {without_loss, 0, "keeps weights with other operands"},
        {of_another, 0, "form: keeps weights with the kept of job-0 shard 1"},
        {with_loss_of_training, 0, "form: keeps weights with the loss of job-0"},
        {early, 0, "no weights of minibatch"},
        {before_last_loss, 0, "no weights of minibatch"},
        {early, OFFLOADED + 1, "no weights of minibatch"},
        {not_wanted, 0, "keeps weights of a job that keeps none"},
        {twice, 0, "job-0"},
        {ends_early, 1, "ends the minibatch too early"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), make_plan);
}

/* --- tensor groups and longer pipelines ------------------------------------------------------- */

/* Returns the first collective of an evaluation's unit. */
static struct plan_op *held_out_sum(struct plan *p)
{
    for (uint32_t u = 0; u < p->unit_count; u++)
        for (uint32_t o = p->units[u].first_op; o < p->units[u].first_op + p->units[u].op_count; o++)
            if (p->units[u].pass == PLAN_EVALUATE && p->ops[o].kind == OP_COLLECTIVE) return &p->ops[o];
    fail_msg("an evaluation without collectives");
    return NULL;
}

/* Stages in the middle keep their weights, too, though they have no use for the batch. */
static void middle_stages_keep(void **state)
{
    (void)state;
    struct hardware hardware;
    struct plan plan;
    const struct parallel parallel = {.tensor = 1, .data = 1, .pipeline = 4, .prefetch = 1, .chunks = 1,
                                      .schedule = PIPELINE_1F1B};
    test_hardware(&hardware, 4, 1 << 26, 1e9);
    plan_on(&hardware, &parallel, true, &plan);
    assert_non_null(test_parallel_op(&plan, PLAN_KEEP, 1, OP_COPY));
    plan_release(&plan);
}

/* An evaluation sums over its tensor group as a forward pass does. */
static void tensor_groups_evaluate(void **state)
{
    (void)state;
    struct hardware hardware;
    struct plan plan;
    struct error err = {0};
    const struct parallel parallel = {.tensor = 2, .data = 1, .pipeline = 2, .prefetch = 1, .chunks = 1,
                                      .schedule = PIPELINE_1F1B};
    test_hardware(&hardware, 4, 1 << 26, 1e9);
    plan_on(&hardware, &parallel, false, &plan);
    held_out_sum(&plan)->rounds++;
    assert_int_equal(plan_check(&plan, &err), STATUS_CHECK);
    if (!strstr(err.text, " over the tensor group (expected ")) fail_msg("%s", err.text);
    plan_release(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places),
        cmocka_unit_test(broken),
        cmocka_unit_test(tensor_groups_evaluate),
        cmocka_unit_test(middle_stages_keep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
