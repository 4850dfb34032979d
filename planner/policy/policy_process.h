/*
 * A policy that is asked live. Built-in ones decide in this process; a user's shared object in its own
 * (base/process/contain.h), asked through a socket: it may crash, loop, use up memory or write anywhere.
 */
#ifndef SPILLWAY_PLANNER_POLICY_POLICY_PROCESS_H
#define SPILLWAY_PLANNER_POLICY_POLICY_PROCESS_H

#include "planner/policy/plan_dispatch.h"

struct policy_process; /* opaque */

/*
 * Opens a policy, built-in or from a file (planner/policy/policy_load.h), before any thread starts, because the process
 * is copied. `answer_s`: longest time of one answer; 0: 10 s. The caller ends it with policy_process_close(). Errors:
 * as policy_open(); STATUS_BAD_INPUT when loading the file crashes; STATUS_DEVICE without a process.
 */
MUST_CHECK enum status policy_process_open(const char *name, double answer_s, struct policy_process **out,
                                       struct error *err);
void policy_process_close(struct policy_process *policy); /* NULL is fine */

/* Returns the options with which plan_dispatch.h asks it. Borrowed. */
struct plan_dispatch_options policy_process_dispatch(struct policy_process *policy, uint64_t seed);

/* Checks whether its process has failed; it then chooses nothing. Errors: STATUS_BAD_INPUT with the event and the
 * number of the decision. */
MUST_CHECK enum status policy_process_failed(const struct policy_process *policy, struct error *err);

#endif
