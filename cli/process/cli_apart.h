/*
 * Runs a user's policy in a child process within limits of time and memory (base/process/contain.h): it may crash,
 * loop or overwrite memory, and the error says which. Results come back in a file, or the work is repeated here after
 * success.
 */
#ifndef SPILLWAY_CLI_PROCESS_CLI_APART_H
#define SPILLWAY_CLI_PROCESS_CLI_APART_H

#include "base/error.h"

/* The work releases its memory, and the policy's library. */
typedef enum status (*cli_apart_work)(void *context, struct error *err);

/*
 * Uses a child process if `policy` is a file (planner/policy/policy_load.h); does nothing for built-in policies and
 * NULL. Errors: the errors of `work`; STATUS_BAD_INPUT if the child failed; STATUS_DEVICE if no child could be
 * started.
 */
MUST_CHECK enum status cli_try_apart(const char *policy, cli_apart_work work, void *context, struct error *err);

#endif
