/*
 * A policy that is asked live. Built-in ones decide in this process. A shared object of the user's decides in a process of
 * its own (base/process/contain.h), which is asked through a socket: it may crash, loop, eat memory or write wherever it likes, and
 * whoever asks goes on.
 */
#ifndef SPILLWAY_PLANNER_POLICY_PROCESS_H
#define SPILLWAY_PLANNER_POLICY_PROCESS_H

#include "planner/policy/plan_dispatch.h"

struct policy_process; /* opaque */

/*
 * `name`: of a built-in policy, or a file (planner/policy/policy_load.h). Before any thread is started: a process
 * is copied. `answer_s`: how long one answer may take; 0: 10 s. The caller ends it with policy_process_close().
 * Errors: those of policy_open(); STATUS_BAD_INPUT when loading it crashes; STATUS_DEVICE when there can be
 * no process.
 */
MUST_CHECK enum status policy_process_open(const char *name, double answer_s, struct policy_process **out,
                                       struct error *err);
void policy_process_close(struct policy_process *policy); /* NULL is fine */

/* How plan_dispatch.h asks it. Borrowed. */
struct plan_dispatch_options policy_process_dispatch(struct policy_process *policy, uint64_t seed);

/* Has its process failed? It then chooses nothing. STATUS_BAD_INPUT with what happened in which decision. */
MUST_CHECK enum status policy_process_failed(const struct policy_process *policy, struct error *err);

#endif
