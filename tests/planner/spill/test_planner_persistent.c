/*
 * Persistent shards: the copies that they save (a closed form), how many there are, and where there are none.
 *
 * That training gives the same bits with them is test_contract.c's matter.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "models/job/memory.h"
#include "planner/strategy/planner.h"
#include "sim/sim.h"
#include "tests/support/planner/support_planner.h"

enum { BLOCKS = 8, WIDTH = 64, VOCABULARY = 257, MINIBATCHES = 5, SHARDS = BLOCKS + 2 };

struct made {
    struct plan plan;
    double seconds;
    uint64_t bytes[2]; /* by copy direction */
    uint32_t persistent;
    bool stays[8 * SHARDS]; /* per shard of the plan */
};

static void count_copies(struct made *made)
{
    const struct plan *plan = &made->plan;
    for (uint32_t s = 0; s < plan->segment_count; s++)
        for (uint32_t i = 0; i < plan->segments[s].task_count; i++) {
            const struct plan_task *task =
                &plan->tasks[plan->segments[s].first_task + i];
            const struct plan_unit *unit = &plan->units[task->unit];
            for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
                if (plan->ops[o].kind == OP_COPY)
                    made->bytes[plan->ops[o].stream == STREAM_D2H] +=
                        plan->ops[o].bytes * plan->segments[s].repeat_count;
        }
    for (uint32_t u = 0; u < plan->unit_count; u++) {
        if (plan->units[u].pass != PLAN_LOAD) continue;
        made->stays[plan->job_first_shard[plan->units[u].job] + plan->units[u].shard] = true;
        made->persistent++;
    }
}

/* `devices` devices and `jobs` jobs, on links of 100 MB/s, with fast host memory. */
static void make(const char *policy, uint32_t devices, uint32_t jobs, uint64_t memory,
                 uint32_t place, bool no_persistence, struct made *out)
{
    struct hardware hardware;
    struct job_set set;
    struct error err = {0};
    struct sim_result result = {0};
    struct trace trace = {0};
    const struct planner_options options = {.policy = policy,
                                            .no_persistence = no_persistence,
                                            .activations = ACTIVATIONS_RECOMPUTE,
                                            .optimizer = place,
                                            .shards = SHARDS};
    *out = (struct made){0};
    test_hardware(&hardware, devices, memory, 1e8);
    hardware.host_bandwidth.value = 1e12;
    hardware.host_bandwidth.source = "made up";
    test_gpt_jobs(&set, jobs, BLOCKS, WIDTH, VOCABULARY, MINIBATCHES);
    if (jobs > 2) set.jobs[2].optimizer = set.jobs[0].optimizer; /* two with large states */
    enum status status = planner_plan(&hardware, &set, &options, &out->plan, &err);
    if (status == STATUS_OK)
        status = sim_run(&out->plan, &(struct sim_options){0}, &result, &trace, &err);
    if (status != STATUS_OK) fail_msg("%s", err.text);
    assert_true(out->plan.lower_bound_s <= result.makespan_s * (1 + 1e-9));
    out->seconds = result.makespan_s;
    sim_result_release(&result);
    trace_release(&trace);
    count_copies(out);
}

/* A single job on one device, its embedding and the spilled optimizers on the processor. A spilled shard's
 * parameters come for each pass and their gradient goes; a persistent one's state comes once and goes once, in the
 * whole run. All other moved bytes are the same. */
static void expected_bytes(const struct made *made, uint64_t out[2])
{
    const struct job *job = &made->plan.jobs.jobs[0];
    uint64_t table = job->network.vocabulary * job->network.width * 4;
    uint64_t boundary = job->microbatch * job->sequence * job->network.width * 4;
    uint64_t batch = job->microbatch * (job->sequence + 1) * 4;
    out[0] = MINIBATCHES * (table + batch + boundary * (2 + BLOCKS - 1));
    out[1] = MINIBATCHES * (table + boundary * (BLOCKS - 1) + boundary + 8);
    for (uint32_t s = 1; s < SHARDS; s++) {
        uint64_t parameters = memory_parameter_bytes(&job->network, s, 1);
        uint64_t state = job_state(job, s, 1).bytes;
        bool head = s + 1 == SHARDS;
        out[0] += made->stays[s] ? state : (head ? 1 : 2) * parameters * MINIBATCHES;
        out[1] += made->stays[s] ? state : parameters * MINIBATCHES;
    }
}

static void test_bytes(void **state)
{
    (void)state;
    uint32_t most = 0, least = UINT32_MAX, some = 0;
    for (uint64_t memory = 1600 << 10; memory <= 14 << 20; memory += 400 << 10) {
        struct made made;
        uint64_t expected[2];
        make("sharded-lrtf", 1, 1, memory, PLANNER_PLACE_CPU, false, &made);
        expected_bytes(&made, expected);
        assert_int_equal(made.plan.shard_count, SHARDS);
        assert_false(made.stays[0]);
        assert_int_equal(made.bytes[0], expected[0]);
        assert_int_equal(made.bytes[1], expected[1]);
        assert_true(made.persistent >= most); /* one layer a shard: more memory, more of them stay */
        most = made.persistent;
        if (made.persistent < least) least = made.persistent;
        if (made.persistent > 0 && made.persistent + 1 < SHARDS) {
            some++;
            assert_true(made.stays[1]); /* what a minibatch ends with and the next begins with */
        }
        plan_release(&made.plan);
    }
    assert_int_equal(least, 0);
    assert_int_equal(most, SHARDS - 1);
    assert_true(some >= 5);
}

/* On a slow link, each copy that is not needed saves time, wherever the optimizers are. */
static void test_faster(void **state)
{
    (void)state;
    for (uint32_t place = 0; place < PLANNER_PLACE_COUNT; place++)
        for (uint32_t jobs = 1; jobs <= 3; jobs += 2) {
            struct made with, without;
            make("sharded-lrtf", 1, jobs, 6 << 20, place, false, &with);
            make("sharded-lrtf", 1, jobs, 6 << 20, place, true, &without);
            print_message("%s, %u jobs: %.4g s with %u persistent shards, %.4g s with none\n",
                          planner_place_names[place], jobs, with.seconds, with.persistent,
                          without.seconds);
            assert_true(with.persistent >= jobs);
            assert_int_equal(without.persistent, 0);
            assert_true(with.seconds < without.seconds);
            plan_release(&with.plan);
            plan_release(&without.plan);
        }
}

/* All jobs of one kind keep the same number; jobs that follow each other keep theirs in the same place. */
static void test_jobs(void **state)
{
    (void)state;
    struct made together, in_turn;
    make("fifo", 1, 3, 9 << 20, PLANNER_PLACE_DEVICE, false, &together);
    make("spill-sequential", 2, 3, 9 << 20, PLANNER_PLACE_DEVICE, false, &in_turn);
    for (uint32_t s = 0; s < SHARDS; s++) {
        assert_int_equal(together.stays[s], together.stays[SHARDS + s]);
        assert_int_equal(together.stays[s], together.stays[2 * SHARDS + s]);
    }
    assert_true(in_turn.persistent >= 2 * together.persistent);
    plan_release(&together.plan);
    plan_release(&in_turn.plan);
}

/* A policy that moves jobs between devices finds no state waiting on one of them. */
static void test_none(void **state)
{
    (void)state;
    struct made made;
    make("sharded-lrtf", 2, 3, 9 << 20, PLANNER_PLACE_DEVICE, false, &made);
    assert_int_equal(made.persistent, 0);
    plan_release(&made.plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_faster),
        cmocka_unit_test(test_jobs),
        cmocka_unit_test(test_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
