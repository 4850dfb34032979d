/*
 * Live dispatch: which instance of a plan with choices (plan.h) comes next, asked while they run.
 *
 * What is asked is a policy (policy.h), as soon as a device has a free *slot*: so many units may be on a
 * device at a time as the most choices that any unit has there. A unit takes its slot when it is chosen and
 * gives it back when it is over, which its interpreter says; then its job is ready again. A unit that does
 * nothing on a device, such as an embedding of the host's processor, takes none. What no policy decides
 * about, updates and kept weights behind a unit, follows that unit at once.
 *
 * Costs and times left are the plan's predictions; the time is the interpreter's, in seconds. A slot is as
 * much memory, to the policy, as its share of the device's arena.
 *
 * Which choice an instance is given is decided here: that which overlaps least with what the device took
 * last. It matters for speed alone, since whoever takes memory waits for those who had it (rule 2).
 */
#ifndef SPILLWAY_PLANNER_PLAN_DISPATCH_H
#define SPILLWAY_PLANNER_PLAN_DISPATCH_H

#include "planner/plan.h"
#include "planner/policy/policy_ask.h"

struct plan_dispatch; /* opaque */

struct plan_dispatch_options {
    const struct policy *policy;
    void *state;   /* for its functions, in place of what create() makes, which is not called then */
    uint64_t seed;
};

/* Borrows `plan`, which has passed plan_check(). The caller frees it with plan_dispatch_destroy().
 * Errors: STATUS_BAD_INPUT for a plan without choices; STATUS_INFEASIBLE for a policy that cannot be asked,
 * or keeps states on devices; STATUS_NO_MEMORY. */
MUST_CHECK enum status plan_dispatch_create(const struct plan *plan, const struct plan_dispatch_options *options,
                                            struct plan_dispatch **out, struct error *err);
void plan_dispatch_destroy(struct plan_dispatch *dispatch); /* NULL is fine */

struct plan_dispatched {
    const struct plan_instance *instance; /* a choice of the plan's */
    bool decided;                         /* it is over when plan_dispatch_over() says so; else it follows
                                             one that was */
};

/*
 * What comes next. *found false: nothing now, ask again when a unit is over (or, where all is over, never).
 * Errors: STATUS_BAD_INPUT when the policy breaks a rule, or waits though nothing runs (policy_ask.h).
 */
MUST_CHECK enum status plan_dispatch_next(struct plan_dispatch *dispatch, double now_s,
                                          struct plan_dispatched *out, bool *found, struct error *err);

/* The job's unit, the last that was decided, is over. */
void plan_dispatch_over(struct plan_dispatch *dispatch, uint32_t job, double now_s);

/* Nothing more of a job is begun. */
void plan_dispatch_drop_job(struct plan_dispatch *dispatch, uint32_t job);

/* From now on the policy is not asked: the lowest ready job goes to the lowest device with a slot. */
void plan_dispatch_end_policy(struct plan_dispatch *dispatch);

/* Units that were decided and are not over; how often the policy was asked. */
uint32_t plan_dispatch_running(const struct plan_dispatch *dispatch);
uint64_t plan_dispatch_decisions(const struct plan_dispatch *dispatch);

#endif
