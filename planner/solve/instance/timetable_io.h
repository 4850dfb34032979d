/*
 * Timetables as JSON files: what was decided, in the numbers of its instance.
 *
 *     {"spillway_timetable": 1, "instance": "two", "objective": "makespan", "value": 47, "bound": 45,
 *      "proof": "within 4.44 % of the optimum",
 *      "devices": [[[0, 0, 3], [1, 0, 10]], [[2, 0, 5]]]}
 *
 * "devices" has an array for each device, in the instance's order; in it [job, position, start] for
 * each task, in the order in which they run. "bound" is the best that was proven.
 */
#ifndef SPILLWAY_PLANNER_TIMETABLE_IO_H
#define SPILLWAY_PLANNER_TIMETABLE_IO_H

#include "planner/solve/instance/timetable.h"

/* Atomically. `proof` is one sentence. STATUS_IO, STATUS_NO_MEMORY. */
MUST_CHECK enum status timetable_write(const struct instance *in, const struct timetable *timetable,
                                       int64_t bound, const char *proof, const char *path,
                                       struct error *err);

/*
 * Zeroed struct in; release with timetable_release(), also after an error. It is as the file says: whether
 * it is a schedule of the instance, and of that value, is for timetable_check().
 * Errors: STATUS_BAD_INPUT with file, line and column.
 */
MUST_CHECK enum status timetable_read(const struct instance *in, const char *path,
                                      struct timetable *out, int64_t *bound, struct error *err);

/*
 * The same for a file that is to be believed: of this instance by its name, a schedule of it by
 * timetable_check(), and of the value that it says. The bound is still what the file claims.
 * Errors: as above, at the task that breaks a rule where it is one's.
 */
MUST_CHECK enum status timetable_read_checked(const struct instance *in, const char *path,
                                              struct timetable *out, int64_t *bound, struct error *err);

#endif
