/*
 * Work that runs code of a user's policy, done in a child process.
 *
 * The child does the whole work with limits of time and memory (base/process/contain.h). A policy that ends the process, crashes,
 * loops, eats memory or overwrites what it should not does so there, and that is an error with its name. What is made comes
 * back in a file; or the work is done again here, when the child came to its end.
 */
#ifndef SPILLWAY_CLI_CLI_APART_H
#define SPILLWAY_CLI_CLI_APART_H

#include "base/error.h"

/* The work. What it makes in memory it releases again, the policy's library included. */
typedef enum status (*cli_apart_work)(void *context, struct error *err);

/*
 * Do `work` in a child when `policy` is a file (planner/policy/policy_load.h); nothing is done for built-in policies and NULL.
 * Errors: those of `work`; STATUS_BAD_INPUT when the child did not come to its end; STATUS_DEVICE without a child.
 */
MUST_CHECK enum status cli_try_apart(const char *policy, cli_apart_work work, void *context, struct error *err);

#endif
