/*
 * Work that runs code of a user's policy, in a child process.
 *
 * The child does the whole work within limits of time and memory (base/process/contain.h). A policy may end the
 * process, crash, loop, use too much memory or overwrite memory; it then ends only the child, and the error says which.
 * Results come back in a file, or the work is repeated in this process after the child has succeeded.
 */
#ifndef SPILLWAY_CLI_PROCESS_CLI_APART_H
#define SPILLWAY_CLI_PROCESS_CLI_APART_H

#include "base/error.h"

/* The work. It releases all memory that it takes, and the policy's library. */
typedef enum status (*cli_apart_work)(void *context, struct error *err);

/*
 * Does `work` in a child process if `policy` is a file (planner/policy/policy_load.h). Does nothing for built-in
 * policies and NULL. Errors: the errors of `work`; STATUS_BAD_INPUT if the child failed; STATUS_DEVICE if no child
 * could be started.
 */
MUST_CHECK enum status cli_try_apart(const char *policy, cli_apart_work work, void *context, struct error *err);

#endif
