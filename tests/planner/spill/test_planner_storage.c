/*
 * States on storage: which are chosen, the bytes moved for them (a closed form), the limit of the time, and which
 * broken plans are refused.
 *
 * That training gives the same bits wherever they live is test_contract.c's matter.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "models/job/memory.h"
#include "planner/check/plan_check.h"
#include "planner/spill/cut/bound.h"
#include "planner/strategy/planner.h"
#include "sim/sim.h"
#include "tests/support/planner/support_planner.h"

enum { BLOCKS = 4, WIDTH = 64, VOCABULARY = 1021, SHARDS = BLOCKS + 2, KIB = 1 << 10 };
static const double read_rate = 2.5e8, write_rate = 1.5e8;

struct wish {
    uint32_t devices, jobs, storage, optimizer;
    uint64_t device_bytes, host_bytes, capacity, minibatches; /* 0: plenty, plenty, plenty, 3 */
    const char *policy;
};

static enum status make(const struct wish *wish, struct plan *plan, struct error *err)
{
    struct hardware hardware;
    struct job_set jobs;
    const struct planner_options options = {.policy = wish->policy,
                                            .no_persistence = true,
                                            .activations = ACTIVATIONS_RECOMPUTE,
                                            .optimizer = wish->optimizer,
                                            .storage = wish->storage,
                                            .shards = SHARDS};
    *plan = (struct plan){0};
    test_hardware(&hardware, wish->devices ? wish->devices : 1,
                  wish->device_bytes ? wish->device_bytes : 3 << 20, 1e10);
    hardware.host_bandwidth.value = 1e11;
    hardware.host_bandwidth.source = "made up";
    if (wish->host_bytes > 0) hardware.host_bytes.value = (double)wish->host_bytes;
    hardware.storage.capacity_bytes.value = wish->capacity ? (double)wish->capacity : 1e12;
    hardware.storage.read_rate.value = read_rate;
    hardware.storage.write_rate.value = write_rate;
    const struct sourced_value figure = {.source = "made up", .as_of = "2026-11"};
    hardware.storage.capacity_bytes.source = hardware.storage.read_rate.source =
        hardware.storage.write_rate.source = figure.source;
    hardware.storage.capacity_bytes.as_of = hardware.storage.read_rate.as_of =
        hardware.storage.write_rate.as_of = figure.as_of;
    test_gpt_jobs(&jobs, wish->jobs ? wish->jobs : 1, BLOCKS, WIDTH, VOCABULARY,
                  wish->minibatches ? wish->minibatches : 3);
    return planner_plan(&hardware, &jobs, &options, plan, err);
}

static void make_or_fail(const struct wish *wish, struct plan *plan)
{
    struct error err = {0};
    if (make(wish, plan, &err) != STATUS_OK) fail_msg("%s", err.text);
}

/* --- moved bytes ------------------------------------------------------------------------------ */

static uint64_t moved(const struct plan *plan, uint32_t stream)
{
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < plan->segment_count; s++)
        for (uint32_t i = 0; i < plan->segments[s].task_count; i++) {
            const struct plan_unit *const unit =
                &plan->units[plan->tasks[plan->segments[s].first_task + i].unit];
            for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
                if (plan->ops[o].stream == stream)
                    bytes += plan->ops[o].bytes * plan->segments[s].repeat_count;
        }
    return bytes;
}

/* With AdamW a state is three times its parameters p. Each minibatch reads p forward (but for the
 * last shard) and 3 p backward, and writes 3 p; the head reads the table of V x C numbers. Where the
 * processor updates, the same but for the embedding, which stays; there is then no table on storage. */
static void test_bytes(void **state)
{
    (void)state;
    for (uint32_t optimizer = PLANNER_PLACE_DEVICE; optimizer <= PLANNER_PLACE_CPU; optimizer++) {
        struct plan plan;
        make_or_fail(&(struct wish){.storage = PLANNER_STORAGE_ALL, .optimizer = optimizer}, &plan);
        const struct network *const network = &plan.jobs.jobs[0].network;
        uint64_t read = 0, written = 0, stored = 0;
        for (uint32_t s = optimizer == PLANNER_PLACE_CPU; s < plan.shard_count; s++) {
            const uint64_t p = memory_parameter_bytes(network, plan.shards[s].first_layer,
                                                      plan.shards[s].layer_count);
            read += 3 * p + (s + 1 < plan.shard_count ? p : 0);
            written += 3 * p;
            stored += 3 * p;
        }
        if (optimizer == PLANNER_PLACE_DEVICE) read += VOCABULARY * WIDTH * sizeof(float);
        assert_int_equal(plan.shard_count, SHARDS);
        assert_int_equal(plan_stored_bytes(&plan), stored);
        assert_int_equal(moved(&plan, STREAM_READ), 3 * read);
        assert_int_equal(moved(&plan, STREAM_WRITE), 3 * written);
        plan_release(&plan);
    }
}

