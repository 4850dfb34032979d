/*
 * Where optimizers run: the copies for it (closed forms), its cost, and which broken plans are refused.
 *
 * That training gives the same bits wherever they run is test_contract.c's matter.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/size.h"
#include "models/job/memory.h"
#include "planner/check/plan_check.h"
#include "planner/strategy/planner.h"
#include "sim/sim.h"
#include "tests/support/planner/support_planner.h"

enum { BLOCKS = 4, WIDTH = 64, VOCABULARY = 1021, MINIBATCHES = 3, SHARDS = BLOCKS + 2 };

static uint32_t precision; /* of all jobs' weights */

struct made {
    struct plan plan;
    double seconds;
    uint64_t bytes[2]; /* by copy direction */
};

static void make(uint32_t devices, uint32_t jobs_count, uint64_t memory, double rate,
                 double host_bandwidth, uint32_t place, struct made *out)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    struct sim_result result = {0};
    struct trace trace = {0};
    const struct planner_options options = {
        .no_persistence = true,
        .activations = ACTIVATIONS_RECOMPUTE,
        .optimizer = place,
        .shards = SHARDS};
    *out = (struct made){0};
    test_hardware(&hardware, devices, memory, rate);
    hardware.host_bandwidth.value = host_bandwidth;
    hardware.host_bandwidth.source = "made up";
    test_gpt_jobs(&jobs, jobs_count, BLOCKS, WIDTH, VOCABULARY, MINIBATCHES);
    for (uint32_t j = 0; j < jobs_count; j++) jobs.jobs[j].precision = precision;
    enum status status = planner_plan(&hardware, &jobs, &options, &out->plan, &err);
    if (status == STATUS_OK) status = sim_run(&out->plan, &(struct sim_options){0}, &result, &trace, &err);
    if (status != STATUS_OK) fail_msg("%s", err.text);
    out->seconds = result.makespan_s;
    sim_result_release(&result);
    trace_release(&trace);
    const struct plan *const plan = &out->plan;
    for (uint32_t s = 0; s < plan->segment_count; s++)
        for (uint32_t i = 0; i < plan->segments[s].task_count; i++) {
            const struct plan_unit *const unit =
                &plan->units[plan->tasks[plan->segments[s].first_task + i].unit];
            for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
                if (plan->ops[o].kind == OP_COPY)
                    out->bytes[plan->ops[o].stream == STREAM_D2H] +=
                        plan->ops[o].bytes * plan->segments[s].repeat_count;
        }
}

/* Bytes of one minibatch, a single job on one device, each layer a shard: parameters come for the forward pass and
 * for the backward pass, and their gradients go back; the head's table comes and its gradient goes; boundaries,
 * batch and loss. The bytes of parameters and table that come are half where numbers have 16 bits: 12 C^2 numbers of
 * a block's, and in bf16, not bf16-weights, its 13 C of vectors, the head's 2 C and boundaries too. All gradients of
 * parameters stay. */
static void expected_bytes(const struct job *job, uint64_t out[2])
{
    const bool rounded = job->precision != PRECISION_FP32, all = job->precision == PRECISION_BF16;
    uint64_t blocks = (uint64_t)BLOCKS * (12 * WIDTH * WIDTH + 13 * WIDTH) * 4, head = 2 * WIDTH * 4;
    uint64_t halved = rounded ? (uint64_t)BLOCKS * 12 * WIDTH * WIDTH * 2 : 0;
    if (all) halved += (uint64_t)BLOCKS * 13 * WIDTH * 2;
    uint64_t table = job->network.vocabulary * job->network.width * 4;
    uint64_t table_in = rounded ? table / 2 : table;
    uint64_t boundary = job->microbatch * job->sequence * job->network.width * (all ? 2 : 4);
    uint64_t batch = job->microbatch * (job->sequence + 1) * 4;
    /* in: boundary 1 twice, made on the host; boundaries 2 .. BLOCKS for their backward passes */
    out[0] = 2 * (blocks - halved) + (all ? head / 2 : head) + table_in + batch + boundary * (2 + BLOCKS - 1);
    /* out: boundaries 2 .. BLOCKS, the gradient that the embedding adds up, the loss */
    out[1] = blocks + head + table + boundary * (BLOCKS - 1) + boundary + 8;
}

