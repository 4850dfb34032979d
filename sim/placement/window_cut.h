/*
 * The inequalities of placement_bound.h about requests that exceed their windows' capacity.
 *
 * A request that attains its objective keeps each stage of its group busy for the stage's seconds, all inside a
 * *window*: after earlier stages could have ended, and early enough for later ones. A stage works on one batch at a
 * time. So of a run of requests whose windows cover an interval, a group answers in time at most the number that fit
 * into it, the shortest first. That number is an integer; for any set of runs
 *
 *     attained <= requests outside of the runs + sum over groups, sum over runs of the number that fits
 *
 * for any placement, any order and any rule that assigns requests to groups.
 */
#ifndef SPILLWAY_SIM_PLACEMENT_WINDOW_CUT_H
#define SPILLWAY_SIM_PLACEMENT_WINDOW_CUT_H

#include "sim/serving/placement.h"
#include "sim/serving/traffic.h"

/* The window of a model's requests on one stage of a shape. */
struct placement_window {
    bool possible;   /* false: no request is in time on such a group */
    double lead_s;   /* from arrival to the earliest begin */
    double length_s; /* from the earliest begin to the latest end; may be HUGE_VAL */
    double work_s;   /* work inside the window: the request's share of the best batch */
};

/* Returns a model's window on stage `stage` of a shape. `latest_s`: upper bound of all times in a run, which gives the
 * rounding added to the window. cut NULL: not possible. */
struct placement_window placement_window_of(const struct serving *in, const struct stage_cut *cut, uint32_t tensor,
                                            const struct serving_model *model, uint32_t stage, double latest_s);

/* Requests in the order of arrival, divided into runs: [ends[i - 1], ends[i]) is run i. */
struct placement_window_runs {
    uint32_t *requests, *ends;
    uint32_t request_count, run_count;
};

/* Returns the most of the runs' requests that are in time on one group. `windows`: by model. `scratch_s`: one entry per
 * request. */
uint32_t placement_window_capacity(const struct traffic *traffic, const struct placement_window *windows,
                                   const struct placement_window_runs *runs, double *scratch_s);

/* For each shape: a row of windows and the number of groups. */
struct placement_window_shapes {
    const struct placement_window *windows; /* (shape_count, model_count) */
    const double *groups;         /* (shape_count) */
    uint32_t shape_count, model_count;
};

/*
 * Finds runs of `requests` (by number, in the order of arrival) that exceed their windows' capacity on these groups by
 * the most, for fractional capacities plus `rounding` requests per run. Exact if all windows are equal, and good
 * otherwise. *out has room for all requests. `from`: scratch, two entries per request. O(requests x shapes).
 */
void placement_window_runs_find(const struct traffic *traffic, const struct placement_window_shapes *shapes,
                                double rounding, const uint32_t *requests, uint32_t count, bool *from,
                                struct placement_window_runs *out);

#endif
