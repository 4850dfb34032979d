/*
 * planner/policy/plan_dispatch.h and the choices of plan.h, without anything that runs: each job's tasks come in
 * their order, no device has more of them than slots, neighbours do not share a weight buffer; choices survive
 * writing and reading; and plan_check() names the fault of a wrong choice.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "planner/check/plan_check.h"
#include "planner/files/plan_io.h"
#include "planner/policy/plan_executed.h"
#include "planner/policy/plan_dispatch.h"
#include "planner/policy/policies.h"
#include "planner/strategy/planner.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_seed.h"

enum { BLOCKS = 3, WIDTH = 32, VOCABULARY = 97, JOBS = 3, MINIBATCHES = 5, DEVICES = 2, WEIGHT_BUFFERS = 3 };

static void make_plan(struct plan *plan)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    test_hardware(&hardware, DEVICES, 1200000, 10e9);
    test_gpt_jobs(&jobs, JOBS, BLOCKS, WIDTH, VOCABULARY, MINIBATCHES);
    const struct planner_options options = {.live = true,
                                            .optimizer = PLANNER_PLACE_DEVICE,
                                            .activations = PLANNER_AUTO,
                                            .weight_buffers = WEIGHT_BUFFERS,
                                            .shards = 4};
    *plan = (struct plan){0};
    if (planner_plan(&hardware, &jobs, &options, plan, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_true(plan->choice_count > 0);
}

/* --- orders ------------------------------------------------------------------------------------- */

/* Returns true if two tasks on one device share bytes of large slots. All share workspace and the like. */
static bool share_state(const struct plan *plan, const struct plan_task *a, const struct plan_task *b)
{
    const struct plan_unit *units[] = {&plan->units[a->unit], &plan->units[b->unit]};
    const struct plan_task *tasks[] = {a, b};
    struct plan_slot slots[2][64];
    uint32_t counts[2] = {0};
    for (uint32_t side = 0; side < 2; side++) {
        uint32_t next = tasks[side]->layout;
        for (uint32_t o = 0; o < units[side]->op_count; o++) {
            const struct plan_op *op = &plan->ops[units[side]->first_op + o];
            for (uint32_t i = 0; i < op->access_count; i++) {
                const struct plan_access *access = &plan->accesses[op->first_access + i];
                if (!(access->flags & ACCESS_ACQUIRE)) continue;
                const struct plan_slot *slot = &plan->slots[plan->layouts[next++]];
                uint32_t kind = plan->buffers[access->buffer].kind;
                if (kind == BUFFER_STATE || kind == BUFFER_PARAMETERS) slots[side][counts[side]++] = *slot;
            }
        }
    }
    for (uint32_t i = 0; i < counts[0]; i++)
        for (uint32_t k = 0; k < counts[1]; k++)
            if (slots[0][i].offset_bytes < slots[1][k].offset_bytes + slots[1][k].bytes &&
                slots[1][k].offset_bytes < slots[0][i].offset_bytes + slots[0][i].bytes)
                return true;
    return false;
}

struct running {
    uint32_t job, device;
};

/* Units end in random order. The executed order is a valid plan, whatever the policy. */
static void test_any_order_is_a_plan(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("test_plan_dispatch");
    struct plan plan;
    make_plan(&plan);
    uint64_t total = 0;
    for (uint32_t s = 0; s < plan.segment_count; s++)
        total += (uint64_t)plan.segments[s].task_count * plan.segments[s].repeat_count;
    struct plan_task *order = calloc(total, sizeof *order);
    assert_non_null(order);
    uint64_t fingerprints[20];
    for (uint64_t round = 0; round < ARRAY_COUNT(fingerprints); round++) {
        static const struct policy *const policies[] = {&policy_random, &policy_fifo, &policy_sharded_lrtf};
        const struct plan_dispatch_options options = {.policy = policies[round % 3], .seed = round};
        struct plan_dispatch *dispatch = NULL;
        struct error err = {0};
        struct running running[DEVICES * WEIGHT_BUFFERS];
        uint32_t running_count = 0, slots[DEVICES] = {0};
        uint64_t count = 0, shared = 0;
        const struct plan_task *last[DEVICES] = {NULL};
        double now_s = 0;
        if (plan_dispatch_create(&plan, &options, &dispatch, &err) != STATUS_OK) fail_msg("%s", err.text);
        for (;;) {
            struct plan_dispatched next;
            bool found;
            if (plan_dispatch_next(dispatch, now_s, &next, &found, &err) != STATUS_OK) fail_msg("%s", err.text);
            if (found) {
                uint32_t device = next.task->device;
                assert_true(count < total);
                order[count++] = *next.task;
                assert_true(next.decided); /* nothing of these jobs follows */
                assert_true(++slots[device] <= WEIGHT_BUFFERS);
                shared += last[device] && share_state(&plan, last[device], next.task);
                last[device] = next.task;
                running[running_count++] = (struct running){plan.units[next.task->unit].job, device};
                continue;
            }
            if (running_count == 0) break;
            uint32_t ends = (uint32_t)random_below(seed + round, count * 8 + running_count, running_count);
            now_s += 0.001;
            plan_dispatch_over(dispatch, running[ends].job, now_s);
            slots[running[ends].device]--;
            running[ends] = running[--running_count];
        }
        assert_int_equal(count, total);
        assert_int_equal(shared, 0);
        assert_int_equal(plan_dispatch_decisions(dispatch), total);
        plan_dispatch_destroy(dispatch);
        struct plan_executed executed;
        assert_int_equal(plan_executed_make(&plan, order, (uint32_t)count, &executed, &err), STATUS_OK);
        if (plan_check(&executed.plan, &err) != STATUS_OK) fail_msg("%s", err.text);
        fingerprints[round] = plan_fingerprint(&executed.plan);
        plan_executed_release(&executed);
    }
    assert_true(fingerprints[0] != fingerprints[3] && fingerprints[0] != fingerprints[1]);
    free(order);
    plan_release(&plan);
}

