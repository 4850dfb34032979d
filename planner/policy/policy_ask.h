/*
 * Asks a policy and checks its answer, for all callers.
 *
 * A refusal's message has the answer and the decision's number.
 */
#ifndef SPILLWAY_PLANNER_POLICY_POLICY_ASK_H
#define SPILLWAY_PLANNER_POLICY_POLICY_ASK_H

#include "base/error.h"
#include "planner/policy/policy.h"

/* Rules that a policy may break; policy_rule_names has the words of `policy test`. */
enum policy_rule {
    POLICY_RULE_CHOICES,       /* jobs and devices that exist; devices that ask */
    POLICY_RULE_ORDER,         /* jobs that are ready */
    POLICY_RULE_MEMORY,        /* devices that hold the unit, and are allowed */
    POLICY_RULE_TERMINATES,    /* no waiting for nothing, no crash, no endless loop */
    POLICY_RULE_DETERMINISTIC, /* equal choices in two runs */
    POLICY_RULE_COUNT
};
extern const char *const policy_rule_names[POLICY_RULE_COUNT];

/* The dealings of one schedule with a policy. */
struct policy_session {
    const struct policy *policy;
    void *state;
    uint64_t decisions;
    double seconds;         /* time spent in the policy, when `timed` */
    bool timed;
    enum policy_rule broken; /* after an error */
};

/* Begins a session. `first`: view of the first decision. Errors: STATUS_NO_MEMORY when the policy cannot create a
 * state. */
MUST_CHECK enum status policy_session_begin(struct policy_session *session, const struct policy *policy,
                                            const struct policy_view *first, struct error *err);
void policy_session_end(struct policy_session *session); /* zeroed is allowed */

/*
 * *waits: the policy waits; else policy_may_run() holds for *out. Sets view->decision. Errors: STATUS_BAD_INPUT, with
 * the answer and the decision's number.
 */
MUST_CHECK enum status policy_session_ask(struct policy_session *session, struct policy_view *view,
                                          struct policy_choice *out, bool *waits, struct error *err);

/* Returns the decision of a policy on a view: by choose(), or by its rank(). */
bool policy_decide(const struct policy *policy, void *state, const struct policy_view *view,
                   struct policy_choice *out);

/* Returns the error of a policy that waits although nothing runs. */
enum status policy_session_stuck(struct policy_session *session, const struct policy_view *view,
                                 struct error *err);

#endif
