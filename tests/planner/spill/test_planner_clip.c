/*
 * Jobs that clip: their updates wait for all norms and nothing waits for all updates; what planning them
 * refuses; which broken plans are refused; and plans with them through a file.
 *
 * That training gives the same bits in every plan is test_contract.c's matter, that they are PyTorch's
 * test_exec_gpt2.c's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "models/job/memory.h"
#include "planner/check/plan_check.h"
#include "planner/files/plan_io.h"
#include "planner/strategy/planner.h"
#include "sim/sim.h"
#include "tests/support/planner/support_planner.h"

enum { BLOCKS = 4, WIDTH = 64, VOCABULARY = 1021, MINIBATCHES = 3, SHARDS = BLOCKS + 2 };

struct made {
    struct plan plan;
    struct trace trace;
};

/* Makes a plan in which each layer is a shard. */
static void make(double host_bandwidth, uint64_t evaluations, struct made *out)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    struct sim_result result = {0};
    const struct planner_options options = {
        .activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO, .shards = SHARDS};
    *out = (struct made){0};
    test_hardware(&hardware, 1, 3 << 20, 1e11);
    hardware.host_bandwidth.value = host_bandwidth;
    hardware.host_bandwidth.source = "made up";
    test_gpt_jobs(&jobs, 1, BLOCKS, WIDTH, VOCABULARY, MINIBATCHES);
    jobs.jobs[0].optimizer.clip = 0.7;
    jobs.jobs[0].evaluation = (struct job_evaluation){.every = evaluations ? 2 : 0,
                                                      .minibatches = evaluations,
                                                      .data_format = DATA_NONE};
    enum status status = planner_plan(&hardware, &jobs, &options, &out->plan, &err);
    if (status == STATUS_OK)
        status = sim_run(&out->plan, &(struct sim_options){.record_spans = true}, &result,
                         &out->trace, &err);
    if (status != STATUS_OK) fail_msg("%s", err.text);
    assert_int_equal(out->plan.shard_count, SHARDS);
    assert_true(out->plan.lower_bound_s <= result.makespan_s * (1 + 1e-9));
    sim_result_release(&result);
}

static void made_release(struct made *made)
{
    trace_release(&made->trace);
    plan_release(&made->plan);
}

/* --- time ------------------------------------------------------------------------------------- */

static const struct trace_span *span_of(const struct trace *trace, uint32_t pass, uint32_t shard,
                                        uint32_t minibatch)
{
    for (uint64_t i = 0; i < trace->span_count; i++) {
        const struct trace_span *s = &trace->spans[i];
        if (s->kind == OP_COMPUTE && s->pass == pass && s->shard == shard &&
            s->minibatch == minibatch)
            return s;
    }
    fail_msg("no %s of shard %u in minibatch %u", plan_pass_names[pass], shard, minibatch);
    return NULL;
}

/* Updates begin after the last norm and end before their shard's next forward pass. With host memory so slow that
 * they take long, the first forward passes of a minibatch are through before the last updates of the previous
 * minibatch have even begun. */
static void check_times(uint64_t evaluations)
{
    struct made made;
    make(1e8, evaluations, &made);
    for (uint32_t m = 0; m < MINIBATCHES; m++) {
        double known_s = span_of(&made.trace, PLAN_NORM, 0, m)->end_s;
        for (uint32_t s = 0; s < SHARDS; s++) {
            const struct trace_span *update = span_of(&made.trace, PLAN_UPDATE, s, m);
            assert_true(span_of(&made.trace, PLAN_NORM, s, m)->end_s <= known_s);
            assert_true(update->start_s >= known_s);
            if (m + 1 == MINIBATCHES) continue;
            uint32_t pass = s + 1 == SHARDS ? PLAN_LOSS : PLAN_FORWARD;
            assert_true(span_of(&made.trace, pass, s, m + 1)->start_s >= update->end_s);
        }
        if (m + 1 == MINIBATCHES) continue;
        uint32_t next = evaluations && (m + 1) % 2 == 0 ? PLAN_EVALUATE : PLAN_FORWARD;
        uint32_t next_minibatch = next == PLAN_EVALUATE ? m : m + 1; /* evaluations end theirs */
        double last_s = span_of(&made.trace, PLAN_UPDATE, SHARDS - 1, m)->start_s;
        assert_true(span_of(&made.trace, next, 0, next_minibatch)->end_s < last_s);
        assert_true(span_of(&made.trace, next, 1, next_minibatch)->end_s < last_s);
    }
    made_release(&made);
}

static void test_no_barrier(void **state)
{
    (void)state;
    check_times(0);
    check_times(2);
}

/* --- memory ----------------------------------------------------------------------------------- */

