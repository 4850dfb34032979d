/* Parallel jobs in any order: plans, their file, and what the judge finds wrong with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "planner/check/plan_check.h"
#include "planner/files/plan_io.h"
#include "planner/policy/plan_dispatch.h"
#include "planner/policy/policies.h"
#include "planner/strategy/planner.h"
#include "tests/support/planner/support_planner.h"

enum { MINIBATCHES = 5, DEVICES = 4 };

static const char config[] = "{\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 16, \"n_head\": 4, "
                             "\"n_positions\": 16, \"vocab_size\": 61, \"tie_word_embeddings\": false}";

/* Makes jobs on devices 0 and 1, 1 and 2, and 3. */
static enum status try_plan(void (*change)(struct job_set *jobs, struct planner_options *options), struct plan *plan,
                            struct error *err)
{
    struct hardware hardware;
    struct job_set jobs;
    struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO, .live = true};
    test_hardware(&hardware, DEVICES, 1 << 24, 1e9);
    hardware.backend = "host";
    test_network_jobs(&jobs, 3, config, MINIBATCHES);
    for (uint32_t j = 0; j < 3; j++) {
        jobs.jobs[j].microbatches = 2;
        jobs.jobs[j].parallel = (struct parallel){.tensor = 1, .pipeline = j == 1 ? 2 : 1, .data = j == 0 ? 2 : 1,
                                                  .chunks = 1, .prefetch = 1, .first_device = j == 2 ? 3 : j};
    }
    if (change) change(&jobs, &options);
    *plan = (struct plan){0};
    return planner_plan(&hardware, &jobs, &options, plan, err);
}

