/*
 * Errors of predictions, by time or a property of runs. A run counts if every job ended. Its error is predicted /
 * measured - 1 of the makespan: above 0 the run was faster than predicted.
 */
#ifndef SPILLWAY_CLI_HISTORY_HISTORY_ERROR_H
#define SPILLWAY_CLI_HISTORY_HISTORY_ERROR_H

#include <stdbool.h>

#include "cli/history/history.h"

enum history_by { HISTORY_BY_DAY, HISTORY_BY_MONTH, HISTORY_BY_POLICY, HISTORY_BY_HARDWARE, HISTORY_BY_NETWORKS,
                  HISTORY_BY_COUNT };
extern const char *const history_by_names[]; /* ends with NULL */

struct history_error {
    const char *group;    /* "2026-11" */
    size_t runs;
    double mean;          /* of errors: the bias */
    double mean_absolute, median_absolute;
    double worst;         /* with its sign */
};

/* Returns false if the run does not count. */
bool history_error_of(const struct history_record *record, double *out);

/* Makes a group for each value, ascending, and a last group "all", without empty ones. Texts live as long as
 * `arena` and the records. */
MUST_CHECK enum status history_errors(const struct history_record *records, size_t count, enum history_by by,
                                      struct arena *arena, struct history_error **out, size_t *group_count,
                                      struct error *err);

#endif
