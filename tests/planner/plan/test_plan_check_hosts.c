/*
 * The judge's count of host memory, node by node, to the byte: buffers that several nodes have, staged buffers of each
 * task, sums above 2^64, and ranges of parallel jobs. Expected counts are made here, from the plan's tables.
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

#include "base/size.h"
#include "planner/check/plan_check.h"
#include "planner/plan_hosts.h"
#include "planner/strategy/planner.h"
#include "tests/support/planner/support_breakage.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/support_models.h"

enum { NODES = 2 };

#define JOB \
    "{\"spillway_jobs\": 1, \"jobs\": [{\"name\": \"a\", \"network\": \"%s\", \"sequence\": 32, " \
    "\"microbatch\": 1, %s}]}"

/* Makes a plan of job "a" for these nodes; device_bytes and storage unless 0. */
static void make(const char *machine, const char *network, const char *rest, const char *policy, uint64_t device_bytes,
                 uint64_t storage_bytes, struct plan *out)
{
    char text[1024];
    struct hardware hardware = {0};
    struct job_set jobs = {0};
    struct error err = {0};
    const struct planner_options options = {.policy = policy, .activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO,
                                            .storage = storage_bytes > 0 ? PLANNER_STORAGE_ALL : PLANNER_STORAGE_AUTO,
                                            .cuts = PLANNER_CUTS_BALANCED};
    const struct hardware_options sizes = {.device_memory_bytes = device_bytes, .storage_bytes = storage_bytes,
                                           .storage_bytes_per_s = storage_bytes > 0 ? 3e9 : 0};
    snprintf(text, sizeof text, JOB, network, rest);
    support_machine(machine, &hardware);
    if (hardware_adjust(&hardware, &sizes, &err) || support_jobs(text, ".", &jobs, &err)) fail_msg("%s", err.text);
    *out = (struct plan){0};
    if (planner_plan(&hardware, &jobs, &options, out, &err)) fail_msg("%s", err.text);
}

static void check_refused(const struct plan *plan, enum status status, const char *message)
{
    struct error err = {0};
    assert_int_equal(plan_check(plan, &err), status);
    assert_string_equal(err.text, message);
}

/* --- several nodes ---------------------------------------------------------------------------- */

/* Counts the bytes of host buffers that tasks on devices of a node access, each once. */
static uint64_t bytes_on(const struct plan *plan, uint32_t node)
{
    bool *counted = calloc(plan->buffer_count, sizeof *counted);
    uint64_t bytes = 0;
    assert_non_null(counted);
    for (uint32_t t = 0; t < plan->task_count; t++) {
        const struct plan_unit *unit = &plan->units[plan->tasks[t].unit];
        if (plan->hardware.devices[plan->tasks[t].device].host != node) continue;
        for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
            for (uint32_t a = 0; a < plan->ops[o].access_count; a++) {
                const uint32_t buffer = plan->accesses[plan->ops[o].first_access + a].buffer;
                if (plan->buffers[buffer].on_device || counted[buffer]) continue;
                counted[buffer] = true;
                bytes += plan->buffers[buffer].bytes;
            }
    }
    free(counted);
    return bytes;
}

