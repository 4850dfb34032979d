/*
 * How far off predictions were, by time or by whatever the runs have in common.
 *
 * A run counts when every job came to its end, so that what was predicted and what was measured are the same work. Its
 * error is predicted / measured - 1 of the makespan: above 0 it was faster than promised, by so much of its own time.
 */
#ifndef SPILLWAY_HISTORY_ERROR_H
#define SPILLWAY_HISTORY_ERROR_H

#include <stdbool.h>

#include "cli/history/history.h"

enum history_by { HISTORY_BY_DAY, HISTORY_BY_MONTH, HISTORY_BY_POLICY, HISTORY_BY_HARDWARE, HISTORY_BY_NETWORKS,
                  HISTORY_BY_COUNT };
extern const char *const history_by_names[]; /* ends with NULL */

struct history_error {
    const char *group;    /* "2026-11" */
    size_t runs;
    double mean;          /* of errors: a bias */
    double mean_absolute, median_absolute;
    double worst;         /* with its sign */
};

/* Of one run; false: it does not count. */
bool history_error_of(const struct history_record *record, double *out);

/* A group for each value, in ascending order, and behind them all runs together, as "all". No groups without runs that
 * count. Texts live as long as `arena` and the records. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status history_errors(const struct history_record *records, size_t count, enum history_by by,
                                      struct arena *arena, struct history_error **out, size_t *group_count,
                                      struct error *err);

#endif
