/*
 * Chooses a cycle of subplans that repeat side by side at their own paces: each makes whole repetitions in its time.
 *
 *     period 2 s   a a a  a a a  a a a        cycle: 3 of a and 2 of b, 6 s
 *     period 3 s   b  b   b  b   b  b
 *
 * In general periods have no common multiple. A cycle is taken when its subplans drift apart by less than a repetition
 * while it repeats, or in each cycle by a small part of its time, smaller for short cycles, of which there is a choice;
 * with like subplans the first cycle is exact.
 */
#ifndef SPILLWAY_PLANNER_STRATEGY_MERGE_CYCLE_H
#define SPILLWAY_PLANNER_STRATEGY_MERGE_CYCLE_H

#include <stdbool.h>
#include <stdint.h>

struct merge_pace {
    double period_s;     /* seconds of a repetition, more than 0 */
    uint32_t tasks;  /* of a repetition */
    uint32_t left;       /* repetitions that it may make */
    uint32_t in_cycle;   /* out: repetitions in a cycle */
};

/*
 * Chooses a cycle that repeats at least MERGE_CYCLE_TIMES_MIN times within `room_s` and the repetitions that are left.
 * Returns how often it repeats; 0: none does, or writing all out takes few tasks.
 */
uint32_t merge_cycle_choose(struct merge_pace *paces, uint32_t count, double room_s);

enum {
    MERGE_CYCLE_TIMES_MIN = 8,
    MERGE_CYCLE_SAVES_MIN = 1 << 14 /* tasks: with fewer, a plan is small anyway */
};

#endif
