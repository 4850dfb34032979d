/*
 * The slowest subplan makes 1, 2, 3 ... repetitions in a cycle, the others their nearest number: they differ by at most
 * its period in each cycle, and 1 / drift of its repetitions are always near enough. For two subplans this is rational
 * approximation, with a much shorter cycle: the best short cycle that is near enough is taken, else a longer one.
 */
#include "planner/strategy/merge_cycle.h"

#include <math.h>

#include "base/extreme.h"

enum {
    LONGEST = 512,                /* repetitions of the slowest subplan, at least 1 / drift_long */
    SHORT_TASKS = 1 << 12,
    MEDIUM_TASKS = 1 << 14,
    TASKS_MAX = 1 << 22
};

/* The parts of a cycle's time by which its subplans may differ. A short cycle must differ by little, since a simulation
 * goes on until the drift has made subplans wait for each other. */
static const double drift_little = 1e-5, drift_medium = 1e-3, drift_long = 3e-3;

struct merge_cycle {
    uint64_t tasks, times;
    double shortest_s, longest_s; /* of the subplans' repetitions in a cycle */
};

/* In `seconds`, or somewhat more or less. */
static struct merge_cycle cycle_of(struct merge_pace *paces, uint32_t count, double seconds, double room_s)
{
    struct merge_cycle cycle = {.times = UINT32_MAX, .shortest_s = HUGE_VAL};
    for (uint32_t i = 0; i < count; i++) {
        struct merge_pace *pace = &paces[i];
        double repeats = max_s(1, floor(seconds / pace->period_s + 0.5));
        if (repeats > pace->left) return (struct merge_cycle){0};
        pace->in_cycle = (uint32_t)repeats;
        cycle.tasks += (uint64_t)pace->in_cycle * pace->tasks;
        cycle.times = min_u64(cycle.times, pace->left / pace->in_cycle);
        cycle.shortest_s = min_s(cycle.shortest_s, repeats * pace->period_s);
        cycle.longest_s = max_s(cycle.longest_s, repeats * pace->period_s);
    }
    if (room_s < (double)cycle.times * cycle.longest_s) cycle.times = (uint64_t)(room_s / cycle.longest_s);
    return cycle;
}

/* Returns the part of its time by which a cycle's subplans differ; 0: less than a repetition while it repeats. */
static double drift_of(const struct merge_cycle *cycle, double fastest_s)
{
    double drift_s = cycle->longest_s - cycle->shortest_s;
    return drift_s * (double)cycle->times <= fastest_s ? 0 : drift_s / cycle->longest_s;
}

/* Finds the repetitions of the slowest subplan in the best cycle; 0: there is none. */
static uint32_t find_cycle(struct merge_pace *paces, uint32_t count, double slowest_s, double fastest_s, double room_s)
{
    double best_drift = drift_medium;
    uint32_t best = 0;
    for (uint32_t n = 1; n <= LONGEST; n++) {
        struct merge_cycle cycle = cycle_of(paces, count, n * slowest_s, room_s);
        if (cycle.times < MERGE_CYCLE_TIMES_MIN || cycle.tasks > TASKS_MAX) return best;
        if (cycle.tasks > SHORT_TASKS && best > 0) return best;
        if (cycle.tasks * cycle.times < MERGE_CYCLE_SAVES_MIN) continue;
        double drift = drift_of(&cycle, fastest_s);
        if (cycle.tasks > SHORT_TASKS && drift <= (cycle.tasks > MEDIUM_TASKS ? drift_long : drift_medium))
            return n;
        if (drift >= best_drift) continue;
        best_drift = drift;
        best = n;
        if (drift <= drift_little) return n;
    }
    return best;
}

uint32_t merge_cycle_choose(struct merge_pace *paces, uint32_t count, double room_s)
{
    double slowest_s = 0, fastest_s = HUGE_VAL, tasks = 0;
    for (uint32_t i = 0; i < count; i++) {
        slowest_s = max_s(slowest_s, paces[i].period_s);
        fastest_s = min_s(fastest_s, paces[i].period_s);
        tasks += min_s(paces[i].left, room_s / paces[i].period_s) * paces[i].tasks;
    }
    if (tasks < MERGE_CYCLE_SAVES_MIN) return 0;
    uint32_t best = find_cycle(paces, count, slowest_s, fastest_s, room_s);
    return best > 0 ? (uint32_t)cycle_of(paces, count, best * slowest_s, room_s).times : 0;
}