/* Storage binds where it reads and writes all the time and all else waits for it. */
static void test_binds(void **state)
{
    (void)state;
    struct plan plan;
    struct error err = {0};
    struct sim_result result = {0};
    struct trace trace = {0};
    make_or_fail(&(struct wish){.storage = PLANNER_STORAGE_ALL, .optimizer = PLANNER_PLACE_DEVICE, .minibatches = 20},
                 &plan);
    plan.hardware.storage.write_rate.value = 1e13;
    if (sim_run(&plan, &(struct sim_options){0}, &result, &trace, &err)) fail_msg("%s", err.text);
    assert_string_equal(result.binds, "storage");
    sim_result_release(&result);
    trace_release(&trace);
    plan_release(&plan);
}

/* --- chosen states ---------------------------------------------------------------------------- */

/* Less and less host memory: the excess goes to storage, and the remaining host memory is used. */
static void test_as_much_as_needed(void **state)
{
    (void)state;
    struct wish wish = {.jobs = 3, .devices = 2, .optimizer = PLANNER_PLACE_DEVICE};
    struct plan plan;
    struct error err = {0};
    make_or_fail(&wish, &plan);
    assert_int_equal(plan_stored_bytes(&plan), 0);
    const uint64_t everything = plan_host_bytes(&plan);
    plan_release(&plan);
    uint64_t some = 0, least = 0;
    double seconds_before = 0;
    for (wish.host_bytes = everything;; wish.host_bytes -= 256 * KIB) {
        const enum status status = make(&wish, &plan, &err);
        if (status == STATUS_INFEASIBLE) break;
        if (status != STATUS_OK) fail_msg("%s", err.text);
        const uint64_t stored = plan_stored_bytes(&plan);
        assert_true(plan_host_bytes(&plan) <= wish.host_bytes);
        struct sim_result result = {0};
        struct trace trace = {0};
        assert_int_equal(sim_run(&plan, &(struct sim_options){0}, &result, &trace, &err), STATUS_OK);
        assert_true(result.makespan_s >= plan.lower_bound_s);
        if (stored > 0) some++;
        seconds_before = result.makespan_s;
        least = wish.host_bytes;
        sim_result_release(&result);
        trace_release(&trace);
        plan_release(&plan);
    }
    print_message("from %llu down to %llu bytes of host memory, then: %s (%.3g s)\n",
                  (unsigned long long)everything, (unsigned long long)least, err.text,
                  seconds_before);
    assert_true(some >= 4);
    assert_true(least * 2 < everything);
    assert_non_null(strstr(err.text, "host memory is too small even with states on storage: "));
}

/* The job of fewer minibatches pays less for it: 3 and 9 of equal jobs. */
static void test_the_cheaper_job(void **state)
{
    (void)state;
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    struct error err = {0};
    test_hardware(&hardware, 1, 3 << 20, 1e10);
    hardware.storage.capacity_bytes.value = 1e12;
    hardware.storage.read_rate.value = hardware.storage.write_rate.value = 1e9;
    hardware.host_bytes.value = 6.6e6; /* not quite what all states and a few boundaries take */
    test_gpt_jobs(&jobs, 2, BLOCKS, WIDTH, VOCABULARY, 9);
    jobs.jobs[1].optimizer = jobs.jobs[0].optimizer;
    jobs.jobs[1].minibatches = 3;
    const struct planner_options options = {.activations = ACTIVATIONS_RECOMPUTE,
                                            .no_persistence = true,
                                            .optimizer = PLANNER_PLACE_DEVICE,
                                            .shards = SHARDS};
    if (planner_plan(&hardware, &jobs, &options, &plan, &err) != STATUS_OK) fail_msg("%s", err.text);
    uint64_t stored[2] = {0};
    for (uint32_t b = 0; b < plan.buffer_count; b++)
        if (plan.buffers[b].kind == BUFFER_STORED)
            stored[plan.buffers[b].job] += plan.buffers[b].bytes;
    assert_int_equal(stored[0], 0);
    assert_true(stored[1] > 0);
    plan_release(&plan);
}

