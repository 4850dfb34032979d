/*
 * Policies by name: built-in ones, and users' shared objects.
 *
 * A name with a slash or ".so" at its end is a file. Loading it runs its code with all rights of this process; use a
 * child process for untrusted files (policy_trial.h).
 */
#ifndef SPILLWAY_PLANNER_POLICY_POLICY_LOAD_H
#define SPILLWAY_PLANNER_POLICY_POLICY_LOAD_H

#include "base/error.h"
#include "planner/policy/policy.h"

enum { POLICY_NAME_MAX = 63 };

struct policy_handle {
    const struct policy *policy; /* borrowed until policy_close() */
    void *library;               /* NULL: built in */
};

bool policy_is_file(const char *name);

/* Returns true for lower case letters, digits and dashes, starting with a letter, at most POLICY_NAME_MAX long. */
bool policy_name_is_good(const char *name);

/*
 * Returns the error for an unknown `name`, with a suggestion or all names: built-in ones and `others`, which the caller
 * accepts (ends with NULL; may be NULL).
 */
MUST_CHECK enum status policy_unknown(const char *name, const char *const *others, struct error *err);

/*
 * Close it with policy_close(). Errors: STATUS_BAD_INPUT for an unknown name (with a suggestion), or a file that is
 * missing or defines no valid spillway_policy of this version.
 */
MUST_CHECK enum status policy_open(const char *name, struct policy_handle *out, struct error *err);
void policy_close(struct policy_handle *handle); /* zeroed is allowed */

#endif
