/*
 * A folder of instances with the best schedule known of each: does the search still reach them?
 *
 * For NAME.json there is best/NAME.json, a timetable (timetable_io.h) with the best known value and the best
 * proven bound. Neither is believed: the schedule is checked, and no bound may be above any value.
 */
#ifndef SPILLWAY_PLANNER_INSTANCE_LIBRARY_H
#define SPILLWAY_PLANNER_INSTANCE_LIBRARY_H

#include "planner/solve/certify/certify.h"

enum { INSTANCE_LIBRARY_MAX = 4096, INSTANCE_LIBRARY_NAME_BYTES = 80 };

struct instance_library_row {
    char name[INSTANCE_LIBRARY_NAME_BYTES]; /* NAME */
    uint32_t device_count, job_count, task_count;
    int64_t best, best_bound; /* of the file */
    struct certificate found; /* of now; its `solver` is borrowed from the options */
};

struct instance_library {
    struct instance_library_row *rows; /* by name */
    uint32_t count;
};

/* The names, without anything read. Release it with instance_library_release(), also after an error.
 * Errors: STATUS_IO; STATUS_BAD_INPUT for a folder without instances; STATUS_LIMIT; STATUS_NO_MEMORY. */
MUST_CHECK enum status instance_library_open(const char *folder, struct instance_library *out,
                                             struct error *err);
void instance_library_release(struct instance_library *library);

/*
 * Read row `index`, check its schedule, and certify the instance anew under `limits` (early, the time
 * divided and the seed as they stand there).
 * Errors: those of reading; STATUS_CHECK when the schedule breaks a rule, has not the value it claims,
 * ends below a bound that is proven now, or the new one below the bound of the file.
 */
MUST_CHECK enum status instance_library_solve(const char *folder, struct instance_library *library,
                                              uint32_t index, const struct certify_options *limits,
                                              struct error *err);

/* Did the value get worse than the best known? */
static inline bool instance_library_worse(const struct instance_library_row *row)
{
    return row->found.value > row->best;
}

#endif
