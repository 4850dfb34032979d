/* Values that follow from a plan's tables: sizes, names, the fingerprint. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "planner/plan_memory.h"
#include "tests/support/planner/support_plan.h"

static const struct draft_shape shape = {.devices = 2, .jobs = 2, .middle = 1, .minibatches = 3,
                                         .slices = 2};

static void test_sizes(void **state)
{
    (void)state;
    struct plan_slot slots[] = {{0, 100}, {512, 40}, {128, 400}};
    uint32_t layouts[] = {2, 0, 1};
    struct plan_unit units[] = {{.op_count = 3, .acquire_count = 1},
                                {.op_count = 5, .acquire_count = 2}};
    struct plan_task tasks[] = {{0, 0, PLAN_NONE, PLAN_NONE, 0}, {1, 1, PLAN_NONE, PLAN_NONE, 1},
                                         {0, 1, PLAN_NONE, PLAN_NONE, 1}};
    struct plan_segment segments[] = {{0, 2, 7}, {1, 2, 2}};
    struct plan_buffer buffers[] = {{.bytes = 300, .on_device = true},
                                    {.bytes = 1200},
                                    {.bytes = 34}};
    struct plan plan = {.slots = slots, .layouts = layouts, .units = units,
                        .tasks = tasks, .task_count = 3,
                        .segments = segments, .segment_count = 2,
                        .buffers = buffers, .buffer_count = 3};
    struct hardware_device devices[] = {{.host = 0}, {.host = 1}};
    plan.hardware.devices = devices;
    plan.hardware.device_count = 2;
    /* (3 + 5) * 7 + (5 + 3) * 2 */
    assert_int_equal(plan_operations(&plan), 72);
    assert_int_equal(plan_host_bytes(&plan), 1234);
    assert_int_equal(plan_device_bytes(&plan, 0), 528); /* only slot 2 */
    assert_int_equal(plan_device_bytes(&plan, 1), 552); /* slots 0 and 1, then 0 */
    assert_int_equal(plan_stream_count(&plan), 8);
    assert_int_equal(plan_stream(&plan, 1, STREAM_D2H), 5);
    assert_int_equal(plan_stream(&plan, 0, STREAM_HOST), 6);
    assert_int_equal(plan_host_stream(&plan, 0, STREAM_CPU), 7);
    plan.hardware.host_nodes = 2;
    assert_int_equal(plan_stream_count(&plan), 10);
    assert_int_equal(plan_stream(&plan, 0, STREAM_CPU), 7);
    assert_int_equal(plan_stream(&plan, 1, STREAM_HOST), 8);
    assert_int_equal(plan_stream(&plan, 1, STREAM_CPU), 9);
    plan.hardware.host_nodes = 0;
    buffers[1].bytes = UINT64_MAX - 20;
    assert_true(plan_host_bytes(&plan) == UINT64_MAX);
}

/*
 *     0        100  128         512  528  552
 *     |workspace|   |    states (two shards)   |
 *                   |    boundaries   |
 */
static void test_memory(void **state)
{
    (void)state;
    struct plan_slot slots[] = {{0, 100}, {512, 40}, {128, 400}, {128, 424}, {0, 0}};
    const uint8_t workspace = 1 << MEMORY_WORKSPACE, states = 1 << MEMORY_STATES;
    const uint8_t boundaries = 1 << MEMORY_BOUNDARIES, uses[] = {workspace, states, boundaries, states, 1};
    const struct plan plan = {.slots = slots, .slot_count = 5};
    const struct plan_memory_line expected[] = {
        {states, 24}, {states | boundaries, 400}, {workspace, 100}, {0, 28}};
    struct plan_memory memory;
    struct error err = {0};
    char text[PLAN_MEMORY_TEXT_BYTES];
    assert_int_equal(plan_memory_count(&plan, uses, &memory, &err), STATUS_OK);
    assert_int_equal(memory.bytes, 552);
    assert_int_equal(memory.count, ARRAY_COUNT(expected));
    for (uint32_t i = 0; i < memory.count; i++) {
        assert_int_equal(memory.lines[i].uses, expected[i].uses);
        assert_int_equal(memory.lines[i].bytes, expected[i].bytes);
    }
    assert_string_equal(plan_memory_text(expected[1].uses, text), "states or boundaries");
    assert_string_equal(plan_memory_text(0, text), "between slots");
    assert_string_equal(plan_memory_text((1 << MEMORY_USE_COUNT) - 1, text),
                        "states that stay or states or activations or token tables or boundaries or "
                        "workspace");
    const uint8_t none[5] = {0};
    assert_int_equal(plan_memory_count(&plan, none, &memory, &err), STATUS_OK);
    assert_int_equal(memory.bytes, 0);
    assert_int_equal(memory.count, 0);
}

