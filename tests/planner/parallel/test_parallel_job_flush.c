/*
 * Flushes of asynchronous pipelines (label: fast): where they come, what they cost, that plans of many of them repeat,
 * and that the judge knows the version of the weights that passes find after one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/size.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/planner/support_planner.h"

enum { EVALUATED = 100, SMALL_STEPS = 8, MANY_STEPS = 4000 };

/* Plans three stages of a network without a tied table. */
static void plan_of(struct plan *out, uint32_t schedule, uint32_t flush, uint64_t every, uint64_t minibatches)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    const struct planner_options options = {.weight_buffers = 0};
    test_hardware(&hardware, 3, 1 << 26, 1e9);
    test_gpt_jobs(&jobs, 1, 6, 32, 97, minibatches);
    struct job *job = &jobs.jobs[0];
    job->network.tied_head = false;
    job->microbatches = schedule == PIPELINE_2BW ? 3 : 1;
    job->evaluation = (struct job_evaluation){.every = every, .minibatches = every > 0 ? 2 : 0};
    job->parallel = (struct parallel){.tensor = 1, .data = 1, .pipeline = 3, .prefetch = 1, .chunks = 1,
                                      .schedule = schedule, .flush = flush};
    *out = (struct plan){0};
    if (planner_plan(&hardware, &jobs, &options, out, &err)) fail_msg("%s", err.text);
}

/* Flushes after every `variant` minibatches; from EVALUATED on, evaluates after every second one. */
static void make_plan(struct plan *out, uint32_t variant)
{
    plan_of(out, PIPELINE_PIPEDREAM, variant % EVALUATED, variant >= EVALUATED ? 2 : 0, SMALL_STEPS);
}

/* The more often the pipeline is flushed, the longer the training takes. */
static void costs(void **state)
{
    (void)state;
    static const uint32_t flushes[] = {0, 4, 2, 1};
    for (uint32_t schedule = PIPELINE_PIPEDREAM; schedule <= PIPELINE_2BW; schedule++) {
        double before_s = 0;
        for (uint32_t i = 0; i < ARRAY_COUNT(flushes); i++) {
            struct plan plan;
            plan_of(&plan, schedule, flushes[i], 0, SMALL_STEPS);
            const double seconds = test_parallel_simulate(&plan, false).makespan_s;
            assert_true(seconds > before_s);
            before_s = seconds;
            plan_release(&plan);
        }
    }
}

/* Plans of many minibatches are as large as those of few, whatever flushes and evaluations have in common. */
static void repeats(void **state)
{
    (void)state;
    static const struct {
        uint32_t flush;
        uint64_t every;
    } cases[] = {{1, 0}, {5, 0}, {64, 0}, {0, 7}, {4, 6}, {700, 0}, {0, 1}};
    for (uint32_t schedule = PIPELINE_PIPEDREAM; schedule <= PIPELINE_2BW; schedule++)
        for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
            struct plan plan;
            uint64_t passes = 0;
            plan_of(&plan, schedule, cases[i].flush, cases[i].every, MANY_STEPS);
            for (uint32_t s = 0; s < plan.segment_count; s++)
                for (uint32_t t = 0; t < plan.segments[s].task_count; t++)
                    passes += plan.units[plan.tasks[plan.segments[s].first_task + t].unit].pass == PLAN_FORWARD
                                  ? plan.segments[s].repeat_count : 0;
            assert_int_equal(passes, 3 * MANY_STEPS * plan.jobs.jobs[0].microbatches);
            assert_true(plan.task_count < 40000);
            plan_release(&plan);
        }
}

