/*
 * Chooses the next task of a plan of an open order (plan_is_open()) while the tasks run.
 *
 * A policy (policy.h) is asked when a device has a free *slot*. A device has as many slots as any unit has choices
 * there. A unit holds its slot from the choice until its interpreter reports its end; then its job is ready again. A
 * unit that uses no device, such as an embedding on the host's processor, takes none. Updates and kept weights are
 * dispatched directly after their unit.
 *
 * Costs and remaining times are the plan's predictions; the time is the interpreter's, in seconds. The policy sees a
 * slot's share of the device's arena as its memory.
 *
 * Of parallel jobs the policy decides about whole minibatches. A job keeps its devices: the policy sees it on the first
 * of them, where it is asked only about jobs of which every device has a slot. A device has two slots, so that a
 * minibatch fills the pipeline while the one before it drains. The job's states come with its first minibatch and leave
 * with its last. Costs are seconds of computation, shared equally by the devices.
 *
 * This module takes the choice of a unit that overlaps least with the device's last units, for speed only: an operation
 * waits for former users of its memory (rule 2).
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

/* `plan` is borrowed and has passed plan_check(). The caller frees it with plan_dispatch_destroy(). Errors:
 * STATUS_BAD_INPUT for a plan with one order; STATUS_INFEASIBLE for a policy that cannot be asked, or keeps states on
 * devices. */
MUST_CHECK enum status plan_dispatch_create(const struct plan *plan, const struct plan_dispatch_options *options,
                                            struct plan_dispatch **out, struct error *err);
void plan_dispatch_destroy(struct plan_dispatch *dispatch); /* NULL is fine */

struct plan_dispatched {
    const struct plan_task *task; /* one of the plan's choices; or of its tasks, of parallel jobs */
    bool decided;                 /* plan_dispatch_over() has to report its end; else it follows a decided unit */
    bool more;                    /* decided: the next task belongs to the same minibatch, whose end is reported */
};

/*
 * *found false: no task now; ask again when a unit has ended. Errors: STATUS_BAD_INPUT when the policy breaks a
 * rule, or waits though nothing runs (policy_ask.h).
 */
MUST_CHECK enum status plan_dispatch_next(struct plan_dispatch *dispatch, double now_s,
                                          struct plan_dispatched *out, bool *found, struct error *err);

/* Reports the end of the job's unit or minibatch that was decided last. */
void plan_dispatch_over(struct plan_dispatch *dispatch, uint32_t job, double now_s);

/* Starts no further unit or minibatch of a job; what has begun is dispatched to its end. The states of a parallel job
 * stay on its devices. */
void plan_dispatch_drop_job(struct plan_dispatch *dispatch, uint32_t job);

/* Asks the policy no more: from now on the lowest ready job goes to the lowest device with a slot. */
void plan_dispatch_end_policy(struct plan_dispatch *dispatch);

/* Return the number of units or minibatches that were decided and have not ended; the number of questions to the
 * policy. */
uint32_t plan_dispatch_running(const struct plan_dispatch *dispatch);
uint64_t plan_dispatch_decisions(const struct plan_dispatch *dispatch);

#endif
