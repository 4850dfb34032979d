/*
 * Timetables as JSON files, in their instance's numbers.
 *
 *     {"spillway_timetable": 1, "instance": "two", "objective": "makespan", "value": 47, "bound": 45,
 *      "proof": "within 4.44 % of the optimum",
 *      "devices": [[[0, 0, 3], [1, 0, 10]], [[2, 0, 5]]]}
 *
 * "devices" has an array for each device, with [job, position, start] for each task in the order in which they run.
 * "bound" is the best proven bound.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_INSTANCE_TIMETABLE_IO_H
#define SPILLWAY_PLANNER_SOLVE_INSTANCE_TIMETABLE_IO_H

#include "planner/solve/instance/timetable.h"

/* Writes a timetable atomically. `proof` is one sentence. Errors: STATUS_IO. */
MUST_CHECK enum status timetable_write(const struct instance *in, const struct timetable *timetable,
                                       int64_t bound, const char *proof, const char *path,
                                       struct error *err);

/* Reads a timetable without judging it; timetable_check() does that. Errors: STATUS_BAD_INPUT with file, line and
 * column. */
MUST_CHECK enum status timetable_read(const struct instance *in, const char *path,
                                      struct timetable *out, int64_t *bound, struct error *err);

/*
 * Reads a timetable and checks that it names this instance, passes timetable_check() and has its claimed value. The
 * bound is not checked. Errors: as above, at the breaking task's position.
 */
MUST_CHECK enum status timetable_read_checked(const struct instance *in, const char *path,
                                              struct timetable *out, int64_t *bound, struct error *err);

#endif
