/*
 * The steps after a split, and the effect of changing the first of them; for local_search.c.
 *
 * A change touches only the first steps of the window. It is judged at the split after the last of them, by the growth
 * of the sum over all ways (local_split.h). Only differences are dispatched again: most jobs and devices soon return to
 * their former state.
 *
 *     swap      the first step and step `last` exchange jobs
 *     sooner    step `last` moves before the first step, to the first step's device
 *     later     the first step moves after step `last`, to that step's device
 *     elsewhere the first step goes to device `to`
 *
 * Every change leaves a valid order, because a step says only whose next task runs.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_SEARCH_LOCAL_WINDOW_H
#define SPILLWAY_PLANNER_SOLVE_SEARCH_LOCAL_WINDOW_H

#include "planner/solve/search/local_split.h"

enum { LOCAL_REACH_MAX = 64 };

enum local_change_kind { LOCAL_SWAP, LOCAL_SOONER, LOCAL_LATER, LOCAL_ELSEWHERE };

struct local_change {
    enum local_change_kind kind;
    uint32_t last; /* last step that it touches, counted from the first; 0 for elsewhere */
    uint32_t to;
};

/* The place of a step without a change. */
struct local_place {
    int64_t start, end;       /* start of the step; end of its job's tasks up to it, copies out included */
    struct local_job job;     /* its job and device before it; no `next`, no `way` */
    struct local_device device;
    float job_way, device_way; /* ways after it, until their next steps */
};

struct local_window; /* opaque */

/* Creates a window. `split` is borrowed. */
MUST_CHECK enum status local_window_create(struct local_split *split, struct local_window **out, struct error *err);
void local_window_destroy(struct local_window *window); /* NULL is fine */

/* Sets the window to steps [at, end), at most LOCAL_REACH_MAX, from the split on. Updates only new steps when `at` and
 * all steps are unchanged since the last call. */
void local_window_set(struct local_window *window, uint32_t at, uint32_t end);

/* Tells the window that the steps or the split have changed, otherwise than by advancing the split. */
void local_window_spoil(struct local_window *window);

/* Returns the place of step `step` of the window, valid until the window changes. */
const struct local_place *local_window_place(const struct local_window *window, uint32_t step);

/* Returns true when the change fits and adds no more than `worst` to the sum of ways; *delta is then the addition. */
bool local_window_judge(struct local_window *window, const struct local_change *change, double worst,
                        double *delta);

/* Carries out the change that was judged last. The window is then spoiled. */
void local_window_apply(struct local_window *window, const struct local_change *change);

#endif
