/*
 * Checks that a timetable is a schedule of its instance with the claimed value. It recomputes everything from
 * instance.h's rules and shares no code with makers of timetables.
 *
 * It names the first broken rule (STATUS_CHECK), with the job and its task's number:
 *
 *     form       every task of every job occurs once; devices hold their tasks
 *     device     no task starts before its parameters can be on the device and the device is free (d_jk)
 *     chain      no task starts before the previous task of its chain has ended, and the parameters that it
 *                wrote have come back through the host
 *     value      the objective equals the claimed value, bytes across the host bridge included
 */
#ifndef SPILLWAY_PLANNER_SOLVE_INSTANCE_TIMETABLE_CHECK_H
#define SPILLWAY_PLANNER_SOLVE_INSTANCE_TIMETABLE_CHECK_H

#include "planner/solve/instance/timetable.h"

MUST_CHECK enum status timetable_check(const struct instance *in, const struct timetable *timetable,
                                       struct error *err);

/* Checks as timetable_check(). *task: index in timetable->tasks of the task that breaks the rule, or TIMETABLE_NONE
 * where no single task breaks it. */
MUST_CHECK enum status timetable_check_task(const struct instance *in, const struct timetable *timetable,
                                            uint32_t *task, struct error *err);

#endif
