/*
 * Asking a policy, and holding what it answers against the rules: shared by all that drive one.
 *
 * An answer that breaks a rule is refused with what it was and in which decision, whatever the policy
 * is; the schedulers can then rely on what they get.
 */
#ifndef SPILLWAY_PLANNER_POLICY_ASK_H
#define SPILLWAY_PLANNER_POLICY_ASK_H

#include "base/error.h"
#include "planner/policy/policy.h"

/* What a policy may break; the words of `policy test` are in policy_rule_names. */
enum policy_rule {
    POLICY_RULE_CHOICES,       /* jobs and devices that exist; devices that ask */
    POLICY_RULE_ORDER,         /* jobs that are ready */
    POLICY_RULE_MEMORY,        /* devices that hold the unit, and may */
    POLICY_RULE_TERMINATES,    /* no waiting for nothing, no crash, no loop */
    POLICY_RULE_DETERMINISTIC, /* the same twice */
    POLICY_RULE_COUNT
};
extern const char *const policy_rule_names[POLICY_RULE_COUNT];

/* One schedule's dealings with a policy. */
struct policy_session {
    const struct policy *policy;
    void *state;
    uint64_t decisions;
    double seconds;         /* spent in the policy, when `timed` */
    bool timed;
    enum policy_rule broken; /* after an error */
};

/* `first`: the view of the first decision. Errors: STATUS_NO_MEMORY when it has no state to give. */
MUST_CHECK enum status policy_session_begin(struct policy_session *session, const struct policy *policy,
                                            const struct policy_view *first, struct error *err);
void policy_session_end(struct policy_session *session); /* zeroed is fine */

/*
 * Ask. *waits: it chose nothing; else *out is a choice for which policy_may_run() holds. view->decision
 * is set here. Errors: STATUS_BAD_INPUT, with the answer and the number of the decision.
 */
MUST_CHECK enum status policy_session_ask(struct policy_session *session, struct policy_view *view,
                                          struct policy_choice *out, bool *waits, struct error *err);

/* What a policy says to a view: choose(), or what its rank() leads to. */
bool policy_decide(const struct policy *policy, void *state, const struct policy_view *view,
                   struct policy_choice *out);

/* The error of a policy that waits although nothing is left to wait for. */
enum status policy_session_stuck(struct policy_session *session, const struct policy_view *view,
                                 struct error *err);

#endif
