/*
 * The limits of a search that can stop at any time and has an answer whenever it does.
 *
 * A search makes steps: nodes, moves, orders. It ends after a number of steps, at a time, or when another thread asks
 * it to. The number of steps alone decides the answer; time only cuts a search short. Reading the clock takes as long
 * as some steps do, so it is read at the first step and then once per `clock_every` steps.
 */
#ifndef SPILLWAY_BASE_PROCESS_ANYTIME_H
#define SPILLWAY_BASE_PROCESS_ANYTIME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/process/clock.h"

/* Open structure. Set the first group; zero the rest. */
struct anytime {
    double until_s;          /* on clock_s(); HUGE_VAL: no limit */
    uint64_t steps_max;      /* 0: no limit */
    uint32_t clock_every;    /* at least 1 */
    const atomic_bool *stop; /* another thread's wish; may be NULL */

    uint64_t steps;          /* made so far */
    bool over;               /* a limit was reached, or the search has found enough and set this */
};

/* Counts a step. Returns true when the search may make it. */
static inline bool anytime_step(struct anytime *a)
{
    if (a->stop && atomic_load_explicit(a->stop, memory_order_relaxed)) a->over = true;
    if (a->steps_max > 0 && a->steps >= a->steps_max) a->over = true;
    if (!a->over && a->steps % a->clock_every == 0 && clock_s() >= a->until_s) a->over = true;
    a->steps += !a->over;
    return !a->over;
}

#endif