/* Stages on two nodes, the second of which has more: each has its own data and boundaries once, whoever uses them. */
static void several_nodes(void **state)
{
    (void)state;
    struct plan plan;
    char text[160];
    make("2x nc24v3", "tinyllama-1.1b",
         "\"minibatches\": 2, \"evaluate\": {\"every\": 1, \"minibatches\": 1}, \"devices\": [4, 5, 6, 7, 0, 1, 2, 3]",
         "model-parallel", 0, 0, &plan);
    const uint64_t first = bytes_on(&plan, 0), second = bytes_on(&plan, 1);
    print_message("%" PRIu64 " and %" PRIu64 " bytes\n", first, second);
    assert_true(first > 0 && second > first);
    struct plan_host_range none = {0};
    plan.host_ranges = &none; /* an empty range is none */
    plan.hardware.host_bytes.value = NODES * (double)second;
    struct error err = {0};
    if (plan_check(&plan, &err)) fail_msg("%s", err.text);
    plan.hardware.host_bytes.value = NODES * (double)(second - 1);
    snprintf(text, sizeof text, "memory: the host buffers of node 1 are %" PRIu64 " bytes (host memory is %" PRIu64 ")",
             second, second - 1);
    check_refused(&plan, STATUS_CHECK, text);
    /* the first node is compared first: what the second used before counts on the first, too */
    plan.hardware.host_bytes.value = NODES * (double)(first - 1);
    snprintf(text, sizeof text, "memory: the host buffers of node 0 are %" PRIu64 " bytes (host memory is %" PRIu64 ")",
             first, first - 1);
    check_refused(&plan, STATUS_CHECK, text);
    none.bytes = UINT64_C(1) << 40; /* a range is on one node */
    struct error why = {0};
    assert_int_equal(plan_check(&plan, &why), STATUS_CHECK);
    if (!strstr(why.text, " of node ") || !strstr(why.text, " uses it")) fail_msg("%s", why.text);
    plan.host_ranges = NULL;
    plan_release(&plan);
}

/* --- staged buffers ----------------------------------------------------------------------------- */

/* Finds the place of a unit's first staged buffer in layouts; PLAN_NONE: it has none. */
static uint32_t staged_at(const struct plan *plan, const struct plan_unit *unit)
{
    uint32_t at = 0;
    for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
        for (uint32_t a = plan->ops[o].first_access; a < plan->ops[o].first_access + plan->ops[o].access_count; a++) {
            if (!(plan->accesses[a].flags & ACCESS_ACQUIRE)) continue;
            if (plan->buffers[plan->accesses[a].buffer].kind == BUFFER_STAGED) return at;
            at++;
        }
    return PLAN_NONE;
}

static uint64_t staged_end(const struct plan *plan)
{
    uint64_t end = 0;
    for (uint32_t t = 0; t < plan->task_count; t++) {
        const struct plan_unit *unit = &plan->units[plan->tasks[t].unit];
        const uint32_t *slots = plan->layouts + plan->tasks[t].layout;
        uint32_t at = 0;
        for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
            for (uint32_t a = plan->ops[o].first_access; a < plan->ops[o].first_access + plan->ops[o].access_count; a++)
            {
                if (!(plan->accesses[a].flags & ACCESS_ACQUIRE)) continue;
                const struct plan_slot *slot = &plan->slots[slots[at++]];
                if (plan->buffers[plan->accesses[a].buffer].kind == BUFFER_STAGED &&
                    slot->offset_bytes + slot->bytes > end)
                    end = slot->offset_bytes + slot->bytes;
            }
    }
    return end;
}

/* One task's staged buffer lies after all others': it is counted, whichever task's it is. */
static void staged_of_each_task(void **state)
{
    (void)state;
    struct plan plan;
    uint32_t changed = 0;
    make("p3.16xlarge", "gpt2-tiny-bytes", "\"minibatches\": 3", "sharded-lrtf", 6 << 20, 1 << 30, &plan);
    const uint64_t memory = plan_host_fullest(&plan).memory_bytes, end = staged_end(&plan),
                   after = size_align(end, MEMORY_ALIGNMENT);
    uint32_t *layouts = calloc(plan.layout_count + (size_t)DRAFT_OPS_MAX, sizeof *layouts),
        *const old_layouts = plan.layouts;
    struct plan_slot *slots = calloc(plan.slot_count + 1, sizeof *slots), *const old_slots = plan.slots;
    assert_true(layouts && slots);
    memcpy(layouts, plan.layouts, plan.layout_count * sizeof *layouts);
    memcpy(slots, plan.slots, plan.slot_count * sizeof *slots);
    plan.layouts = layouts;
    plan.slots = slots;
    plan.slot_count++;
    plan.layout_count += DRAFT_OPS_MAX;
    plan.hardware.host_bytes.value = (double)memory;
    for (uint32_t t = 0; t < plan.task_count; t++) {
        struct plan_task *task = &plan.tasks[t];
        const uint32_t at = staged_at(&plan, &plan.units[task->unit]), old = task->layout;
        char text[160];
        if (at == PLAN_NONE) continue;
        assert_in_range(plan.units[task->unit].acquire_count, 1, DRAFT_OPS_MAX);
        const uint64_t bytes = slots[layouts[old + at]].bytes;
        task->layout = plan.layout_count - DRAFT_OPS_MAX;
        memcpy(layouts + task->layout, layouts + old, plan.units[task->unit].acquire_count * sizeof *layouts);
        layouts[task->layout + at] = plan.slot_count - 1;
        slots[plan.slot_count - 1] = (struct plan_slot){after, bytes};
        snprintf(text, sizeof text, "memory: the host buffers are %" PRIu64 " bytes (host memory is %" PRIu64 ")",
                 memory + after - end + bytes, memory);
        check_refused(&plan, STATUS_CHECK, text);
        test_parallel_swap(task, plan.tasks); /* memory is counted before the order is checked */
        check_refused(&plan, STATUS_CHECK, text);
        test_parallel_swap(task, plan.tasks);
        task->layout = old;
        changed++;
    }
    assert_true(changed > 4);
    plan.layouts = old_layouts;
    plan.slots = old_slots;
    free(layouts);
    free(slots);
    plan_release(&plan);
}

