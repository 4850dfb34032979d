/*
 * The policy of a run that is dispatched live. Built-in ones decide in this process. A shared object of
 * the user's decides in a process of its own, which is asked through a socket: it may crash, loop or
 * write wherever it likes, and the run goes on far enough to keep what was trained.
 */
#ifndef SPILLWAY_EXEC_RUN_POLICY_H
#define SPILLWAY_EXEC_RUN_POLICY_H

#include "planner/plan_dispatch.h"

struct run_policy; /* opaque */

/*
 * `name`: of a built-in policy, or a file (planner/policy_load.h). Before any thread is started: a process
 * is copied. `answer_s`: how long one answer may take; 0: 10 s. The caller ends it with run_policy_close().
 * Errors: those of policy_open(); STATUS_BAD_INPUT when loading it crashes; STATUS_DEVICE when there can be
 * no process.
 */
MUST_CHECK enum status run_policy_open(const char *name, double answer_s, struct run_policy **out,
                                       struct error *err);
void run_policy_close(struct run_policy *policy); /* NULL is fine */

/* How plan_dispatch.h asks it. Borrowed. */
struct plan_dispatch_options run_policy_dispatch(struct run_policy *policy, uint64_t seed);

/* Has its process failed? It then chooses nothing. STATUS_BAD_INPUT with what happened in which decision. */
MUST_CHECK enum status run_policy_failed(const struct run_policy *policy, struct error *err);

#endif