static void test_names(void **state)
{
    (void)state;
    char text[PLAN_TEXT_BYTES];
    struct plan plan;
    support_plan(&shape, &plan);
    const struct plan_unit *unit = &plan.units[0];
    static const char *const expected[] = {
        "job-0 shard 0 batch", "h2d of batch of job-0", "h2d of state of job-0 shard 0",
        "job-0 shard 0 forward slice 0",
    };
    for (uint32_t o = 0; o < 4; o++)
        assert_string_equal(plan_op_text(&plan, unit, &plan.ops[unit->first_op + o], text),
                            expected[o]);
    assert_string_equal(plan_buffer_text(&plan, 3, text), "parameters of job-0 shard 0 variant 1");
    /* 32 buffers per job */
    assert_string_equal(plan_buffer_text(&plan, plan.buffer_count, text), "buffer 64");
    plan_release(&plan);
}

/* --- fingerprint ---------------------------------------------------------------------------- */

/* Each changes one thing that interpreters act on. */
static void change_job(struct plan *plan) { plan->jobs.jobs[1].seed++; }
static void change_rate(struct plan *plan) { plan->jobs.jobs[0].optimizer.learning_rate *= 2; }
static void change_precision(struct plan *plan) { plan->jobs.jobs[0].precision = PRECISION_BF16; }
static void change_moments(struct plan *plan)
{
    plan->jobs.jobs[0].optimizer.moments = PRECISION_BF16;
}
static void change_name(struct plan *plan) { plan->jobs.jobs[0].name = "other"; }
static void change_memory(struct plan *plan) { plan->hardware.devices[1].memory_bytes++; }
static void change_activations(struct plan *plan) { plan->job_activations[1] = ACTIVATIONS_KEEP; }
static void change_shard(struct plan *plan) { plan->shards[2].layer_count++; }
static void change_held(struct plan *plan) { plan->shards[2].inputs_only = true; }
static void change_item(struct plan *plan) { plan->items[1].k++; }
static void change_buffer(struct plan *plan) { plan->buffers[4].variant++; }
static void change_slot(struct plan *plan) { plan->slots[3].offset_bytes += 64; }
static void change_access(struct plan *plan) { plan->accesses[7].flags ^= ACCESS_RELEASE; }
static void change_bytes(struct plan *plan) { plan->ops[1].bytes--; }
static void change_rows(struct plan *plan) { plan->ops[3].row_count--; }
static void change_work(struct plan *plan) { plan->ops[3].work++; }
static void change_unit(struct plan *plan) { plan->units[2].ends_minibatch ^= true; }
static void change_device(struct plan *plan) { plan->tasks[5].device ^= 1; }
static void change_layout(struct plan *plan) { plan->layouts[plan->tasks[4].layout]++; }
static void change_repeat(struct plan *plan) { plan->segments[0].repeat_count++; }
static void cut_unit(struct plan *plan) { plan->units[1].op_count--; }

static void test_fingerprint(void **state)
{
    (void)state;
    void (*const changes[])(struct plan *) = {
        change_job,    change_rate,   change_name,   change_memory, change_activations,
        change_shard,  change_item,   change_buffer, change_slot,   change_access,
        change_bytes,  change_rows,   change_work,   change_unit,   change_device,
        change_layout, change_repeat, cut_unit,      change_held,   change_precision,
        change_moments,
    };
    enum { CHANGES = sizeof changes / sizeof changes[0] };
    uint64_t found[CHANGES + 1];
    for (size_t i = 0; i <= CHANGES; i++) {
        struct plan plan;
        support_plan(&shape, &plan);
        if (i < CHANGES) changes[i](&plan);
        found[i] = plan_fingerprint(&plan);
        for (size_t j = 0; j < i; j++) assert_true(found[j] != found[i]);
        plan_release(&plan);
    }
}

/* Values without effect, and the arrangement of tables, do not count. */
static void test_fingerprint_ignores(void **state)
{
    (void)state;
    struct plan plan;
    support_plan(&shape, &plan);
    uint64_t before = plan_fingerprint(&plan);
    plan.policy = "another";
    plan.lower_bound_s = 7;
    plan.ops[1].work = 3; /* a copy */
    struct plan_task *task = &plan.tasks[plan.task_count - 1];
    uint32_t count = plan.units[task->unit].acquire_count;
    uint32_t *layouts = malloc((plan.layout_count + count) * sizeof *layouts);
    assert_non_null(layouts);
    memcpy(layouts, plan.layouts, plan.layout_count * sizeof *layouts);
    memcpy(layouts + plan.layout_count, plan.layouts + task->layout, count * sizeof *layouts);
    task->layout = plan.layout_count;
    plan.layouts = layouts;
    assert_true(plan_fingerprint(&plan) == before);
    free(layouts);
    plan_release(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_fingerprint),
        cmocka_unit_test(test_fingerprint_ignores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
