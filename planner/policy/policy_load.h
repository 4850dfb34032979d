/*
 * Policies by name: built-in ones, and shared objects of the user's.
 *
 * A name that has a slash in it or ends in ".so" is a file. Loading it runs code of it, with all the
 * rights of this process; whoever does not trust it loads it in a child (policy_trial.h).
 */
#ifndef SPILLWAY_PLANNER_POLICY_LOAD_H
#define SPILLWAY_PLANNER_POLICY_LOAD_H

#include "base/error.h"
#include "planner/policy/policy.h"

enum { POLICY_NAME_MAX = 63 };

struct policy_handle {
    const struct policy *policy; /* borrowed until policy_close() */
    void *library;               /* NULL: built in */
};

bool policy_is_file(const char *name);

/* Lower case letters, digits and dashes, a letter in front, at most POLICY_NAME_MAX. */
bool policy_name_is_good(const char *name);

/*
 * Say that no policy is called `name`, with a suggestion, or with all that could have been meant: the built-in ones
 * and `others`, the words that the caller takes in place of one. `others` ends with NULL and may be NULL.
 */
MUST_CHECK enum status policy_unknown(const char *name, const char *const *others, struct error *err);

/*
 * Find or load. Close it with policy_close().
 * Errors: STATUS_BAD_INPUT for an unknown name (with a suggestion), a file that is missing, is no
 * shared object or defines no spillway_policy, one of another version, one without a name of its own
 * or without one of choose() and rank().
 */
MUST_CHECK enum status policy_open(const char *name, struct policy_handle *out, struct error *err);
void policy_close(struct policy_handle *handle); /* zeroed is fine */

#endif
