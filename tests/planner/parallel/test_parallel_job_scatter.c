/*
 * Boundaries that tensor groups scatter and gather (label: fast): the saved time by a closed form, on random jobs
 * through plan_check() and the simulator, broken plans, refused jobs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "models/cost/collective_group.h"
#include "models/cost/cost.h"
#include "models/job/parallel_memory.h"
#include "tests/support/planner/support_parallel.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/support_plain.h"
#include "tests/support/support_seed.h"

/* A GPT of 24 blocks and 24 heads on nodes of eight devices, a tensor group for each. */
static void make_jobs(uint32_t tensor, uint32_t pipeline, uint32_t chunks, uint64_t microbatches, bool scatter,
                      struct job_set *out)
{
    test_gpt_jobs(out, 1, 4, 64, 256, 1);
    struct job *job = &out->jobs[0];
    job->network = support_gpt(support_gpts[SUPPORT_GPT_1700M]);
    job->precision = PRECISION_BF16;
    job->sequence = 2048;
    job->microbatch = 1;
    job->microbatches = microbatches;
    job->parallel = (struct parallel){.tensor = tensor, .pipeline = pipeline, .data = 1, .chunks = chunks,
                                      .prefetch = 1,
                                      .schedule = chunks > 1 ? PIPELINE_INTERLEAVED : PIPELINE_1F1B,
                                      .scatter = scatter};
}

static struct test_parallel_outcome simulated(const char *machine, struct job_set *jobs)
{
    struct hardware hardware = {0};
    struct plan plan = {0};
    struct error err = {0};
    if (hardware_find(machine, &hardware, &err)) fail_msg("%s", err.text);
    support_plain(&hardware);
    test_parallel_plan(&hardware, jobs, &plan);
    struct test_parallel_outcome folded = test_parallel_simulate(&plan, false),
        out = test_parallel_simulate(&plan, true);
    assert_true(out.represented == 0 && !(out.makespan_s < folded.makespan_s) && !(out.makespan_s > folded.makespan_s));
    plan_release(&plan);
    return folded;
}

/* With one microbatch nothing hides the sends: P - 1 boundaries and P - 1 gradients of b bytes. Each takes l + b / w
 * from NIC to NIC, or l + b / (t w) and then an all-gather of b in the node. */
static void one_microbatch(void **state)
{
    (void)state;
    static const char *const machines[] = {"2x dgx-a100-80gb", "3x dgx-a100-80gb", "4x dgx-a100-80gb"};
    for (uint32_t i = 0; i < ARRAY_COUNT(machines); i++) {
        struct job_set whole, parts;
        struct hardware hardware = {0};
        struct arena arena = {0};
        struct error err = {0};
        struct collective_finder finder;
        struct collective_group group;
        uint32_t stages = 2 + i, devices[8], lacking[2];
        if (hardware_find(machines[i], &hardware, &err) || collective_finder_init(&arena, &hardware, &finder, &err))
            fail_msg("%s", err.text);
        support_plain(&hardware);
        for (uint32_t d = 0; d < 8; d++) devices[d] = d;
        assert_true(collective_groups_find(&finder, devices, 8, 1, &group, lacking));
        make_jobs(8, stages, 1, 1, false, &whole);
        make_jobs(8, stages, 1, 1, true, &parts);
        uint64_t bytes = 2 * 2048 * whole.jobs[0].network.width;
        assert_int_equal(parallel_sent_bytes(&whole.jobs[0], 1), bytes);
        assert_int_equal(parallel_sent_bytes(&parts.jobs[0], 1), bytes / 8);
        double saved_s = (double)(bytes - bytes / 8) / cost_p2p_bandwidth(&hardware, 0, 8) -
                         collective_seconds(COLLECTIVE_ALL_GATHER, COLLECTIVE_ALGORITHM_COUNT, &group, bytes);
        assert_true(saved_s > 0);
        double whole_s = simulated(machines[i], &whole).makespan_s, parts_s = simulated(machines[i], &parts).makespan_s;
        test_parallel_near(1 + whole_s - parts_s, 1 + 2 * (stages - 1) * saved_s);
        arena_release(&arena);
        hardware_release(&hardware);
    }
}

/* The published case, smaller: with several chunks more is sent, and more of it saved. Never later on such machines. */
static void random_jobs(void **state)
{
    (void)state;
    uint64_t seed = support_seed("scattered boundaries");
    for (uint32_t c = 0; c < 12; c++) {
        uint64_t key = random_u64(seed, c);
        struct job_set whole, parts;
        uint32_t stages = 2 + (uint32_t)random_below(key, 0, 3), chunks = 1 + (uint32_t)random_below(key, 1, 3);
        uint64_t microbatches = stages * (1 + random_below(key, 2, 3));
        make_jobs(8, stages, chunks, microbatches, false, &whole);
        make_jobs(8, stages, chunks, microbatches, true, &parts);
        struct test_parallel_outcome a = simulated("4x dgx-a100-80gb", &whole),
            b = simulated("4x dgx-a100-80gb", &parts);
        if (!(b.makespan_s <= a.makespan_s)) fail_msg("case %u: %g s, and whole %g s", c, b.makespan_s, a.makespan_s);
    }
}

static void whole_plan(struct plan *out, uint32_t variant)
{
    struct hardware hardware = {0};
    struct job_set jobs;
    struct error err = {0};
    (void)variant;
    *out = (struct plan){0};
    if (hardware_find("2x dgx-a100-80gb", &hardware, &err)) fail_msg("%s", err.text);
    make_jobs(8, 2, 1, 2, true, &jobs);
    test_parallel_plan(&hardware, &jobs, out);
}
/* more than the part */
static void break_part(struct plan *p) { test_parallel_op(p, PLAN_FORWARD, 1, OP_COPY)->bytes *= 8; }
static void break_less(struct plan *p) { test_parallel_op(p, PLAN_FORWARD, 1, OP_COPY)->bytes /= 2; }
static void break_gather(struct plan *p) { test_parallel_op(p, PLAN_FORWARD, 1, OP_COLLECTIVE)->bytes /= 2; }
static void break_kind(struct plan *p)
{
    test_parallel_op(p, PLAN_BACKWARD, 0, OP_COLLECTIVE)->collective = COLLECTIVE_ALL_REDUCE;
}
static void break_promise(struct plan *p) { p->jobs.jobs[0].parallel.scatter = false; }

static void broken(void **state)
{
    (void)state;
    static const struct test_parallel_damage cases[] = {
        {break_part, 0, "work: fetches"},
        {break_less, 0, "work: fetches"},
        {break_gather, 0, "over the tensor group (expected"},
        {break_kind, 0, "over the tensor group (expected"},
        {break_promise, 0, "work: fetches"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), whole_plan);
}

static void refused(void **state)
{
    (void)state;
    struct job_set jobs;
    struct error err = {0};
    make_jobs(1, 2, 1, 2, true, &jobs);
    assert_int_equal(parallel_check(&jobs.jobs[0], &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "scattered boundaries without tensor parallelism (expected 'tensor' above 1 without "
                                  "'sequence')");
    err = (struct error){0};
    jobs.jobs[0].parallel.tensor = 2;
    jobs.jobs[0].parallel.sequence = true;
    assert_int_equal(parallel_check(&jobs.jobs[0], &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "scattered boundaries with sequence parallelism (expected 'tensor' above 1 without "
                                  "'sequence')");
    job_set_release(&jobs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_microbatch), cmocka_unit_test(random_jobs), cmocka_unit_test(broken),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