/* --- sums and tables ------------------------------------------------------------------------------ */

/* Two buffers that no unit accesses, of 2^63 bytes each. */
static void sums_beyond_all(void **state)
{
    (void)state;
    const struct draft_shape shape = {.devices = 1, .jobs = 1, .middle = 2, .minibatches = 1};
    struct plan plan;
    support_plan(&shape, &plan);
    struct plan_buffer *buffers, *const old = plan.buffers;
    buffers = calloc(plan.buffer_count + 2, sizeof *buffers);
    assert_non_null(buffers);
    memcpy(buffers, old, plan.buffer_count * sizeof *buffers);
    for (uint32_t shard = 1; shard <= 2; shard++)
        buffers[plan.buffer_count++] = (struct plan_buffer){.kind = BUFFER_ACTIVATIONS, .shard = shard,
                                                            .bytes = UINT64_C(1) << 63};
    plan.buffers = buffers;
    check_refused(&plan, STATUS_LIMIT, "host buffers of more than 2^64 bytes");
    plan.buffers = old;
    free(buffers);
    plan_release(&plan);
}

static void no_such_node(void **state)
{
    (void)state;
    const struct draft_shape shape = {.devices = 2, .jobs = 2, .middle = 1, .minibatches = 1};
    struct plan plan;
    support_plan(&shape, &plan);
    plan.hardware.devices[1].host = 1;
    check_refused(&plan, STATUS_CHECK, "form: device 1 is on node 1 (there are 1)");
    plan_release(&plan);
}

/* --- ranges of parallel jobs -------------------------------------------------------------------- */

static void ranges_of_parallel_jobs(void **state)
{
    (void)state;
    struct plan plan;
    struct plan_host_range range = {.bytes = UINT64_C(1) << 30};
    make("2x p3.16xlarge", "gpt2-tiny-bytes",
         "\"microbatches\": 4, \"minibatches\": 2, \"parallel\": {\"pipeline\": 2, \"data\": 2}", NULL, 0, 0, &plan);
    plan.host_ranges = &range;
    check_refused(&plan, STATUS_CHECK, "form: a has a range of host memory, and is parallel on a machine of several "
                                       "nodes");
    plan.hardware.host_nodes = 1;
    for (uint32_t d = 0; d < plan.hardware.device_count; d++) plan.hardware.devices[d].host = 0;
    check_refused(&plan, STATUS_CHECK, "task 0 (a shard 0 load): training: a is not in host memory yet (0 of 2 shards "
                                       "are)");
    plan.host_ranges = NULL;
    plan_release(&plan);

    test_parallel_or_spilled(1, true, &plan);
    plan.host_ranges = &range;
    check_refused(&plan, STATUS_CHECK, "form: job-0 has a range of host memory, and is parallel and only simulated");
    plan.host_ranges = NULL;
    plan_release(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_nodes),   cmocka_unit_test(staged_of_each_task),
        cmocka_unit_test(sums_beyond_all), cmocka_unit_test(no_such_node),
        cmocka_unit_test(ranges_of_parallel_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
