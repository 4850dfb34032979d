/*
 * The steps behind a cut, and what a change of the first few of them would do; for local_search.c.
 *
 * A change touches the first steps of the window alone. What it does is judged at the cut behind the last of them:
 * by how much the sum over all ways (local_cut.h) grows. To find that only what differs is dispatched anew: steps
 * whose job and device are as they were are left out, and most jobs and devices are soon as they were again.
 *
 *     swap      the first step and step `last` change jobs
 *     sooner    step `last` comes to be in front of the first, on that one's device
 *     later     the first step comes to be behind step `last`, likewise
 *     elsewhere the first step goes to device `to`
 *
 * All of them leave a valid order, since a step says only whose next task is meant.
 */
#ifndef SPILLWAY_PLANNER_LOCAL_WINDOW_H
#define SPILLWAY_PLANNER_LOCAL_WINDOW_H

#include "planner/solve/search/local_cut.h"

enum { LOCAL_REACH_MAX = 64 };

enum local_change_kind { LOCAL_SWAP, LOCAL_SOONER, LOCAL_LATER, LOCAL_ELSEWHERE };

struct local_change {
    enum local_change_kind kind;
    uint32_t last; /* of the steps that it touches, counted from the first; 0 for elsewhere alone */
    uint32_t to;
};

/* Where a step stands without a change. */
struct local_place {
    int64_t start, end;       /* its own; of its job up to it, copies out included */
    struct local_job job;     /* of its job and device in front of it; no `next`, no `way` */
    struct local_device device;
    float job_way, device_way; /* behind it, until their next steps */
};

struct local_window; /* opaque */

/* Around `cut`, borrowed. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status local_window_create(struct local_cut *cut, struct local_window **out, struct error *err);
void local_window_destroy(struct local_window *window); /* NULL is fine */

/* Steps [at, end), at most LOCAL_REACH_MAX, are the window; `at` is the first behind the cut. When it was there
 * before and neither the cut nor the steps have changed, only what is new costs anything. */
void local_window_set(struct local_window *window, uint32_t at, uint32_t end);

/* The steps or the cut have changed otherwise than by going on. */
void local_window_spoil(struct local_window *window);

/* Of step `step` of the window; valid until it changes. */
const struct local_place *local_window_place(const struct local_window *window, uint32_t step);

/* Whether a change fits and adds no more than `worst` to the sum; *delta is then what it adds. */
bool local_window_judge(struct local_window *window, const struct local_change *change, double worst,
                        double *delta);

/* Carry out the change that was judged last; the window is spoiled. */
void local_window_apply(struct local_window *window, const struct local_change *change);

#endif
