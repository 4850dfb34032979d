/* What tests of plans of spread jobs share: machines, simulation, and finding a unit to look at. */
#ifndef SPILLWAY_TESTS_SUPPORT_SPREAD_H
#define SPILLWAY_TESTS_SUPPORT_SPREAD_H

#include "planner/strategy/planner.h"

/* `devices` devices that copy to each other over a link each of this rate and latency; 0: at once. */
void test_spread_machine(struct hardware *out, uint32_t devices, double rate, double latency_s);

/* By planner_plan(), which asks plan_check(); takes both over. Fails the test with its message. */
void test_spread_plan(struct hardware *hardware, struct job_set *jobs, struct plan *out);

struct test_spread_outcome {
    double makespan_s;
    uint32_t represented;
    uint64_t operations, peak_bytes; /* of the device with most; never more than planned */
};
struct test_spread_outcome test_spread_simulate(const struct plan *plan, bool no_fold);

/* A minibatch of 1F1B by a recurrence: a pass begins behind the one before it on its stage and behind the one that its
 * input is from; stages step when they have passed back over the last microbatch, with a tied table the first and the
 * last when both have. Nothing is sent. */
enum { TEST_SPREAD_STAGES_MAX = 16, TEST_SPREAD_MICROBATCHES_MAX = 64 };
struct test_spread_stage {
    double forward_s, backward_s, update_s;
};
double test_spread_1f1b_s(const struct test_spread_stage *of, uint32_t stages, uint32_t microbatches,
                          bool tied);

/* Equal to 1e-9, relative. */
void test_spread_near(double found, double expected);

/* The n-th instance of a pass over a run, in plan order; the first operation of a kind in the first. */
struct plan_instance *test_spread_instance(struct plan *plan, uint32_t pass, uint32_t run, uint32_t n);
struct plan_op *test_spread_op(struct plan *plan, uint32_t pass, uint32_t run, uint32_t kind);
void test_spread_swap(struct plan_instance *a, struct plan_instance *b);
/* What they run on, the other way round. */
void test_spread_swap_places(struct plan_instance *a, struct plan_instance *b);

/* Jobs of random layers that are spilled over two devices behind links of their own; or spread, over four. */
void test_spread_or_spilled(uint64_t key, bool spread, struct plan *plan);

/* A plan with something wrong, and a part of what plan_check() says about it. */
struct test_spread_damage {
    void (*damage)(struct plan *plan);
    uint32_t variant; /* of the whole plan */
    const char *complaint;
};
void test_spread_broken(const struct test_spread_damage *cases, size_t count,
                        void (*make)(struct plan *out, uint32_t variant));

#endif