static void flushed_never(struct plan *p) { p->jobs.jobs[0].parallel.flush = 0; }
static void flushed_later(struct plan *p) { p->jobs.jobs[0].parallel.flush = 4; }
static void flushed_more_often(struct plan *p) { p->jobs.jobs[0].parallel.flush = 1; }
static void begun_early(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_FORWARD, 0, 2), test_parallel_task(p, PLAN_UPDATE, 0, 1));
}
static void evaluated_early(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_EVALUATE, 0, 0), test_parallel_task(p, PLAN_UPDATE, 0, 1));
}
static void held_out_stays(struct plan *p)
{
    const struct plan_unit *unit = &p->units[test_parallel_task(p, PLAN_EVALUATE, 0, 0)->unit];
    for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
        for (uint32_t a = 0; a < p->ops[o].access_count; a++) {
            struct plan_access *access = &p->accesses[p->ops[o].first_access + a];
            if (p->buffers[access->buffer].kind == BUFFER_BATCH) access->flags &= ~(uint32_t)ACCESS_RELEASE;
        }
}
static void evaluates_an_old_version(struct plan *p)
{
    const struct plan_op *op = test_parallel_op(p, PLAN_EVALUATE, 1, OP_COMPUTE);
    for (uint32_t a = 0; a < op->access_count; a++) {
        struct plan_access *access = &p->accesses[op->first_access + a];
        if (p->buffers[access->buffer].kind != BUFFER_PARAMETERS) continue;
        for (uint32_t b = 0; b < p->buffer_count; b++)
            if (p->buffers[b].kind == BUFFER_PARAMETERS && p->buffers[b].shard == 1 && b != access->buffer) {
                access->buffer = b;
                return;
            }
    }
}
static void ends_twice(struct plan *p)
{
    for (uint32_t u = 0; u < p->unit_count; u++)
        if (p->units[u].pass == PLAN_UPDATE && p->units[u].shard == 0) p->units[u].ends_minibatch = true;
}

static void broken(void **state)
{
    (void)state;
    static const struct test_parallel_damage cases[] = {
        {flushed_never, 2, "(expected weights of job-0 shard 0, version 0)"},
        {flushed_later, 2, "(expected weights of job-0 shard 0, version 0)"},
        {flushed_more_often, 2, "(expected weights of job-0 shard"},
        {begun_early, 2, "job-0 shard 0"},
        {evaluated_early, EVALUATED, "training: no evaluation of minibatch"},
        {held_out_stays, EVALUATED, "batch"},
        {evaluates_an_old_version, EVALUATED, "job-0 shard 1"},
        {ends_twice, EVALUATED, "ends the minibatch too early"},
        {flushed_more_often, EVALUATED + 3, "(expected weights of job-0 shard"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), make_plan);
}

/* Flushes as text, and the jobs that have none. */
static void texts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t schedule;
        uint64_t every;
        const char *complaint; /* NULL: accepted */
    } cases[] = {
        {"pp=2,flush=5", PIPELINE_2BW, 0, NULL},
        {"pp=2,flush=5", PIPELINE_PIPEDREAM, 3, NULL},
        {"pp=2", PIPELINE_2BW, 3, NULL},
        {"pp=2,flush=5", PIPELINE_1F1B, 0,
         "schedule '1f1b' with 'flush' (expected 'pipedream', '2bw' or 'delayed': others flush after every minibatch)"},
        {"replicas=2-1,flush=5", PIPELINE_2BW, 0,
         "schedule '2bw' with 'replicas' and 'flush' (expected none: stages update at their own pace)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct job_set jobs;
        struct parallel p = {0};
        struct error err = {0};
        char text[PARALLEL_TEXT_BYTES];
        test_gpt_jobs(&jobs, 1, 6, 32, 97, 6);
        struct job *job = &jobs.jobs[0];
        job->network.tied_head = false;
        assert_int_equal(parallel_parse_text(cases[i].text, &p, &err), STATUS_OK);
        assert_string_equal(parallel_text(&p, text), cases[i].text);
        p.schedule = cases[i].schedule;
        job->microbatches = p.schedule == PIPELINE_PIPEDREAM ? 1 : 4;
        job->evaluation = (struct job_evaluation){.every = cases[i].every, .minibatches = cases[i].every > 0};
        job->parallel = p;
        const enum status status = parallel_check(job, &err);
        if (!cases[i].complaint && status) fail_msg("%s: %s", cases[i].text, err.text);
        if (cases[i].complaint) assert_string_equal(err.text, cases[i].complaint);
        job_set_release(&jobs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs),
        cmocka_unit_test(repeats),
        cmocka_unit_test(broken),
        cmocka_unit_test(texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
