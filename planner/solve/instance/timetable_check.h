/*
 * Is this a schedule of the instance, and is its value what it claims? Recomputed from the rules at
 * the top of instance.h; shares no code with what makes timetables.
 *
 * Names the first broken rule (STATUS_CHECK), with the job and the number of the task in its chain:
 *   form       every task of every job stands there once; devices hold their tasks
 *   device     nothing starts before its parameters can be there and the device is free (d_jk)
 *   chain      nothing starts before the task in front of it has ended, and what that wrote has
 *              come back through the host
 *   value      of the objective, as claimed; with the bytes that cross the host bridge
 */
#ifndef SPILLWAY_PLANNER_TIMETABLE_CHECK_H
#define SPILLWAY_PLANNER_TIMETABLE_CHECK_H

#include "planner/solve/instance/timetable.h"

MUST_CHECK enum status timetable_check(const struct instance *in, const struct timetable *timetable,
                                       struct error *err);

/* The same; *task: of a broken rule, the index in timetable->tasks of the task that breaks it, or
 * TIMETABLE_NONE where it is none's alone. */
MUST_CHECK enum status timetable_check_task(const struct instance *in, const struct timetable *timetable,
                                            uint32_t *task, struct error *err);

#endif
