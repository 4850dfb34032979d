/*
 * The order of a plan's tasks as turns of its devices: each device's tasks in their order (its *lane*), and the device
 * whose next task comes next.
 *
 *     order     a0 b0 a1 a0 b0 a1     with tasks a0 a1 of device 0, b0 of device 1
 *     lane 0    a0 a1 a0 a1           lane 1    b0 b0
 *     turns     0 1 0 0 1 0
 *
 * Devices that are busy with jobs of different lengths do not keep pace: where their tasks mix, the order hardly ever
 * repeats. Each lane does, and so do the turns. So these are much shorter in files.
 */
#ifndef SPILLWAY_PLANNER_WALK_PLAN_TURNS_H
#define SPILLWAY_PLANNER_WALK_PLAN_TURNS_H

#include "planner/plan.h"

struct plan_turns {
    uint32_t *distinct;  /* per distinct task: where it is in the plan's table of tasks */
    uint32_t distinct_count;
    uint32_t *lane_end;  /* per device: the end of its lane in `lanes`, which is the beginning of the next one */
    uint32_t *lanes;     /* (count): numbers of distinct tasks */
    uint32_t *turns;     /* (count): devices; of a gang, its first one */
    uint32_t count;      /* tasks of all segments, repetitions not counted */
};

/* Makes the turns of a checked plan. Returns false, with nothing to release, where they would not be shorter than the
 * tasks: few tasks, or few that come again; and without memory for them. The caller frees *out with
 * plan_turns_release(). */
bool plan_turns_make(const struct plan *plan, struct plan_turns *out);
void plan_turns_release(struct plan_turns *turns);

#endif
