/*
 * A folder of instances with best known schedules, which tests the search.
 *
 * best/NAME.json belongs to NAME.json: a timetable (timetable_io.h) with the best known value and proven bound. Both
 * are checked: the schedule by timetable_check(), and no bound may exceed any value.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_CERTIFY_INSTANCE_LIBRARY_H
#define SPILLWAY_PLANNER_SOLVE_CERTIFY_INSTANCE_LIBRARY_H

#include "planner/solve/certify/certify.h"

enum { INSTANCE_LIBRARY_MAX = 4096, INSTANCE_LIBRARY_NAME_BYTES = 80 };

struct instance_library_row {
    char name[INSTANCE_LIBRARY_NAME_BYTES]; /* NAME */
    uint32_t device_count, job_count, task_count;
    int64_t best, best_bound; /* as in the file */
    struct certificate found; /* certificate of this run; its `solver` is borrowed from the options */
};

struct instance_library {
    struct instance_library_row *rows; /* by name */
    uint32_t count;
};

/* Lists the names without reading the files. Release it with instance_library_release(), also after an error.
 * Errors: STATUS_IO; STATUS_BAD_INPUT for a folder without instances; STATUS_LIMIT. */
MUST_CHECK enum status instance_library_open(const char *folder, struct instance_library *out,
                                             struct error *err);
void instance_library_release(struct instance_library *library);

/*
 * Checks row `index`'s schedule, and certifies the instance again under `limits`. Errors: of reading; STATUS_CHECK for
 * a schedule that breaks a rule or lacks the claimed value, or a value below a proven bound.
 */
MUST_CHECK enum status instance_library_solve(const char *folder, struct instance_library *library,
                                              uint32_t index, const struct certify_options *limits,
                                              struct error *err);

/* Returns true when the value is worse than the best known one. */
static inline bool instance_library_worse(const struct instance_library_row *row)
{
    return row->found.value > row->best;
}

#endif