static void test_refusals(void **state)
{
    (void)state;
    const struct {
        struct wish wish;
        enum status status;
        const char *message;
    } cases[] = {
        {{.storage = PLANNER_STORAGE_NONE, .host_bytes = 3000 * KIB, .optimizer = PLANNER_PLACE_DEVICE},
         STATUS_INFEASIBLE, "job 'job-0' needs at least "},
        {{.host_bytes = 3000 * KIB, .capacity = 64 * KIB, .optimizer = PLANNER_PLACE_DEVICE},
         STATUS_INFEASIBLE,
         "storage is too small for the states that host memory has no room for: "},
        {{.storage = PLANNER_STORAGE_ALL, .capacity = 64 * KIB, .optimizer = PLANNER_PLACE_DEVICE},
         STATUS_INFEASIBLE, "storage is too small "},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct plan plan;
        struct error err = {0};
        assert_int_equal(make(&cases[i].wish, &plan, &err), cases[i].status);
        if (strncmp(err.text, cases[i].message, strlen(cases[i].message)) != 0)
            fail_msg("case %zu: %s", i, err.text);
    }
}

/* --- the bound -------------------------------------------------------------------------------- */

/* Two jobs of 3 layers of 1 MiB with AdamW and 7 minibatches on a device of 1 MiB and host memory of 2 MiB: states
 * are 2 x 9 MiB, 15 of them on storage, and each single job has 6 too many for memory in each of 6 minibatches. 15 +
 * 2 * 6 * 6 = 87 MiB each way. */
static struct test_layer mebibytes(void *context, uint32_t job, uint32_t layer)
{
    (void)context, (void)job, (void)layer;
    return (struct test_layer){1 << 20, 4096, 4096, 10, 20};
}

static void test_bound(void **state)
{
    (void)state;
    struct hardware hardware;
    struct job_set jobs;
    struct bound bound;
    test_hardware(&hardware, 1, 1 << 20, 1e12);
    hardware.host_bytes.value = 2 << 20;
    hardware.storage.capacity_bytes.value = 1e12;
    hardware.storage.read_rate.value = 3e8;
    hardware.storage.write_rate.value = 2e8;
    test_profile_jobs(&jobs, 2, 3, 7, mebibytes, NULL);
    for (uint32_t j = 0; j < 2; j++) jobs.jobs[j].optimizer.kind = OPTIMIZER_ADAMW;
    const double bytes = 87.0 * (1 << 20);
    const struct {
        double both, seconds;
    } cases[] = {{0, 2 * bytes / 3e8}, {5e8, bytes / 2e8}, {3.7e8, 2 * bytes / 3.7e8}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        hardware.storage.both_rate.value = cases[i].both;
        bound_makespan(&hardware, &jobs, false, &bound);
        assert_int_equal(bound.kind, BOUND_STORAGE);
        assert_true(bound.seconds > cases[i].seconds * (1 - 1e-12));
        assert_true(bound.seconds < cases[i].seconds * (1 + 1e-12));
    }
    job_set_release(&jobs);
    hardware_release(&hardware);
}

/* --- broken plans ----------------------------------------------------------------------------- */

static struct plan_op *find(struct plan *plan, uint32_t stream, uint32_t nth)
{
    for (uint32_t o = 0; o < plan->op_count; o++)
        if (plan->ops[o].kind == OP_COPY && plan->ops[o].stream == stream && nth-- == 0)
            return &plan->ops[o];
    fail();
    return NULL;
}

static struct plan_access *end_of(struct plan *plan, uint32_t stream, uint32_t nth, uint32_t end)
{
    return &plan->accesses[find(plan, stream, nth)->first_access + end];
}

static void read_to_device(struct plan *plan)
{
    struct plan_access *const to = end_of(plan, STREAM_READ, 2, 1);
    for (uint32_t b = 0; b < plan->buffer_count; b++)
        if (plan->buffers[b].kind == BUFFER_STATE && plan->buffers[b].on_device &&
            plan->buffers[b].shard == plan->buffers[to->buffer].shard) {
            to->buffer = b;
            return;
        }
    fail();
}

