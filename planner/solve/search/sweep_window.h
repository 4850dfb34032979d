/*
 * The steps behind a cut, and what a change of the first few of them would do; for sweep_search.c.
 *
 * A change touches the first steps of the window alone. What it does is judged at the cut behind the last of them:
 * by how much the sum over all ways (sweep_cut.h) grows. To find that only what differs is dispatched anew: steps
 * whose job and device are as they were are left out, and most jobs and devices are soon as they were again.
 *
 *     swap      the first step and step `last` change jobs
 *     sooner    step `last` comes to be in front of the first, on that one's device
 *     later     the first step comes to be behind step `last`, likewise
 *     elsewhere the first step goes to device `to`
 *
 * All of them leave a valid order, since a step says only whose next task is meant.
 */
#ifndef SPILLWAY_PLANNER_SWEEP_WINDOW_H
#define SPILLWAY_PLANNER_SWEEP_WINDOW_H

#include "planner/solve/search/sweep_cut.h"

enum { SWEEP_REACH_MAX = 64 };

enum sweep_change_kind { SWEEP_SWAP, SWEEP_SOONER, SWEEP_LATER, SWEEP_ELSEWHERE };

struct sweep_change {
    enum sweep_change_kind kind;
    uint32_t last; /* of the steps that it touches, counted from the first; 0 for elsewhere alone */
    uint32_t to;
};

/* Where a step stands without a change. */
struct sweep_place {
    int64_t start, end;       /* its own; of its job up to it, copies out included */
    struct sweep_job job;     /* of its job and device in front of it; no `next`, no `way` */
    struct sweep_device device;
    float job_way, device_way; /* behind it, until their next steps */
};

struct sweep_window; /* opaque */

/* Around `cut`, borrowed. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status sweep_window_create(struct sweep_cut *cut, struct sweep_window **out, struct error *err);
void sweep_window_destroy(struct sweep_window *window); /* NULL is fine */

/* Steps [at, end), at most SWEEP_REACH_MAX, are the window; `at` is the first behind the cut. When it was there
 * before and neither the cut nor the steps have changed, only what is new costs anything. */
void sweep_window_set(struct sweep_window *window, uint32_t at, uint32_t end);

/* The steps or the cut have changed otherwise than by going on. */
void sweep_window_spoil(struct sweep_window *window);

/* Of step `step` of the window; valid until it changes. */
const struct sweep_place *sweep_window_place(const struct sweep_window *window, uint32_t step);

/* Whether a change fits and adds no more than `worst` to the sum; *delta is then what it adds. */
bool sweep_window_judge(struct sweep_window *window, const struct sweep_change *change, double worst,
                        double *delta);

/* Carry out the change that was judged last; the window is spoiled. */
void sweep_window_apply(struct sweep_window *window, const struct sweep_change *change);

#endif
