/*
 * Live dispatch: chooses the next instance of a plan with choices (plan.h) while the instances run.
 *
 * A policy (policy.h) is asked as soon as a device has a free *slot*. The number of units that may be on a device at a
 * time is the largest number of choices that any unit has there. A unit takes its slot when it is chosen and gives it
 * back when its interpreter reports its end; then its job is ready again. A unit that uses no device, such as an
 * embedding on the host's processor, takes no slot. Updates and kept weights that follow a unit are no decisions: they
 * are dispatched directly after it.
 *
 * Costs and remaining times are the plan's predictions; the time is the interpreter's, in seconds. To the policy, a
 * slot has its share of the device's arena as memory.
 *
 * This module chooses between the choices of a unit: it takes the one that overlaps least with the last units of the
 * device. That matters for speed only, because an operation that takes memory waits for the former users of the memory
 * (rule 2).
 */
#ifndef SPILLWAY_PLANNER_POLICY_PLAN_DISPATCH_H
#define SPILLWAY_PLANNER_POLICY_PLAN_DISPATCH_H

#include "planner/plan.h"
#include "planner/policy/policy_ask.h"

struct plan_dispatch; /* opaque */

struct plan_dispatch_options {
    const struct policy *policy;
    void *state;   /* argument of its functions, in place of a state from create(), which is then not called */
    uint64_t seed;
};

/* Creates a dispatch. `plan` is borrowed and has passed plan_check(). The caller frees it with
 * plan_dispatch_destroy(). Errors: STATUS_BAD_INPUT for a plan without choices; STATUS_INFEASIBLE for a policy that
 * cannot be asked, or keeps states on devices. */
MUST_CHECK enum status plan_dispatch_create(const struct plan *plan, const struct plan_dispatch_options *options,
                                            struct plan_dispatch **out, struct error *err);
void plan_dispatch_destroy(struct plan_dispatch *dispatch); /* NULL is fine */

struct plan_dispatched {
    const struct plan_instance *instance; /* one of the plan's choices */
    bool decided;                         /* plan_dispatch_over() has to report its end; else it follows a decided
                                             unit */
};

/*
 * Returns the next instance. *found false: none now; ask again when a unit has ended. Errors: STATUS_BAD_INPUT when the
 * policy breaks a rule, or waits though nothing runs (policy_ask.h).
 */
MUST_CHECK enum status plan_dispatch_next(struct plan_dispatch *dispatch, double now_s,
                                          struct plan_dispatched *out, bool *found, struct error *err);

/* Reports the end of the job's unit that was decided last. */
void plan_dispatch_over(struct plan_dispatch *dispatch, uint32_t job, double now_s);

/* Starts no further unit of a job. */
void plan_dispatch_drop_job(struct plan_dispatch *dispatch, uint32_t job);

/* Asks the policy no more: from now on the lowest ready job goes to the lowest device with a slot. */
void plan_dispatch_end_policy(struct plan_dispatch *dispatch);

/* Return the number of units that were decided and have not ended; the number of questions to the policy. */
uint32_t plan_dispatch_running(const struct plan_dispatch *dispatch);
uint64_t plan_dispatch_decisions(const struct plan_dispatch *dispatch);

#endif
