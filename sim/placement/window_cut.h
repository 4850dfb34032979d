/*
 * Requests that are more than the windows for them hold: the inequalities behind placement_bound.h.
 *
 * A request that attains its objective on a group keeps one stage of the group busy for the stage's seconds, all
 * of them inside a *window*: not before the stages in front could be through with it, and early enough for those
 * behind. A stage works on one batch at a time. So of a run of requests whose windows cover an interval, a group
 * answers at most as many in time as fit into it one after the other, the shortest first. That is a whole number;
 * for any set of runs
 *
 *     attained <= requests outside of the runs + sum over groups, sum over runs of what fits
 *
 * whatever the placement, the order and the rule by which requests find their group are.
 */
#ifndef SPILLWAY_SERVING_WINDOW_CUT_H
#define SPILLWAY_SERVING_WINDOW_CUT_H

#include "sim/serving/placement.h"
#include "sim/serving/traffic.h"

/* Of a model's requests on one stage of a shape. */
struct window {
    bool possible;   /* else none is in time on such a group */
    double lead_s;   /* from its arrival until it can be there */
    double length_s; /* from then until it must have left; may be HUGE_VAL */
    double work_s;   /* in between, its share of the best batch */
};

/* Of a model on a shape's stage number `stage`. `latest_s` is no less than any time in a run: what rounding
 * there may be is added to the window. cut NULL: not possible. */
struct window window_of(const struct serving *in, const struct stage_cut *cut, uint32_t tensor,
                        const struct serving_model *model, uint32_t stage, double latest_s);

/* Requests, by number, in the order of their arrival, divided into runs: [ends[i - 1], ends[i]) is run i. */
struct window_runs {
    uint32_t *requests, *ends;
    uint32_t request_count, run_count;
};

/* At most so many of the runs' requests are in time on one group. `windows`: by model. `scratch_s`: one for each
 * request. */
uint32_t window_capacity(const struct traffic *traffic, const struct window *windows, const struct window_runs *runs,
                         double *scratch_s);

/* A row of windows for each shape, and how many groups of it there are. */
struct window_shapes {
    const struct window *windows; /* (shape_count, model_count) */
    const double *groups;         /* (shape_count) */
    uint32_t shape_count, model_count;
};

/*
 * Runs of `requests` (by number, in the order of their arrival) that exceed by the most what fits into their windows
 * on these groups, if that need not be whole but for `rounding` requests a run: exact where all windows are alike,
 * good elsewhere. In *out, which has room for all. `from`: scratch, two for each request. O(requests x shapes).
 */
void window_runs_find(const struct traffic *traffic, const struct window_shapes *shapes, double rounding,
                      const uint32_t *requests, uint32_t count, bool *from, struct window_runs *out);

#endif