/* All gradients, and a number for each tensor: two tables, twelve tensors in a block, two in the head. */
static void test_memory(void **state)
{
    (void)state;
    struct made made;
    make(1e11, 0, &made);
    const struct network *network = &made.plan.jobs.jobs[0].network;
    uint64_t gradients = 0, norms = 0;
    for (uint32_t b = 0; b < made.plan.buffer_count; b++) {
        const struct plan_buffer *buffer = &made.plan.buffers[b];
        if (buffer->on_device) continue;
        if (buffer->kind == BUFFER_GRADIENT) gradients += buffer->bytes;
        if (buffer->kind == BUFFER_NORMS) norms += buffer->bytes;
    }
    uint64_t expected = 0;
    for (uint64_t layer = 0; layer < network->layer_count; layer++)
        expected += memory_parameter_bytes(network, layer, 1);
    assert_int_equal(gradients, expected);
    assert_int_equal(norms, (2 + 12 * BLOCKS + 2) * sizeof(double));
    assert_int_equal(memory_tensor_count(network, 2, 2), 24);
    made_release(&made);
}

/* --- files ------------------------------------------------------------------------------------ */

static void test_file(void **state)
{
    (void)state;
    static const char path[] = BINARY_DIR "/test_planner_clip.json";
    struct made made;
    struct plan again = {0};
    struct error err = {0};
    make(1e10, 1, &made);
    if (plan_write(&made.plan, path, &err) != STATUS_OK || plan_read(path, &again, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(plan_fingerprint(&again), plan_fingerprint(&made.plan));
    assert_true(again.jobs.jobs[0].optimizer.clip == 0.7);
    remove(path);
    plan_release(&again);
    made_release(&made);
}

/* --- broken plans ----------------------------------------------------------------------------- */

static struct plan_op *find(struct plan *plan, uint32_t pass, uint32_t shard)
{
    for (uint32_t u = 0; u < plan->unit_count; u++)
        for (uint32_t o = 0; plan->units[u].shard == shard && o < plan->units[u].op_count; o++) {
            struct plan_op *const op = &plan->ops[plan->units[u].first_op + o];
            if (op->kind == OP_COMPUTE && op->pass == pass) return op;
        }
    fail();
    return NULL;
}

static struct plan_access *access_of(struct plan *plan, const struct plan_op *op, uint32_t kind)
{
    for (uint32_t a = op->first_access; a < op->first_access + op->access_count; a++)
        if (plan->buffers[plan->accesses[a].buffer].kind == kind) return &plan->accesses[a];
    fail();
    return NULL;
}

static struct plan_task *task_of(struct plan *plan, uint32_t pass, uint32_t shard)
{
    for (uint32_t i = 0; i < plan->task_count; i++) {
        const struct plan_unit *unit = &plan->units[plan->tasks[i].unit];
        if (unit->pass == pass && unit->shard == shard) return &plan->tasks[i];
    }
    fail();
    return NULL;
}

/* Gives a norm another shard's gradient. */
static void wrong_gradient(struct plan *plan)
{
    struct plan_op *const norm = find(plan, PLAN_NORM, 2), *const other = find(plan, PLAN_NORM, 3);
    access_of(plan, norm, BUFFER_GRADIENT)->buffer = access_of(plan, other, BUFFER_GRADIENT)->buffer;
}

/* Makes one norm go to a place that nothing reads. */
static void lost_norm(struct plan *plan)
{
    struct error err = {0};
    struct plan_buffer *buffers;
    if (ARENA_NEW(&plan->arena, plan->buffer_count + 1u, buffers, &err)) fail_msg("%s", err.text);
    memcpy(buffers, plan->buffers, plan->buffer_count * sizeof *plan->buffers);
    plan->buffers = buffers;
    struct plan_access *const access = access_of(plan, find(plan, PLAN_NORM, 2), BUFFER_NORMS);
    struct plan_buffer *const twin = &plan->buffers[plan->buffer_count];
    *twin = plan->buffers[access->buffer];
    twin->variant = 1;
    access->buffer = plan->buffer_count++;
}

static void update_in_backward(struct plan *plan)
{
    find(plan, PLAN_NORM, 2)->pass = PLAN_UPDATE;
}

static void update_without_norms(struct plan *plan)
{
    struct plan_op *const op = find(plan, PLAN_UPDATE, 2);
    struct plan_access *const access = access_of(plan, op, BUFFER_NORMS);
    *access = plan->accesses[op->first_access + op->access_count - 1];
    op->access_count--;
}

static void update_of_another(struct plan *plan)
{
    task_of(plan, PLAN_UPDATE, 1)->unit = task_of(plan, PLAN_UPDATE, 2)->unit;
}

/* The first update, before the last backward pass, whose norm it lacks. */
static void early_update(struct plan *plan)
{
    struct plan_task *const update = task_of(plan, PLAN_UPDATE, 0);
    struct plan_task *const backward = task_of(plan, PLAN_BACKWARD, 0);
    const struct plan_task swap = *update;
    *update = *backward;
    *backward = swap;
}

static void small_norms(struct plan *plan)
{
    plan->buffers[access_of(plan, find(plan, PLAN_UPDATE, 2), BUFFER_NORMS)->buffer].bytes -= 8;
}

static void norm_on_device(struct plan *plan)
{
    find(plan, PLAN_NORM, 2)->stream = STREAM_COMPUTE;
}

static void block_on_host_stream(struct plan *plan)
{
    find(plan, PLAN_FORWARD, 2)->stream = STREAM_HOST;
}

static void norm_reads_norms(struct plan *plan)
{
    access_of(plan, find(plan, PLAN_NORM, 2), BUFFER_NORMS)->flags = ACCESS_READ;
}

static void unclipped(struct plan *plan)
{
    plan->jobs.jobs[0].optimizer.clip = 0;
}

/* Makes the embedding's rows change at once. */
static void embedding_steps(struct plan *plan)
{
    struct plan_op *const op = find(plan, PLAN_BACKWARD, 0);
    struct plan_access *const access = access_of(plan, op, BUFFER_GRADIENT);
    access->buffer = access_of(plan, find(plan, PLAN_UPDATE, 0), BUFFER_STATE)->buffer;
    access->flags = ACCESS_READ | ACCESS_WRITE;
}

static void test_broken(void **state)
{
    (void)state;
    const struct {
        void (*breaks)(struct plan *plan);
        const char *complaint; /* a part of the message */
    } cases[] = {
        {wrong_gradient, "(job-0 shard 2 norm): training: finds gradient of job-0 shard 3, minibatch 0 "
                         "(expected gradient of job-0 shard 2, minibatch 0)"},
        {lost_norm, "reads unwritten bytes of the norms of job-0 (expected norms of job-0, "
                    "minibatch 0)"},
        {update_in_backward, "form: a update in a unit that is about backward"},
        {update_without_norms, "shard 2 update): training: does not access the norms (416 bytes)"},
        {update_of_another, "training: expected update of job-0 shard 1, minibatch 0"},
        {early_update, "training: expected backward of job-0 shard 0, minibatch 0"},
        {small_norms, "the norms of job-0 has 408 bytes (expected 416)"},
        {norm_on_device, "shard 2 norm): form: a computation on the compute stream"},
        {block_on_host_stream, "shard 2 forward): form: a computation on the host stream"},
        {norm_reads_norms, "shard 2 norm): form: reads the norms of job-0 (expected: writes it)"},
        {unclipped, "form: "},
        {embedding_steps, "makes a step before the norm of all gradients is known"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct made made;
        struct error err = {0};
        make(1e11, 0, &made);
        cases[i].breaks(&made.plan);
        assert_int_equal(plan_check(&made.plan, &err), STATUS_CHECK);
        if (!strstr(err.text, cases[i].complaint))
            fail_msg("case %zu: '%s' does not say '%s'", i, err.text, cases[i].complaint);
        made_release(&made);
    }
}

/* --- refusals --------------------------------------------------------------------------------- */

static void test_refusals(void **state)
{
    (void)state;
    const struct {
        struct planner_options options;
        double host_bandwidth;
        enum status status;
        const char *message;
    } cases[] = {
        {{.policy = "model-parallel", .activations = PLANNER_AUTO},
         1e10,
         STATUS_INFEASIBLE,
         "policy 'model-parallel' keeps states on the devices, and the optimizer of job 'job-1' clips "
         "('clip'), which is done on the host"},
        {{.policy = "fifo", .activations = PLANNER_AUTO, .optimizer = PLANNER_PLACE_DEVICE},
         1e10,
         STATUS_BAD_INPUT,
         "the optimizer of job 'job-1' clips ('clip'), which is done on the host (expected --optimizer "
         "auto, cpu or split)"},
        {{.policy = "fifo", .activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO},
         0,
         STATUS_BAD_INPUT,
         "the optimizer of job 'job-1' clips ('clip'), which is done on the host, and machine 'made-up' "
         "does not say how fast its host's processor is (its host has no 'memory_bandwidth')"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        struct error err = {0};
        test_hardware(&hardware, 1, 1 << 24, 1e10);
        hardware.host_bandwidth.value = cases[i].host_bandwidth;
        test_gpt_jobs(&jobs, 2, 2, 32, 97, 1);
        jobs.jobs[1].optimizer.clip = 1;
        assert_int_equal(planner_plan(&hardware, &jobs, &cases[i].options, &plan, &err),
                         cases[i].status);
        assert_string_equal(err.text, cases[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_barrier),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("planner_clip", tests, NULL, NULL);
}
