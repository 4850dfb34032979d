/*
 * A sweep's results in a SQLite file, stored as they arrive. During the sweep it is NAME.part; each point is written
 * whole or not at all. At the end it is written as NAME, in the order of points: equal sweeps give equal bytes. A
 * table `points` has a column for each axis and figure, `outcome` and `reason`; `sweep` has the inputs (`what`) and
 * the version.
 */
#ifndef SPILLWAY_CLI_SWEEP_KEPT_H
#define SPILLWAY_CLI_SWEEP_KEPT_H

#include "cli/sweep/results.h"

struct sweep_kept; /* opaque */

/*
 * Opens or makes `part`, and fills in *count results. `what`: all inputs. The caller ends it with sweep_kept_close().
 * Errors: STATUS_BAD_INPUT if the file is of another sweep or not of a sweep, STATUS_IO.
 */
MUST_CHECK enum status sweep_kept_open(const char *part, const char *what, struct sweep_results *results,
                                       uint64_t *count, struct sweep_kept **out, struct error *err);

/* Adds a point. Errors: STATUS_IO. */
MUST_CHECK enum status sweep_kept_add(struct sweep_kept *kept, const struct sweep_result *result, struct error *err);

/* Writes `path` atomically. Errors: STATUS_IO. */
MUST_CHECK enum status sweep_kept_write(struct sweep_kept *kept, const char *path, struct error *err);

/* Closes the file; with `remove` also removes it. NULL is fine. */
void sweep_kept_close(struct sweep_kept *kept, bool remove);

#endif