static void make_plan(struct plan *plan)
{
    struct error err = {0};
    if (try_plan(NULL, plan, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_true(plan->any_order && plan_is_open(plan) && plan->choice_count == 0);
}

/* --- minibatches ------------------------------------------------------------------------------- */

/* Each job has its minibatches one after the other, on all of its devices; a device has two at most. The job by itself
 * on device 3 never waits for the others. */
static void test_minibatches(void **state)
{
    (void)state;
    struct plan plan;
    struct error err = {0};
    struct plan_dispatch *dispatch = NULL;
    make_plan(&plan);
    const struct plan_dispatch_options options = {.policy = &policy_fifo};
    assert_int_equal(plan_dispatch_create(&plan, &options, &dispatch, &err), STATUS_OK);
    uint32_t next[3] = {0}, begun[3] = {0}, under_way[3] = {0}, order[3 * MINIBATCHES], count = 0;
    uint64_t tasks = 0, expected = 0;
    for (uint32_t s = 0; s < plan.segment_count; s++)
        expected += (uint64_t)plan.segments[s].task_count * plan.segments[s].repeat_count;
    for (uint32_t over = 0; over < 3 * MINIBATCHES; over++) {
        struct plan_dispatched out;
        bool found = true, more = false;
        while (true) {
            if (plan_dispatch_next(dispatch, over, &out, &found, &err) != STATUS_OK) fail_msg("%s", err.text);
            if (!found) break;
            const uint32_t job = plan.units[out.task->unit].job;
            assert_true(out.decided);
            if (more) assert_int_equal(job, order[count - 1]);
            if (!more) order[count++] = job;
            if (!more) begun[job]++;
            under_way[job] = 1;
            more = out.more;
            tasks++;
        }
        assert_false(more);
        assert_true(under_way[0] + under_way[1] <= 2);
        uint32_t ends = over % 3;
        while (!under_way[ends]) ends = (ends + 1) % 3;
        under_way[ends] = 0;
        next[ends]++;
        plan_dispatch_over(dispatch, ends, over + 1);
    }
    for (uint32_t j = 0; j < 3; j++) assert_int_equal(next[j], MINIBATCHES);
    for (uint32_t j = 0; j < 3; j++) assert_int_equal(begun[j], MINIBATCHES);
    assert_int_equal(tasks, expected);
    assert_int_equal(plan_dispatch_running(dispatch), 0);
    assert_int_equal(plan_dispatch_decisions(dispatch), 3 * MINIBATCHES);
    plan_dispatch_destroy(dispatch);
    plan_release(&plan);
}

/* What has begun is dispatched to its end, and no more. */
static void test_dropped(void **state)
{
    (void)state;
    struct plan plan;
    struct error err = {0};
    struct plan_dispatch *dispatch = NULL;
    struct plan_dispatched out;
    bool found;
    make_plan(&plan);
    const struct plan_dispatch_options options = {.policy = &policy_fifo};
    assert_int_equal(plan_dispatch_create(&plan, &options, &dispatch, &err), STATUS_OK);
    assert_int_equal(plan_dispatch_next(dispatch, 0, &out, &found, &err), STATUS_OK);
    assert_true(found && out.more);
    const uint32_t job = plan.units[out.task->unit].job;
    bool more = true;
    while (more) {
        plan_dispatch_drop_job(dispatch, job);
        assert_int_equal(plan_dispatch_next(dispatch, 0, &out, &found, &err), STATUS_OK);
        assert_true(found && plan.units[out.task->unit].job == job);
        more = out.more;
    }
    for (uint32_t j = 0; j < 3; j++) plan_dispatch_drop_job(dispatch, j);
    plan_dispatch_over(dispatch, job, 1);
    assert_int_equal(plan_dispatch_next(dispatch, 1, &out, &found, &err), STATUS_OK);
    assert_false(found);
    plan_dispatch_destroy(dispatch);
    plan_release(&plan);
}

/* --- the file ----------------------------------------------------------------------------------- */

static void test_written_and_read(void **state)
{
    (void)state;
    struct plan plan, again = {0};
    struct error err = {0};
    const char *const path = BINARY_DIR "/test_any_order.json";
    make_plan(&plan);
    if (plan_write(&plan, path, &err) != STATUS_OK) fail_msg("%s", err.text);
    if (plan_read(path, &again, &err) != STATUS_OK) fail_msg("%s", err.text);
    remove(path);
    assert_true(again.any_order);
    assert_int_equal(plan_fingerprint(&again), plan_fingerprint(&plan));
    again.any_order = false; /* the fingerprint knows of it */
    assert_true(plan_fingerprint(&again) != plan_fingerprint(&plan));
    plan_release(&again);
    plan_release(&plan);
}

/* --- the judge ---------------------------------------------------------------------------------- */

static void expect(struct plan *plan, const char *complaint)
{
    struct error err = {0};
    assert_int_equal(plan_check(plan, &err), STATUS_CHECK);
    if (!strstr(err.text, complaint)) fail_msg("'%s' (expected '%s')", err.text, complaint);
    plan_release(plan);
}

/* Returns the lowest slot of a task of this job. */
static struct plan_slot *lowest_slot(struct plan *plan, uint32_t job)
{
    struct plan_slot *lowest = NULL;
    for (uint32_t i = 0; i < plan->task_count; i++) {
        const struct plan_unit *unit = &plan->units[plan->tasks[i].unit];
        for (uint32_t a = 0; a < unit->acquire_count && unit->job == job; a++) {
            struct plan_slot *slot = &plan->slots[plan->layouts[plan->tasks[i].layout + a]];
            if (!lowest || slot->offset_bytes < lowest->offset_bytes) lowest = slot;
        }
    }
    assert_non_null(lowest);
    return lowest;
}

static void test_memory_of_two_jobs(void **state)
{
    (void)state;
    struct plan plan;
    make_plan(&plan); /* the second job is above the first one on device 1 */
    lowest_slot(&plan, 1)->offset_bytes -= 64;
    expect(&plan, "jobs may be in any order, and job-0 has bytes 0 to");

    make_plan(&plan);
    plan.choice_count = 1;
    plan.segments[plan.segment_count - 1].task_count--;
    expect(&plan, "choices in a plan with gangs");
}

static void fix_order(struct job_set *jobs, struct planner_options *options)
{
    (void)jobs;
    options->live = false;
}

/* A job on devices that no other job has may be planned to begin there: a reservation, which keeps an order. */
static void name_devices(struct job_set *jobs, struct planner_options *options)
{
    static uint32_t devices[] = {3};
    fix_order(jobs, options);
    jobs->jobs[2].devices = devices;
    jobs->jobs[2].device_count = 1;
    jobs->jobs[2].parallel.first_device = 0;
}

static void test_plans_with_an_order(void **state)
{
    (void)state;
    struct plan plan;
    struct error err = {0};
    if (try_plan(name_devices, &plan, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_true(!plan_is_open(&plan) && plan.reservation_count > 0);
    plan.any_order = true;
    expect(&plan, "jobs may be in any order, and the plan has reservations");
}

/* --- refusals ----------------------------------------------------------------------------------- */

static void one_spilled(struct job_set *jobs, struct planner_options *options)
{
    (void)options;
    jobs->jobs[1].parallel = (struct parallel){0};
}

static void one_with_devices(struct job_set *jobs, struct planner_options *options)
{
    name_devices(jobs, options);
    options->live = true;
}

static void turns_below(struct job_set *jobs, struct planner_options *options)
{
    (void)jobs;
    options->host = PLANNER_HOST_TURNS;
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        void (*change)(struct job_set *jobs, struct planner_options *options);
        const char *says;
    } cases[] = {
        {one_spilled, "--dispatch live asks about jobs that are all spilled or all parallel, and job 'job-1' is not "
                      "parallel"},
        {one_with_devices, "--dispatch live, and job 'job-2' has devices of its own while it runs (expected no "
                           "'devices', or 'first_device' in 'parallel')"},
        {turns_below, "--dispatch live for parallel jobs that take turns in host memory"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct plan plan;
        struct error err = {0};
        assert_int_equal(try_plan(cases[i].change, &plan, &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, cases[i].says);
        plan_release(&plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_minibatches),      cmocka_unit_test(test_dropped),
        cmocka_unit_test(test_written_and_read), cmocka_unit_test(test_memory_of_two_jobs),
        cmocka_unit_test(test_plans_with_an_order), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests_name("any_order", tests, NULL, NULL);
}
