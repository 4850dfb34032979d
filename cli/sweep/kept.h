/*
 * A sweep's results in a file of SQLite, kept as they come, so that one that was stopped goes on.
 *
 * While a sweep runs the file is NAME.part; a point is there whole or not at all, whatever ends the program. At the end
 * it is written anew under its name, in the points' order: equal sweeps give equal bytes, whoever computed which
 * point when. One table `points` has a column for each axis and each figure, `outcome` and `reason`; another,
 * `sweep`, says what was swept (`what`) and by which version.
 */
#ifndef SPILLWAY_SWEEP_KEPT_H
#define SPILLWAY_SWEEP_KEPT_H

#include "cli/sweep/results.h"

struct sweep_kept; /* opaque */

/*
 * Open `part` or make it, and fill in the results of the points that are in it; *count says how many those are. `what`
 * is all that the results depend on. The caller ends it with sweep_kept_close().
 * Errors: STATUS_BAD_INPUT when it is of another sweep or no such file, STATUS_IO, STATUS_NO_MEMORY.
 */
MUST_CHECK enum status sweep_kept_open(const char *part, const char *what, struct sweep_results *results,
                                       uint64_t *count, struct sweep_kept **out, struct error *err);

/* One more point. STATUS_IO. */
MUST_CHECK enum status sweep_kept_add(struct sweep_kept *kept, const struct sweep_result *result, struct error *err);

/* All of it to `path`, there whole or not at all. STATUS_IO. */
MUST_CHECK enum status sweep_kept_write(struct sweep_kept *kept, const char *path, struct error *err);

/* The file stays; with `remove` it goes. NULL is fine. */
void sweep_kept_close(struct sweep_kept *kept, bool remove);

#endif
