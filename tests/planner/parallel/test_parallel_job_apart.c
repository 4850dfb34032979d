/*
 * Backward passes in two units where replicas split gradients (label: fast): both units make parts of a microbatch's
 * gradient, which the replicas reduce after the second. The judge misses nothing that is left out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/size.h"
#include "models/job/chunk_memory.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/planner/support_planner.h"

/* Two stages of two replicas, with this schedule. */
static void make_plan(struct plan *out, uint32_t schedule)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    const struct planner_options options = {.weight_buffers = 0};
    test_hardware(&hardware, 4, 1 << 26, 1e9);
    test_gpt_jobs(&jobs, 1, 6, 32, 97, 3);
    struct job *job = &jobs.jobs[0];
    job->microbatches = 8;
    job->parallel = (struct parallel){.tensor = 1, .data = 2, .pipeline = 2, .prefetch = 1,
                                      .chunks = schedule == PIPELINE_ZB_V ? 2 : 1, .schedule = schedule,
                                      .zero = ZERO_GRADIENTS};
    *out = (struct plan){0};
    if (planner_plan(&hardware, &jobs, &options, out, &err)) fail_msg("%s", err.text);
}

/* Returns a computation's access of a microbatch's whole gradient. */
static struct plan_access *apart_of(struct plan *p, uint32_t pass, uint32_t n)
{
    const struct plan_unit *unit = &p->units[test_parallel_task(p, pass, 0, n)->unit];
    for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
        for (uint32_t a = 0; a < p->ops[o].access_count; a++) {
            struct plan_access *access = &p->accesses[p->ops[o].first_access + a];
            const struct plan_buffer *b = &p->buffers[access->buffer];
            if (b->kind == BUFFER_GRADIENT && b->variant > 0) return access;
        }
    fail_msg("pass %u has no gradient of a microbatch", pass);
    return NULL;
}

static void places(void **state)
{
    (void)state;
    static const uint32_t schedules[] = {PIPELINE_ZB_H1, PIPELINE_ZB_H2, PIPELINE_ZB_V};
    for (size_t i = 0; i < ARRAY_COUNT(schedules); i++) {
        struct plan plan;
        make_plan(&plan, schedules[i]);
        const struct job *job = &plan.jobs.jobs[0];
        assert_true(parallel_is_carried_out(&job->parallel));
        const struct chunk_memory memory = chunk_memory(job, parallel_layers(job, 0));
        const struct plan_access *made = apart_of(&plan, PLAN_BACKWARD_INPUT, 0);
        assert_int_equal(plan.buffers[made->buffer].bytes, memory.whole_gradient_bytes);
        assert_int_equal(made->flags, ACCESS_WRITE | ACCESS_ACQUIRE);
        assert_int_equal(apart_of(&plan, PLAN_BACKWARD_WEIGHT, 0)->flags, ACCESS_READ | ACCESS_WRITE);
        assert_int_equal(apart_of(&plan, PLAN_BACKWARD_WEIGHT, 0)->buffer, made->buffer);
        assert_true(apart_of(&plan, PLAN_REDUCE, 0)->flags & ACCESS_RELEASE);
        plan_release(&plan);
    }
}

static void small(struct plan *p) { p->buffers[apart_of(p, PLAN_BACKWARD_INPUT, 0)->buffer].bytes -= 64; }
static void only_read(struct plan *p) { apart_of(p, PLAN_BACKWARD_WEIGHT, 0)->flags = ACCESS_READ; }
static void only_written(struct plan *p) { apart_of(p, PLAN_BACKWARD_WEIGHT, 0)->flags = ACCESS_WRITE; }
static void to_the_share(struct plan *p)
{
    struct plan_access *access = apart_of(p, PLAN_BACKWARD_WEIGHT, 0);
    for (uint32_t b = 0; b < p->buffer_count; b++)
        if (p->buffers[b].kind == BUFFER_GRADIENT && p->buffers[b].shard == 0 && p->buffers[b].variant == 0 &&
            p->buffers[b].on_device)
            access->buffer = b;
}
static void reduced_early(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_REDUCE, 0, 0), test_parallel_task(p, PLAN_BACKWARD_WEIGHT, 0, 0));
}
static void stays(struct plan *p) { apart_of(p, PLAN_REDUCE, 0)->flags = ACCESS_READ; }

static void broken(void **state)
{
    (void)state;
    static const struct test_parallel_damage cases[] = {
        {small, PIPELINE_ZB_H1, "memory: the gradient of job-0 shard 0 variant 1"},
        {only_read, PIPELINE_ZB_H1, "form: only reads the gradient of job-0 shard 0 variant 1"},
        {only_written, PIPELINE_ZB_H1, "form: writes the gradient of job-0 shard 0 variant 1"},
        {to_the_share, PIPELINE_ZB_H1, "form: has no use for the gradient of job-0 shard 0"},
        {reduced_early, PIPELINE_ZB_H1, "finds handed gradient of job-0 shard 0, microbatch 0 (expected gradient"},
        {stays, PIPELINE_ZB_H1, "job-0 shard 0"},
        {reduced_early, PIPELINE_ZB_V, "job-0 shard 0"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), make_plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places),
        cmocka_unit_test(broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
