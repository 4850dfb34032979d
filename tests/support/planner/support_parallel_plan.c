#include "tests/support/planner/support_parallel_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "planner/check/plan_check.h"
#include "sim/sim.h"
#include "tests/support/planner/support_planner.h"

void test_parallel_machine(struct hardware *out, uint32_t devices, double rate, double latency_s)
{
    struct error err = {0};
    test_hardware(out, devices, UINT64_C(1) << 40, 1e10);
    const struct hardware_options options = {.p2p_bytes_per_s = rate};
    if (hardware_adjust(out, &options, &err)) fail_msg("%s", err.text);
    for (uint32_t l = devices; l < out->link_count; l++) out->links[l].latency.value = latency_s;
    out->stack = STACK_FRAMEWORKS; /* states are in place, because closed forms cover only passes */
}

void test_parallel_plan(struct hardware *hardware, struct job_set *jobs, struct plan *out)
{
    struct error err = {0};
    const struct planner_options options = {.weight_buffers = 0};
    hardware->stack = STACK_FRAMEWORKS;
    if (planner_plan(hardware, jobs, &options, out, &err)) fail_msg("%s", err.text);
}

struct test_parallel_outcome test_parallel_simulate(const struct plan *plan, bool no_fold)
{
    struct sim_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    struct sim_options options = {.no_fold = no_fold};
    if (sim_run(plan, &options, &result, &trace, &err)) fail_msg("%s", err.text);
    struct test_parallel_outcome out = {result.makespan_s, result.represented, result.operations, 0};
    for (uint32_t p = 1; p <= trace_device_count(&trace); p++) {
        assert_true(trace.places[p].peak_bytes <= plan_device_bytes(plan, p - 1));
        if (trace.places[p].peak_bytes > out.peak_bytes) out.peak_bytes = trace.places[p].peak_bytes;
    }
    sim_result_release(&result);
    trace_release(&trace);
    return out;
}

/* Stage s does `stages` - 1 - s forward passes first, then alternates. */
double test_parallel_1f1b_s(const struct test_parallel_stage *of, uint32_t stages, uint32_t microbatches,
                            bool tied)
{
    double forward_s[TEST_PARALLEL_STAGES_MAX][TEST_PARALLEL_MICROBATCHES_MAX];
    double backward_s[TEST_PARALLEL_STAGES_MAX][TEST_PARALLEL_MICROBATCHES_MAX];
    double free_s[TEST_PARALLEL_STAGES_MAX] = {0}, end_s = 0;
    uint32_t forwards[TEST_PARALLEL_STAGES_MAX] = {0}, backwards[TEST_PARALLEL_STAGES_MAX] = {0};
    assert_true(stages <= TEST_PARALLEL_STAGES_MAX && microbatches <= TEST_PARALLEL_MICROBATCHES_MAX);
    for (uint32_t left = 2 * stages * microbatches; left > 0;)
        for (uint32_t s = 0; s < stages; s++) {
            bool ahead = forwards[s] - backwards[s] < stages - s;
            bool forward = forwards[s] < microbatches && ahead, first = forward ? s == 0 : s + 1 == stages;
            uint32_t n = forward ? forwards[s] : backwards[s], from = forward ? s - 1 : s + 1;
            if (n == microbatches || (!first && (forward ? forwards : backwards)[from] <= n)) continue;
            double input_s = first ? 0 : (forward ? forward_s : backward_s)[from][n];
            free_s[s] = (input_s > free_s[s] ? input_s : free_s[s]) + (forward ? of[s].forward_s : of[s].backward_s);
            (forward ? forward_s : backward_s)[s][n] = free_s[s];
            (forward ? forwards : backwards)[s]++;
            left--;
        }
    if (tied) free_s[0] = free_s[stages - 1] = fmax(free_s[0], free_s[stages - 1]);
    for (uint32_t s = 0; s < stages; s++)
        if (free_s[s] + of[s].update_s > end_s) end_s = free_s[s] + of[s].update_s;
    return end_s;
}

void test_parallel_near(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-9 * fabs(expected))) fail_msg("%.17g, expected %.17g", found, expected);
}

struct plan_task *test_parallel_task(struct plan *plan, uint32_t pass, uint32_t run, uint32_t n)
{
    for (uint32_t i = 0; i < plan->task_count; i++) {
        const struct plan_unit *unit = &plan->units[plan->tasks[i].unit];
        if (unit->pass == pass && unit->shard == run && n-- == 0) return &plan->tasks[i];
    }
    fail_msg("no such task");
    return NULL;
}