/* A dropped job has no further units; the others end without a policy. */
static void test_dropped(void **state)
{
    (void)state;
    struct plan plan;
    struct plan_dispatch *dispatch = NULL;
    struct error err = {0};
    make_plan(&plan);
    const struct plan_dispatch_options options = {.policy = &policy_spill_sequential};
    assert_int_equal(plan_dispatch_create(&plan, &options, &dispatch, &err), STATUS_OK);
    uint64_t of_job[JOBS] = {0}, on_device[DEVICES] = {0};
    for (uint32_t round = 0;; round++) {
        struct plan_dispatched next;
        bool found;
        assert_int_equal(plan_dispatch_next(dispatch, round, &next, &found, &err), STATUS_OK);
        if (!found) break;
        uint32_t job = plan.units[next.task->unit].job;
        of_job[job]++;
        on_device[next.task->device]++;
        if (round == 7) {
            assert_int_equal(on_device[1], 0); /* it uses one device */
            plan_dispatch_drop_job(dispatch, 0);
            plan_dispatch_end_policy(dispatch);
        }
        assert_int_equal(plan_dispatch_running(dispatch), 1);
        plan_dispatch_over(dispatch, job, round + 0.5);
    }
    assert_true(of_job[0] <= 8);
    assert_int_equal(of_job[1], of_job[2]);
    assert_int_equal(plan_dispatch_decisions(dispatch), 8);
    plan_dispatch_destroy(dispatch);
    plan_release(&plan);
}

/* --- the file ----------------------------------------------------------------------------------- */

static void test_written_and_read(void **state)
{
    (void)state;
    struct plan plan, again = {0};
    struct error err = {0};
    const char *const path = BINARY_DIR "/test_plan_dispatch.json";
    make_plan(&plan);
    if (plan_write(&plan, path, &err) != STATUS_OK) fail_msg("%s", err.text);
    if (plan_read(path, &again, &err) != STATUS_OK) fail_msg("%s", err.text);
    remove(path);
    assert_int_equal(again.choice_count, plan.choice_count);
    assert_int_equal(plan_fingerprint(&again), plan_fingerprint(&plan));
    again.choice_count--; /* the fingerprint knows of each */
    again.task_count--;
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

static void test_what_is_wrong_with_a_choice(void **state)
{
    (void)state;
    struct plan plan;
    make_plan(&plan); /* all slots at one place */
    for (uint32_t s = 0; s < plan.slot_count; s++) plan.slots[s].offset_bytes = 0;
    expect(&plan, "of a choice on device 0 overlap");

    make_plan(&plan);
    struct error err = {0};
    uint64_t end, memory;
    uint32_t slot, device;
    for (uint32_t s = 0; s < plan.slot_count; s++) plan.slots[s].offset_bytes += 1 << 20;
    assert_int_equal(plan_check(&plan, &err), STATUS_CHECK);
    const char *said = strstr(err.text, "memory: slot ");
    assert_non_null(said);
    assert_int_equal(sscanf(said,
                            "memory: slot %" SCNu32 " of a choice ends at byte %" SCNu64
                            ", device %" SCNu32 " at %" SCNu64,
                            &slot, &end, &device, &memory), 4);
    assert_true(end == plan.slots[slot].offset_bytes + plan.slots[slot].bytes && end > memory);
    assert_true(memory == plan.hardware.devices[device].memory_bytes);
    plan_release(&plan);

    make_plan(&plan); /* the last device has none for the last unit */
    uint32_t unit = plan.tasks[plan.task_count - 1].unit;
    while (plan.tasks[plan.task_count - 1].unit == unit &&
           plan.tasks[plan.task_count - 1].device == DEVICES - 1) {
        plan.task_count--;
        plan.choice_count--;
    }
    expect(&plan, "there are choices, and none for it on device 1");

    make_plan(&plan);
    plan.choice_count = plan.task_count + 1;
    expect(&plan, "choices of");

    make_plan(&plan);
    plan.tasks[plan.task_count - 1].peer = 0;
    expect(&plan, "has peer 0");
}

/* A plan with only one order may keep data on a device; it cannot have choices. */
static void test_units_that_leave_something(void **state)
{
    (void)state;
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    struct plan plan = {0};
    test_hardware(&hardware, 1, 64 << 20, 10e9);
    test_gpt_jobs(&jobs, 1, BLOCKS, WIDTH, VOCABULARY, MINIBATCHES);
    const struct planner_options options = {
        .optimizer = PLANNER_PLACE_DEVICE, .activations = ACTIVATIONS_KEEP, .shards = 3};
    assert_int_equal(planner_plan(&hardware, &jobs, &options, &plan, &err), STATUS_OK);
    plan.choice_count = 1; /* its last task, said to be one */
    plan.segments[plan.segment_count - 1].task_count--;
    if (plan.segments[plan.segment_count - 1].task_count == 0) plan.segment_count--;
    assert_int_equal(plan_check(&plan, &err), STATUS_CHECK);
    assert_non_null(strstr(err.text, "has choices"));
    plan_release(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_order_is_a_plan),
        cmocka_unit_test(test_dropped),
        cmocka_unit_test(test_written_and_read),
        cmocka_unit_test(test_what_is_wrong_with_a_choice),
        cmocka_unit_test(test_units_that_leave_something),
    };
    return cmocka_run_group_tests_name("plan_dispatch", tests, NULL, NULL);
}
