/*
 * A walk over the requests with two states, inside and outside a run, finds runs. Inside, a request counts as one minus
 * the ratio of the time that its window adds to earlier ones, times the groups, to its work. The best path is the
 * minimum cut of the flow from requests into time. placement_window_capacity() then computes the exact capacity, so
 * that approximations cannot invalidate the bound.
 */
#include "sim/placement/window_cut.h"

#include <math.h>
#include <stdlib.h>

#include "base/order.h"

/* Rounding error of a division, as a number of requests. */
#define COUNT_SLACK 1e-6
/* Rounding error of times, relative to the latest. */
#define TIME_SLACK 1e-12

struct placement_window placement_window_of(const struct serving *in, const struct stage_cut *cut, uint32_t tensor,
                                            const struct serving_model *model, uint32_t stage, double latest_s)
{
    const struct serving_kind *kind = &in->kinds[model->kind];
    struct placement_window window = {0};
    if (!cut) return window;
    double allowed_s = model->objective_s * (1 + 2 * SERVING_OBJECTIVE_SLACK) - in->overhead_s + latest_s * TIME_SLACK;
    for (uint32_t s = 0; s < stage; s++) window.lead_s += cut->stage_s[s];
    window.possible = cut->latency_s <= allowed_s;
    window.length_s = allowed_s - (cut->latency_s - cut->stage_s[stage]);
    window.work_s = cut->stage_s[stage] *
                    serving_least_growth(kind, serving_degree_of(kind, tensor), allowed_s / cut->latency_s);
    return window;
}

/* --- capacity -------------------------------------------------------------------------------- */

/* Returns how many of these works fit in sequence into a time span. */
static uint32_t fitting(double *works_s, uint32_t count, double span_s)
{
    bool alike = true;
    double sum_s = 0;
    for (uint32_t i = 1; i < count; i++) alike = alike && works_s[i] == works_s[0];
    if (alike) { /* for works of zero duration the ratio is infinite or NaN */
        double ratio = count > 0 && works_s[0] > 0 ? span_s / works_s[0] : HUGE_VAL;
        return ratio + COUNT_SLACK < count ? (uint32_t)(ratio + COUNT_SLACK) : count;
    }
    qsort(works_s, count, sizeof *works_s, order_double);
    for (uint32_t i = 0; i < count; i++) {
        sum_s += works_s[i];
        if (sum_s > span_s + COUNT_SLACK * works_s[i]) return i;
    }
    return count;
}

/* Counts each side separately where the windows of neighbours do not touch. */
static uint32_t run_capacity(const struct traffic *traffic, const struct placement_window *windows,
                             const uint32_t *requests, uint32_t count, double *works_s)
{
    double begin_s = 0, end_s = 0;
    uint32_t here = 0, sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct traffic_request *request = &traffic->requests[requests[i]];
        const struct placement_window *window = &windows[request->model];
        if (!window->possible) continue;
        double from_s = request->at_s + window->lead_s, to_s = from_s + window->length_s;
        if (here > 0 && from_s > end_s) {
            sum += fitting(works_s, here, end_s - begin_s);
            here = 0;
        }
        begin_s = here > 0 ? fmin(begin_s, from_s) : from_s;
        end_s = here > 0 ? fmax(end_s, to_s) : to_s;
        works_s[here++] = window->work_s;
    }
    return sum + fitting(works_s, here, end_s - begin_s);
}

uint32_t placement_window_capacity(const struct traffic *traffic, const struct placement_window *windows,
                                   const struct placement_window_runs *runs, double *scratch_s)
{
    uint32_t sum = 0, from = 0;
    for (uint32_t i = 0; i < runs->run_count; from = runs->ends[i++])
        sum += run_capacity(traffic, windows, &runs->requests[from], runs->ends[i] - from, scratch_s);
    return sum;
}

/* --- runs ------------------------------------------------------------------------------------ */

/* Returns the capacity of the request's window after the window of `before` (NULL: of all of it). */
static double fitting_behind(const struct placement_window_shapes *shapes, const struct traffic_request *before,
                             const struct traffic_request *request, double rounding)
{
    double sum = 0;
    for (uint32_t s = 0; s < shapes->shape_count; s++) {
        const struct placement_window *row = &shapes->windows[(size_t)s * shapes->model_count];
        const struct placement_window *window = &row[request->model];
        if (!window->possible || shapes->groups[s] <= 0) continue;
        double part_s = window->length_s, round = rounding;
        if (before && row[before->model].possible) {
            const struct placement_window *last = &row[before->model];
            double gap_s = request->at_s + window->lead_s - before->at_s - last->lead_s;
            /* a window without an end has no part after it */
            part_s = last->length_s < HUGE_VAL ? gap_s + window->length_s - last->length_s : 0;
            part_s = fmin(fmax(part_s, 0), window->length_s);
            round = 0;
        }
        double count = window->work_s > 0 ? part_s / window->work_s : HUGE_VAL;
        sum += shapes->groups[s] * fmax(count - round, 0);
    }
    return sum;
}

/* Reverses the runs: `found` lists requests from the back, and the runs' ends count from there. */
static void turn_round(struct placement_window_runs *found)
{
    uint32_t requests = found->request_count, runs = found->run_count;
    for (uint32_t i = 0; i < requests / 2; i++) {
        uint32_t other = found->requests[requests - 1 - i];
        found->requests[requests - 1 - i] = found->requests[i];
        found->requests[i] = other;
    }
    /* the end of a run is where the previous one, seen from the back, has ended */
    for (uint32_t i = runs; i-- > 0;) found->ends[i] = requests - (i > 0 ? found->ends[i - 1] : 0);
    for (uint32_t i = 0; i < runs / 2; i++) {
        uint32_t other = found->ends[runs - 1 - i];
        found->ends[runs - 1 - i] = found->ends[i];
        found->ends[i] = other;
    }
}

void placement_window_runs_find(const struct traffic *traffic, const struct placement_window_shapes *shapes,
                                double rounding, const uint32_t *requests, uint32_t count, bool *from,
                                struct placement_window_runs *out)
{
    double in = -HUGE_VAL, outside = 0; /* best values so far inside and outside of a run */
    for (uint32_t i = 0; i < count; i++) {
        const struct traffic_request *request = &traffic->requests[requests[i]];
        const struct traffic_request *before = i > 0 ? &traffic->requests[requests[i - 1]] : NULL;
        double best = fmax(in, outside);
        double begin = best + 1 - fitting_behind(shapes, NULL, request, rounding);
        double go_on = before ? in + 1 - fitting_behind(shapes, before, request, rounding) : -HUGE_VAL;
        from[2 * i] = in > outside;           /* the best predecessor is inside a run */
        from[2 * i + 1] = i > 0 && go_on > begin; /* the run of this request continues */
        outside = best;
        in = fmax(begin, go_on);
    }
    *out = (struct placement_window_runs){out->requests, out->ends, 0, 0};
    bool inside = in > outside;
    for (uint32_t i = count; i-- > 0;) {
        if (inside) out->requests[out->request_count++] = requests[i];
        if (inside && from[2 * i + 1]) continue;
        if (inside) out->ends[out->run_count++] = out->request_count;
        inside = from[2 * i];
    }
    turn_round(out);
}
