/* Machines, simulation and lookup of units, for tests of plans of parallel jobs. */
#ifndef SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_PARALLEL_PLAN_H
#define SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_PARALLEL_PLAN_H

#include "planner/strategy/planner.h"

/* Makes `devices` devices that copy to each other, each over a link of this rate and latency; rate 0: copies take no
 * time. */
void test_parallel_machine(struct hardware *out, uint32_t devices, double rate, double latency_s);

/* Plans with planner_plan(), which calls plan_check(); takes both over. Fails the test with the planner's message. */
void test_parallel_plan(struct hardware *hardware, struct job_set *jobs, struct plan *out);

struct test_parallel_outcome {
    double makespan_s;
    uint32_t represented;
    uint64_t operations, peak_bytes; /* of the device with most; never more than planned */
};
struct test_parallel_outcome test_parallel_simulate(const struct plan *plan, bool no_fold);

/* A minibatch of 1F1B by a recurrence. A pass begins after the previous pass on its stage and after the pass that
 * makes its input. A stage steps after its last backward pass; with a tied table the first and the last stage wait
 * for each other. Sends take no time. */
enum { TEST_PARALLEL_STAGES_MAX = 16, TEST_PARALLEL_MICROBATCHES_MAX = 64 };
struct test_parallel_stage {
    double forward_s, backward_s, update_s;
};
double test_parallel_1f1b_s(const struct test_parallel_stage *of, uint32_t stages, uint32_t microbatches,
                          bool tied);

/* Equal to 1e-9, relative. */
void test_parallel_near(double found, double expected);

/* Returns the n-th task of a pass over a run, in plan order; and the first operation of a kind in the first
 * task. */
struct plan_task *test_parallel_task(struct plan *plan, uint32_t pass, uint32_t run, uint32_t n);
struct plan_op *test_parallel_op(struct plan *plan, uint32_t pass, uint32_t run, uint32_t kind);
/* Returns the first operation on a stream in the first task of a pass over a run; an operation's first access to a kind
 * of buffers; and the buffer of a kind and shard, on devices or not. They fail the test where there is none. */
struct plan_op *test_parallel_op_on(struct plan *plan, uint32_t pass, uint32_t run, uint32_t stream);
struct plan_access *test_parallel_access(struct plan *plan, struct plan_op *op, uint32_t kind);
struct plan_buffer *test_parallel_buffer(struct plan *plan, uint32_t kind, uint32_t shard, bool on_device);

/* Adds up the bytes that a run copies on streams of a kind, of buffers of a kind. */
uint64_t test_parallel_copied(const struct plan *plan, uint32_t stream, uint32_t kind);

void test_parallel_swap(struct plan_task *a, struct plan_task *b);
/* Swaps the devices of two tasks. */
void test_parallel_swap_places(struct plan_task *a, struct plan_task *b);

/* Makes a plan of jobs of random layers, spilled over two devices with links of their own; or parallel over four. */
void test_parallel_or_spilled(uint64_t key, bool parallel, struct plan *plan);

/* A damaged plan, and a part of plan_check()'s message. */
struct test_parallel_damage {
    void (*damage)(struct plan *plan);
    uint32_t variant; /* of the whole plan */
    const char *complaint;
};
void test_parallel_broken(const struct test_parallel_damage *cases, size_t count,
                        void (*make)(struct plan *out, uint32_t variant));

#endif