struct plan_op *test_parallel_op(struct plan *plan, uint32_t pass, uint32_t run, uint32_t kind)
{
    const struct plan_unit *unit = &plan->units[test_parallel_task(plan, pass, run, 0)->unit];
    for (uint32_t o = 0; o < unit->op_count; o++)
        if (plan->ops[unit->first_op + o].kind == kind) return &plan->ops[unit->first_op + o];
    fail_msg("no such operation");
    return NULL;
}

struct plan_op *test_parallel_op_on(struct plan *plan, uint32_t pass, uint32_t run, uint32_t stream)
{
    const struct plan_unit *unit = &plan->units[test_parallel_task(plan, pass, run, 0)->unit];
    for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
        if (plan->ops[o].stream == stream) return &plan->ops[o];
    fail_msg("nothing on stream %u", stream);
    return NULL;
}

struct plan_access *test_parallel_access(struct plan *plan, struct plan_op *op, uint32_t kind)
{
    for (uint32_t a = 0; a < op->access_count; a++)
        if (plan->buffers[plan->accesses[op->first_access + a].buffer].kind == kind)
        return &plan->accesses[op->first_access + a];
    fail_msg("no access of kind %u", kind);
    return NULL;
}

struct plan_buffer *test_parallel_buffer(struct plan *plan, uint32_t kind, uint32_t shard, bool on_device)
{
    for (uint32_t b = 0; b < plan->buffer_count; b++)
        if (plan->buffers[b].kind == kind && plan->buffers[b].shard == shard && plan->buffers[b].on_device == on_device)
            return &plan->buffers[b];
    fail_msg("no buffer of kind %u", kind);
    return NULL;
}

uint64_t test_parallel_copied(const struct plan *plan, uint32_t stream, uint32_t kind)
{
    uint64_t sum = 0;
    for (uint32_t s = 0; s < plan->segment_count; s++)
        for (uint32_t i = 0; i < plan->segments[s].task_count; i++) {
            const struct plan_unit *unit = &plan->units[plan->tasks[plan->segments[s].first_task + i].unit];
            for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++) {
                const struct plan_op *op = &plan->ops[o];
                if (op->kind != OP_COPY || op->stream != stream) continue;
                if (plan->buffers[plan->accesses[op->first_access].buffer].kind == kind)
                    sum += op->bytes * plan->segments[s].repeat_count;
            }
        }
    return sum;
}

void test_parallel_swap_places(struct plan_task *a, struct plan_task *b)
{
    uint32_t gang = a->gang, device = a->device;
    a->gang = b->gang;
    a->device = b->device;
    b->gang = gang;
    b->device = device;
}

void test_parallel_swap(struct plan_task *a, struct plan_task *b)
{
    struct plan_task swap = *a;
    *a = *b;
    *b = swap;
}

void test_parallel_broken(const struct test_parallel_damage *cases, size_t count,
                          void (*make)(struct plan *out, uint32_t variant))
{
    for (size_t i = 0; i < count; i++) {
        struct plan plan;
        struct error err = {0};
        make(&plan, cases[i].variant);
        cases[i].damage(&plan);
        enum status status = plan_check(&plan, &err);
        if (status != STATUS_CHECK || !strstr(err.text, cases[i].complaint))
            print_error("case %zu: '%s' does not say '%s'\n", i, err.text, cases[i].complaint);
        assert_true(status == STATUS_CHECK && strstr(err.text, cases[i].complaint));
        plan_release(&plan);
    }
}

void test_parallel_or_spilled(uint64_t key, bool parallel, struct plan *plan)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    const struct planner_options options = {.weight_buffers = 0};
    struct test_random_layers layers = {.key = key, .copy_weight = 1};
    *plan = (struct plan){0};
    if (parallel) {
        test_parallel_machine(&hardware, 4, 1e9, 1e-6);
        test_profile_jobs(&jobs, 1, 8, 2, test_random_layer, &layers);
        jobs.jobs[0].microbatches = 8;
        jobs.jobs[0].parallel =
            (struct parallel){.tensor = 1, .pipeline = 2, .data = 2, .chunks = 1, .schedule = PIPELINE_1F1B};
    } else {
        test_hardware(&hardware, 2, 500000, 1e10);
        test_profile_jobs(&jobs, 3, 6, 4, test_random_layer, &layers);
    }
    if (planner_plan(&hardware, &jobs, &options, plan, &err)) fail_msg("%s", err.text);
}
