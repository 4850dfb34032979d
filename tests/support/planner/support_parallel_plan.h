/* What tests of plans of parallel jobs share: machines, simulation, and finding a unit to look at. */
#ifndef SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_PARALLEL_PLAN_H
#define SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_PARALLEL_PLAN_H

#include "planner/strategy/planner.h"

/* `devices` devices that copy to each other over a link each of this rate and latency; 0: at once. */
void test_parallel_machine(struct hardware *out, uint32_t devices, double rate, double latency_s);

/* By planner_plan(), which asks plan_check(); takes both over. Fails the test with its message. */
void test_parallel_plan(struct hardware *hardware, struct job_set *jobs, struct plan *out);

struct test_parallel_outcome {
    double makespan_s;
    uint32_t represented;
    uint64_t operations, peak_bytes; /* of the device with most; never more than planned */
};
struct test_parallel_outcome test_parallel_simulate(const struct plan *plan, bool no_fold);

/* A minibatch of 1F1B by a recurrence: a pass begins behind the one before it on its stage and behind the one that its
 * input is from; stages step when they have passed back over the last microbatch, with a tied table the first and the
 * last when both have. Nothing is sent. */
enum { TEST_PARALLEL_STAGES_MAX = 16, TEST_PARALLEL_MICROBATCHES_MAX = 64 };
struct test_parallel_stage {
    double forward_s, backward_s, update_s;
};
double test_parallel_1f1b_s(const struct test_parallel_stage *of, uint32_t stages, uint32_t microbatches,
                          bool tied);

/* Equal to 1e-9, relative. */
void test_parallel_near(double found, double expected);

/* The n-th instance of a pass over a run, in plan order; the first operation of a kind in the first. */
struct plan_instance *test_parallel_instance(struct plan *plan, uint32_t pass, uint32_t run, uint32_t n);
struct plan_op *test_parallel_op(struct plan *plan, uint32_t pass, uint32_t run, uint32_t kind);
void test_parallel_swap(struct plan_instance *a, struct plan_instance *b);
/* What they run on, the other way round. */
void test_parallel_swap_places(struct plan_instance *a, struct plan_instance *b);

/* Jobs of random layers that are spilled over two devices behind links of their own; or parallel, over four. */
void test_parallel_or_spilled(uint64_t key, bool parallel, struct plan *plan);

/* A plan with something wrong, and a part of what plan_check() says about it. */
struct test_parallel_damage {
    void (*damage)(struct plan *plan);
    uint32_t variant; /* of the whole plan */
    const char *complaint;
};
void test_parallel_broken(const struct test_parallel_damage *cases, size_t count,
                        void (*make)(struct plan *out, uint32_t variant));

#endif