static void h2d_from_storage(struct plan *plan)
{
    struct plan_access *const staged = end_of(plan, STREAM_READ, 2, 1);
    for (uint32_t o = 0; o < plan->op_count; o++)
        if (plan->ops[o].stream == STREAM_H2D &&
            plan->accesses[plan->ops[o].first_access].buffer == staged->buffer) {
            plan->accesses[plan->ops[o].first_access].buffer = end_of(plan, STREAM_READ, 2, 0)->buffer;
            plan->accesses[plan->ops[o].first_access].flags = ACCESS_READ;
            return;
        }
    fail();
}

static void read_of_another_shard(struct plan *plan)
{
    end_of(plan, STREAM_READ, 1, 0)->buffer = end_of(plan, STREAM_READ, 2, 0)->buffer;
}

static void never_released(struct plan *plan)
{
    end_of(plan, STREAM_WRITE, 1, 0)->flags = ACCESS_READ;
}

/* A write on the read stream has its ends the wrong way round. */
static void write_on_the_read_stream(struct plan *plan)
{
    find(plan, STREAM_WRITE, 1)->stream = STREAM_READ;
}

/* Only the front of the state is written: the moments on storage stay old. */
static void half_written(struct plan *plan)
{
    find(plan, STREAM_WRITE, 0)->bytes /= 3;
}

static void half_read(struct plan *plan)
{
    struct plan_op *const op = find(plan, STREAM_READ, SHARDS + 1);
    op->bytes /= 2;
}

static void stored_twice(struct plan *plan)
{
    for (uint32_t b = 0; b < plan->buffer_count; b++)
        if (plan->buffers[b].kind == BUFFER_WORKSPACE && !plan->buffers[b].on_device) {
            for (uint32_t s = 0; s < plan->buffer_count; s++)
                if (plan->buffers[s].kind == BUFFER_STORED) {
                    plan->buffers[b] = plan->buffers[s];
                    plan->buffers[b].kind = BUFFER_STATE;
                    return;
                }
        }
    fail();
}

static void small_stored(struct plan *plan)
{
    plan->buffers[end_of(plan, STREAM_READ, 2, 0)->buffer].bytes -= 64;
}

static void no_storage(struct plan *plan)
{
    plan->hardware.storage.capacity_bytes.value = 0;
}

static void little_storage(struct plan *plan)
{
    plan->hardware.storage.capacity_bytes.value = 4096;
}

static void test_broken(void **state)
{
    (void)state;
    const struct {
        void (*breaks)(struct plan *plan);
        uint32_t optimizer;
        const char *complaint; /* a part of the message */
    } cases[] = {
        {read_to_device, PLANNER_PLACE_DEVICE,
         "form: a copy on the read stream of something else than a state"},
        {h2d_from_storage, PLANNER_PLACE_DEVICE, "form: copies the stored state of job-0 shard "},
        {read_of_another_shard, PLANNER_PLACE_DEVICE,
         "form: a copy on the read stream of something else than a state"},
        {never_released, PLANNER_PLACE_DEVICE, "lifetimes: the staged state of job-0 shard "},
        {write_on_the_read_stream, PLANNER_PLACE_DEVICE,
         "a copy on the read stream of something else than a state"},
        {half_written, PLANNER_PLACE_DEVICE, "training: finds "},
        {half_read, PLANNER_PLACE_DEVICE, "unwritten bytes"},
        {small_stored, PLANNER_PLACE_DEVICE, "on storage has "},
        {no_storage, PLANNER_PLACE_DEVICE, "form: kind 0 on stream 8"},
        {little_storage, PLANNER_PLACE_DEVICE, "memory: the stored states are "},
        {stored_twice, PLANNER_PLACE_CPU, "form: accesses the state of job-0 shard "},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct plan plan;
        struct error err = {0};
        make_or_fail(&(struct wish){.storage = PLANNER_STORAGE_ALL, .optimizer = cases[i].optimizer}, &plan);
        cases[i].breaks(&plan);
        assert_int_equal(plan_check(&plan, &err), STATUS_CHECK);
        if (!strstr(err.text, cases[i].complaint))
            fail_msg("case %zu: '%s' does not say '%s'", i, err.text, cases[i].complaint);
        plan_release(&plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_binds),
        cmocka_unit_test(test_as_much_as_needed),
        cmocka_unit_test(test_the_cheaper_job),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_broken),
    };
    return cmocka_run_group_tests_name("planner_storage", tests, NULL, NULL);
}
