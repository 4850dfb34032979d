/*
 * Good schedules of SPASE instances, anytime: lists made by rule, then simulated annealing over modes and order
 * together. Stops when it meets a lower bound.
 *
 * Deterministic for a seed and a number of iterations; a time limit only cuts it short.
 */
#ifndef SPILLWAY_PLANNER_SATURN_SPASE_SPASE_SEARCH_H
#define SPILLWAY_PLANNER_SATURN_SPASE_SPASE_SEARCH_H

#include "planner/saturn/spase/spase_schedule.h"

struct spase_search_options {
    uint64_t seed;
    uint64_t iterations;    /* lists that annealing examines; 0: only the rules */
    double until_s;         /* on the clock of base/process/clock.h; HUGE_VAL: none */
    int64_t bound;          /* lower bound: the search stops there */
    const int64_t *free_at; /* (device_count): times at which devices become free; NULL: the start */
};

/*
 * Searches. steps: out, (in->job_count), the order of the best schedule; *value: its makespan, no less than any
 * free_at. With `known` true, *value and steps[] hold a schedule to begin with (made with the same free_at).
 * *iterations: iterations made.
 */
MUST_CHECK enum status spase_search(const struct spase *in, const struct spase_search_options *options,
                                    bool known, struct spase_step *steps, int64_t *value,
                                    uint64_t *iterations, struct error *err);

#endif
