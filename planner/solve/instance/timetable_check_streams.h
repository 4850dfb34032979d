/* The part of timetable_check() for instances with streams. */
#ifndef SPILLWAY_PLANNER_SOLVE_INSTANCE_TIMETABLE_CHECK_STREAMS_H
#define SPILLWAY_PLANNER_SOLVE_INSTANCE_TIMETABLE_CHECK_STREAMS_H

#include "planner/solve/instance/timetable.h"

/* Checks the starts of a timetable that has every task once. ends: (job_count), out. *task: index of the task that
 * starts too early. Errors: STATUS_CHECK. */
MUST_CHECK enum status timetable_check_streams(const struct instance *in, const struct timetable *timetable,
                                               int64_t *ends, uint32_t *task, struct error *err);

#endif