static void test_bytes(void **state)
{
    (void)state;
    for (precision = PRECISION_COUNT; precision-- > PRECISION_FP32;) {
        struct made made;
        uint64_t expected[2];
        make(1, 1, 3 << 20, 1e10, 1e11, PLANNER_PLACE_CPU, &made);
        expected_bytes(&made.plan.jobs.jobs[0], expected);
        assert_int_equal(made.plan.shard_count, SHARDS);
        assert_int_equal(made.bytes[0], expected[0] * MINIBATCHES);
        assert_int_equal(made.bytes[1], expected[1] * MINIBATCHES);
        plan_release(&made.plan);
    }
    precision = PRECISION_FP32;
}

/* On a slow link the processor wins, with slow host memory the device; the planner's own choice is as good as the
 * best of the three, and none beats its bound. */
static void test_choice(void **state)
{
    (void)state;
    const struct {
        uint32_t devices, jobs;
        double rate, host_bandwidth;
        uint32_t best; /* PLANNER_PLACE_COUNT: any */
    } cases[] = {
        {1, 1, 1e8, 1e12, PLANNER_PLACE_CPU},
        {1, 3, 1e8, 1e12, PLANNER_PLACE_CPU},
        {1, 1, 1e11, 1e7, PLANNER_PLACE_DEVICE},
        {2, 4, 1e11, 1e7, PLANNER_PLACE_DEVICE},
        {2, 5, 1e9, 1e10, PLANNER_PLACE_COUNT},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        double seconds[PLANNER_PLACE_COUNT + 1], best = 1e300;
        for (uint32_t place = 0; place <= PLANNER_PLACE_COUNT; place++) {
            struct made made;
            make(cases[i].devices, cases[i].jobs, 3 << 20, cases[i].rate, cases[i].host_bandwidth,
                 place == PLANNER_PLACE_COUNT ? PLANNER_AUTO : place, &made);
            seconds[place] = made.seconds;
            assert_true(made.plan.lower_bound_s <= made.seconds * (1 + 1e-9));
            if (place < PLANNER_PLACE_COUNT && made.seconds < best) best = made.seconds;
            plan_release(&made.plan);
        }
        print_message("case %zu: device %.4g s, cpu %.4g s, split %.4g s, chosen %.4g s\n", i,
                      seconds[PLANNER_PLACE_DEVICE], seconds[PLANNER_PLACE_CPU], seconds[PLANNER_PLACE_SPLIT],
                      seconds[PLANNER_PLACE_COUNT]);
        assert_true(seconds[PLANNER_PLACE_COUNT] <= best * 1.1);
        if (cases[i].best < PLANNER_PLACE_COUNT) assert_true(seconds[cases[i].best] <= best * 1.02);
    }
}

/* --- broken plans ----------------------------------------------------------------------------- */

static struct plan_op *find(struct plan *plan, uint32_t stream, uint32_t pass, uint32_t nth)
{
    for (uint32_t o = 0; o < plan->op_count; o++)
        if (plan->ops[o].kind == OP_COMPUTE && plan->ops[o].stream == stream &&
            plan->ops[o].pass == pass && nth-- == 0)
            return &plan->ops[o];
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

static void update_on_device(struct plan *plan)
{
    find(plan, STREAM_CPU, PLAN_UPDATE, 0)->stream = STREAM_COMPUTE;
}

static void backward_of_block_on_cpu(struct plan *plan)
{
    find(plan, STREAM_COMPUTE, PLAN_BACKWARD, 0)->stream = STREAM_CPU;
}

static void update_without_writing(struct plan *plan)
{
    struct plan_op *const op = find(plan, STREAM_CPU, PLAN_UPDATE, 1);
    access_of(plan, op, BUFFER_STATE)->flags = ACCESS_READ;
}

/* Makes the update read another shard's gradient. */
static void wrong_gradient(struct plan *plan)
{
    struct plan_op *const op = find(plan, STREAM_CPU, PLAN_UPDATE, 1);
    struct plan_op *const other = find(plan, STREAM_CPU, PLAN_UPDATE, 0);
    access_of(plan, op, BUFFER_GRADIENT)->buffer = access_of(plan, other, BUFFER_GRADIENT)->buffer;
}

static void wrong_state(struct plan *plan)
{
    struct plan_op *const op = find(plan, STREAM_CPU, PLAN_UPDATE, 1);
    struct plan_op *const other = find(plan, STREAM_CPU, PLAN_UPDATE, 2);
    access_of(plan, op, BUFFER_STATE)->buffer = access_of(plan, other, BUFFER_STATE)->buffer;
}

/* Makes the update a second one of the pass, so that nothing changes the state. */
static void forgotten_update(struct plan *plan)
{
    find(plan, STREAM_CPU, PLAN_UPDATE, 1)->pass = PLAN_BACKWARD;
}

static void wrong_work(struct plan *plan)
{
    find(plan, STREAM_CPU, PLAN_UPDATE, 1)->work = find(plan, STREAM_COMPUTE, PLAN_FORWARD, 0)->work;
}

static void small_gradient(struct plan *plan)
{
    struct plan_op *const op = find(plan, STREAM_CPU, PLAN_UPDATE, 1);
    plan->buffers[access_of(plan, op, BUFFER_GRADIENT)->buffer].bytes = 4096;
}

static void test_broken(void **state)
{
    (void)state;
    const struct {
        void (*breaks)(struct plan *plan);
        const char *complaint; /* a part of the message */
    } cases[] = {
        {update_on_device, "shard 5 update): form: a computation on the compute stream"},
        {backward_of_block_on_cpu, "shard 4 backward): form: a computation on the cpu stream"},
        {update_without_writing,
         "shard 4 update): form: reads the state of job-0 shard 4 (expected: changes it)"},
        {wrong_gradient, "training: finds gradient of job-0 shard 5, minibatch 0 (expected "
                         "gradient of job-0 shard 4, minibatch 0)"},
        {wrong_state, "shard 4 update): form: accesses the state of job-0 shard 3"},
        {forgotten_update, "a computation on the cpu stream"},
        {wrong_work, "shard 4 update): work: "},
        {small_gradient, "the gradient of job-0 variant 1 (it has 4096)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct made made;
        struct error err = {0};
        make(1, 1, 3 << 20, 1e10, 1e11, PLANNER_PLACE_CPU, &made);
        cases[i].breaks(&made.plan);
        assert_int_equal(plan_check(&made.plan, &err), STATUS_CHECK);
        if (!strstr(err.text, cases[i].complaint))
            fail_msg("case %zu: '%s' does not say '%s'", i, err.text, cases[i].complaint);
        plan_release(&made.plan);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    const struct {
        struct planner_options options;
        const char *message;
    } cases[] = {
        {{.policy = "fifo", .optimizer = PLANNER_PLACE_CPU},
         "machine 'made-up' does not say how fast its host's processor is (its host has no "
         "'memory_bandwidth')"},
        {{.policy = "model-parallel", .activations = PLANNER_AUTO, .optimizer = PLANNER_PLACE_SPLIT},
         "policy 'model-parallel' keeps states on the devices, and their optimizers with them "
         "(--optimizer is for spilled states)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan = {0};
        struct error err = {0};
        test_hardware(&hardware, 1, 1 << 24, 1e10);
        test_gpt_jobs(&jobs, 1, 2, 32, 97, 1);
        assert_int_equal(planner_plan(&hardware, &jobs, &cases[i].options, &plan, &err),
                         STATUS_BAD_INPUT);
        assert_string_equal(err.text, cases[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("planner_place", tests, NULL, NULL);
}
