/*
 * A path's slack is the time between neighbours' starts beyond their duals, never below 0, plus s - column before its
 * first task and head_tail_bound.h's time after its last. This file bounds the part before the time L (the prefix): the
 * least cost of paths through tasks and time, one per device, with
 *
 *     begin    start of the first task - column; from L on, L - largest column
 *     arc      distance - row - column + waiting, to a task that starts before L
 *     leave    max(distance, L - start) - row - column, the least of all tasks: the next start is L or later
 *     end      a proven makespan - start - row - ends.last, if there is no next task
 *
 * The cost of `end`, with ends.last as the most for the end, is at most the device's idle time.
 *
 * Lagrangian prices bind the paths together. price[k]: at most one path has task k; each visit pays the price, which is
 * given back once. order[k][t] >= 0, as in lagrangian_bound.c, for a task and its successor in the job: with L_k(t) the
 * sum of order[k] from t on, a start of k at s is paid L_k(s) and a start of its successor costs L_k(s - p_k), which is
 * no less. First tasks differ. For any prices the least cost is a bound; subgradients with a memory fit them, with
 * steps towards a little more than the best so far (Polyak). With rounded prices all costs are integers (parts of a
 * tick): no tolerance is needed.
 *
 * Time is cut into at most PARTS_MAX parts. A start is known by its part, so a wait of d parts may be up to two parts
 * minus one tick shorter.
 *
 * The same bound after the last tasks gained nothing: backward passes are long enough.
 */
#include "planner/solve/bounds/prefix_bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "planner/solve/bounds/assignment.h"

enum { TASKS_MAX = 256, PARTS_MAX = 128, SCALE = 256, ROUNDS = 200 };
static const uint64_t scans_max = 50000000; /* of arcs: 0.1 s */
static const double prefix_tasks = 4;      /* L in mean computations: forward passes, mostly */
#define NOTHING (INT64_MAX / 4)

struct arc {
    int64_t cost; /* parts of a tick */
    uint32_t task, parts;
};

struct prefix {
    const struct instance *in;
    int64_t limit, tick;       /* L; of a part */
    int64_t none;              /* of a path without a start before L, in parts of a tick */
    uint32_t span, n, devices; /* parts; tasks; devices */
    uint32_t grace;            /* parts by which a wait may have been shorter */
    uint32_t nearest;          /* parts of the shortest arc; 0: time is cut too coarsely */
    uint32_t unit[TASKS_MAX], job[TASKS_MAX], head[TASKS_MAX], step[TASKS_MAX]; /* parts */
    int64_t compute[TASKS_MAX], begin[TASKS_MAX], row[TASKS_MAX], column[TASKS_MAX];
    struct arc *arcs;           /* (n, n), by cost; each list ends with a task of n */
    int64_t *cost, *from;       /* (n, span): cost of a start in this part and all later ones; cost in it or later */
    int64_t *leave;             /* (n, span): of leaving or ending from there */
    int64_t *least;             /* (span): of any task, from a part on */
    double *price, *order;      /* (n), (n, span) */
    double *price_best, *order_best, *price_step, *order_step, *event;
    uint32_t first[INSTANCE_DEVICES_MAX], first_count; /* of paths that have one */
    uint64_t scans;
};

/* --- the problem ----------------------------------------------------------------------------- */

/* Lists tasks that can start before the limit. Returns false if there are too many. */
static bool list_tasks(struct prefix *o, const struct instance_bounds *duals)
{
    const struct instance *in = o->in;
    for (uint32_t i = 0; i < in->job_count; i++) {
        const struct instance_job *job = &in->jobs[i];
        int64_t head = in->units[job->first_unit].in;
        for (uint32_t t = 0; t < instance_length(job) && head < o->limit; t++) {
            uint32_t unit = instance_unit_at(job, t), k = o->n++;
            if (k == TASKS_MAX) return false;
            o->unit[k] = unit;
            o->job[k] = i;
            o->head[k] = (uint32_t)(head / o->tick);
            o->begin[k] = max_i64(head, in->units[unit].in);
            o->compute[k] = instance_compute_min(in, unit);
            o->step[k] = (uint32_t)(min_i64(o->compute[k], o->limit) / o->tick);
            o->row[k] = duals->row[unit];
            o->column[k] = duals->column[unit];
            head += o->compute[k];
        }
    }
    return true;
}

static int compare_arcs(const void *a, const void *b)
{
    const struct arc *x = a, *y = b;
    if (x->cost != y->cost) return x->cost < y->cost ? -1 : 1;
    return (x->task > y->task) - (x->task < y->task);
}

static void list_arcs(struct prefix *o)
{
    o->nearest = o->span;
    for (uint32_t k = 0; k < o->n; k++) {
        struct arc *arcs = o->arcs + (size_t)k * o->n;
        uint32_t count = 0;
        int64_t along = 0; /* along the chain, from k */
        for (uint32_t m = 0; m < o->n; m++) {
            bool same = o->job[m] == o->job[k];
            if (same && m <= k) continue;
            if (same) along += o->compute[m - 1];
            int64_t distance = instance_distance(o->in, o->unit[k], o->unit[m]);
            if (distance >= ASSIGNMENT_FORBIDDEN) continue;
            if (same) distance = max_i64(distance, along);
            if (distance / o->tick >= o->span) continue;
            uint32_t parts = (uint32_t)(distance / o->tick);
            arcs[count++] = (struct arc){(distance - o->row[k] - o->column[m]) * SCALE, m, parts};
            if (parts < o->nearest) o->nearest = parts;
        }
        qsort(arcs, count, sizeof *arcs, compare_arcs);
        arcs[count].task = o->n; /* k itself is not listed, so there is room */
    }
}

/* Sets the cost of leaving or ending, by the latest start of each part. */
static void set_leaves(struct prefix *o, const struct instance_bounds *duals, int64_t proven)
{
    for (uint32_t k = 0; k < o->n; k++) {
        int64_t *leave = o->leave + (size_t)k * o->span, start = o->tick - 1;
        for (uint32_t t = 0; t < o->span; t++, start += o->tick) leave[t] = proven - start - o->row[k];
        for (uint32_t u = 0; u < o->in->unit_count; u++) {
            int64_t distance = instance_distance(o->in, o->unit[k], u), paid = o->row[k] + duals->column[u];
            if (distance >= ASSIGNMENT_FORBIDDEN) continue;
            start = o->tick - 1;
            for (uint32_t t = 0; t < o->span; t++, start += o->tick)
                leave[t] = min_i64(leave[t], max_i64(distance, o->limit - start) - paid);
        }
        for (uint32_t t = 0; t < o->span; t++) leave[t] = max_i64(0, leave[t]) * SCALE;
    }
}

/* --- least cost ------------------------------------------------------------------------------ */

static int64_t rounded(double value)
{
    return (int64_t)floor(fmin(fmax(value, -0x1p40), 0x1p40) * SCALE);
}

/* Sets the cost of a visit of each task in each part by the prices. */
static void set_prices(struct prefix *o)
{
    uint32_t w = o->span;
    for (uint32_t k = 0; k < o->n; k++)
        for (uint32_t t = 0; t < w; t++) o->cost[k * w + t] = rounded(o->price[k]);
    for (uint32_t k = 0; k + 1 < o->n; k++) {
        if (o->job[k] != o->job[k + 1]) continue;
        double sum = 0;
        for (uint32_t t = w; t-- > 0;) {
            sum += o->order[k * w + t];
            int64_t led = rounded(sum);
            o->cost[k * w + t] -= led;
            if (t + o->step[k] < w) o->cost[(k + 1) * w + t + o->step[k]] += led;
        }
    }
}

/* Returns the cost of arriving at a task by this part and going on; the task waits for its head. NOTHING after the
 * limit. */
static inline int64_t arrive(const struct prefix *o, uint32_t task, uint32_t part)
{
    int64_t wait = 0;
    if (part < o->head[task]) {
        uint32_t parts = o->head[task] - part;
        wait = parts > o->grace ? (parts - o->grace) * o->tick * SCALE : 0;
        part = o->head[task];
    }
    return part < o->span ? wait + o->from[task * o->span + part] : NOTHING;
}

/* Returns the least cost after a start of k in this part. *next: the arc, NULL for leaving. */
static int64_t go_on(struct prefix *o, uint32_t k, uint32_t part, const struct arc **next)
{
    int64_t best = o->leave[k * o->span + part];
    int64_t later = part + o->nearest < o->span ? o->least[part + o->nearest] : NOTHING;
    *next = NULL;
    for (const struct arc *a = o->arcs + (size_t)k * o->n; a->task < o->n && a->cost + later < best; a++) {
        int64_t value = a->cost + arrive(o, a->task, part + a->parts);
        o->scans++;
        if (value >= best) continue;
        best = value;
        *next = a;
    }
    return best;
}

/* Returns the least cost of a start in this part, up to `grace` later without a wait, or later with one. */
static int64_t wait_least(const struct prefix *o, uint32_t k, uint32_t part)
{
    const int64_t *cost = o->cost + k * o->span, *from = o->from + k * o->span;
    int64_t best = cost[part];
    for (uint32_t t = part + 1; t < o->span && t <= part + o->grace; t++) best = min_i64(best, cost[t]);
    /* from[part + 1] counts waits from one part later on */
    return part + 1 < o->span ? min_i64(best, from[part + 1] + o->tick * SCALE) : best;
}

static void fill_costs(struct prefix *o)
{
    const struct arc *next;
    for (uint32_t t = o->span; t-- > 0;) {
        o->least[t] = t + 1 < o->span ? o->least[t + 1] : NOTHING;
        for (uint32_t k = 0; k < o->n; k++) {
            if (t < o->head[k]) continue;
            o->cost[k * o->span + t] += go_on(o, k, t, &next);
            o->from[k * o->span + t] = wait_least(o, k, t);
            o->least[t] = min_i64(o->least[t], o->from[k * o->span + t]);
        }
    }
}

/* Returns the least cost summed over all devices, which have different first tasks, minus the prices given back. */
static int64_t least_cost(struct prefix *o)
{
    int64_t sum = 0;
    bool taken[TASKS_MAX] = {false};
    set_prices(o);
    fill_costs(o);
    o->first_count = 0;
    for (uint32_t g = 0; g < o->devices; g++) {
        int64_t best = o->none;
        uint32_t first = o->n;
        for (uint32_t k = 0; k < o->n; k++) {
            if (taken[k] || o->begin[k] >= o->limit) continue;
            int64_t value = (o->begin[k] - o->column[k]) * SCALE + arrive(o, k, (uint32_t)(o->begin[k] / o->tick));
            if (value >= best) continue;
            best = value;
            first = k;
        }
        sum += best;
        if (first == o->n) continue;
        taken[first] = true;
        o->first[o->first_count++] = first;
    }
    for (uint32_t k = 0; k < o->n; k++) sum -= rounded(o->price[k]);
    return sum;
}

/* --- prices ---------------------------------------------------------------------------------- */

/* weight of a new subgradient against the earlier ones; step of an order price relative to a price */
static const double fresh = 0.4, order_share = 0.03;
/* Steps aim at the best so far and this share of a mean computation beyond: little at first, since paths are alike
 * without prices; more after success, less after failure. */
static const double hope = 0.03, hope_least = 0.003, hope_most = 1, rise = 1.2, fall = 0.7;
enum { PATIENCE = 6 };

static void visit(struct prefix *o, uint32_t k, uint32_t part)
{
    o->price_step[k] += fresh;
    if (k + 1 < o->n && o->job[k + 1] == o->job[k]) o->event[k * o->span + part] -= fresh;
    if (k > 0 && o->job[k - 1] == o->job[k] && part >= o->step[k - 1])
        o->event[(k - 1) * o->span + part - o->step[k - 1]] += fresh;
}

static void walk(struct prefix *o, uint32_t k, uint32_t part)
{
    const struct arc *next;
    for (;;) {
        const int64_t *from = o->from + k * o->span, *cost = o->cost + k * o->span;
        if (part < o->head[k]) part = o->head[k];
        if (part >= o->span) return;
        while (part + 1 < o->span && from[part] == from[part + 1] + o->tick * SCALE && from[part] < cost[part]) part++;
        for (uint32_t t = part; t < o->span && t <= part + o->grace; t++)
            if (cost[t] == from[part]) {
                part = t;
                break;
            }
        visit(o, k, part);
        go_on(o, k, part, &next);
        if (!next) return;
        k = next->task;
        part += next->parts;
    }
}

/* Computes the subgradient of all paths into the steps. Returns its square. */
static double set_steps(struct prefix *o)
{
    double norm = 0;
    for (uint32_t k = 0; k < o->n; k++) o->price_step[k] = (1 - fresh) * o->price_step[k] - fresh;
    memset(o->event, 0, (size_t)o->n * o->span * sizeof *o->event);
    for (uint32_t p = 0; p < o->first_count; p++)
        walk(o, o->first[p], (uint32_t)(o->begin[o->first[p]] / o->tick));
    for (uint32_t k = 0; k < o->n; k++) {
        double sum = 0;
        if (o->price[k] > 0 || o->price_step[k] > 0) norm += o->price_step[k] * o->price_step[k];
        for (uint32_t e = k * o->span; e < (k + 1) * o->span; e++) {
            sum += o->event[e];
            o->order_step[e] = (1 - fresh) * o->order_step[e] + sum;
            if (o->order[e] > 0 || o->order_step[e] > 0) norm += order_share * o->order_step[e] * o->order_step[e];
        }
    }
    return norm;
}

static void move_prices(struct prefix *o, double length)
{
    for (uint32_t k = 0; k < o->n; k++) o->price[k] = fmax(0, o->price[k] + length * o->price_step[k]);
    for (uint32_t e = 0; e < o->n * o->span; e++)
        o->order[e] = fmax(0, o->order[e] + length * order_share * o->order_step[e]);
}

static void copy_prices(const struct prefix *o, double *price, double *order, const double *price_from,
                        const double *order_from)
{
    memcpy(price, price_from, o->n * sizeof *price);
    memcpy(order, order_from, (size_t)o->n * o->span * sizeof *order);
}

/* Fits prices in some rounds. Returns the largest least cost. */
static int64_t fit(struct prefix *o, double mean)
{
    int64_t best = INT64_MIN;
    double hoped = hope * mean;
    uint32_t patience = 0;
    for (uint32_t r = 0; r < ROUNDS && o->scans < scans_max && hoped > hope_least * mean; r++) {
        int64_t value = least_cost(o);
        if (value > best) {
            if (best == INT64_MIN || (double)(value - best) > 0.02 * hoped * SCALE) patience = 0;
            best = value;
            hoped = fmin(rise * hoped, hope_most * mean);
            copy_prices(o, o->price_best, o->order_best, o->price, o->order);
        } else if (++patience >= PATIENCE) {
            patience = 0;
            hoped *= fall;
            copy_prices(o, o->price, o->order, o->price_best, o->order_best);
            memset(o->price_step, 0, o->n * sizeof *o->price_step);
            memset(o->order_step, 0, (size_t)o->n * o->span * sizeof *o->order_step);
            continue;
        }
        double norm = set_steps(o);
        move_prices(o, (hoped + (double)(best - value) / SCALE) / (norm + 1e-9));
    }
    return best;
}

/* --- public ---------------------------------------------------------------------------------- */

static double mean_compute(const struct instance *in)
{
    double sum = 0;
    for (uint32_t u = 0; u < in->unit_count; u++)
        sum += (double)instance_compute_min(in, u) * in->jobs[in->units[u].job].repeat;
    return sum / in->task_count;
}

static enum status make_room(struct prefix *o, struct error *err)
{
    size_t n = o->n, grid = n * o->span;
    o->arcs = alloc_zeroed(n * n, sizeof *o->arcs);
    o->cost = alloc_zeroed(3 * grid + o->span, sizeof *o->cost);
    o->price = alloc_zeroed(3 * n + 4 * grid, sizeof *o->price);
    if (!o->arcs || !o->cost || !o->price)
        return error_memory(err, "the prefix bound", n * n * sizeof *o->arcs + 7 * grid * sizeof *o->cost);
    o->from = o->cost + grid;
    o->leave = o->from + grid;
    o->least = o->leave + grid;
    o->price_best = o->price + n;
    o->price_step = o->price + 2 * n;
    o->order = o->price + 3 * n;
    o->order_best = o->order + grid;
    o->order_step = o->order + 2 * grid;
    o->event = o->order + 3 * grid;
    return STATUS_OK;
}

enum status prefix_bound(const struct instance *in, const struct instance_bounds *duals,
                         const struct head_tail_bound *ends, int64_t proven, int64_t *out, struct error *err)
{
    struct prefix *o = alloc_zeroed(1, sizeof *o);
    if (!o) return error_memory(err, "the prefix bound", sizeof *o);
    double mean = mean_compute(in);
    *out = (int64_t)ends->both;
    o->in = in;
    o->devices = in->device_count;
    int64_t column_max = INT64_MIN;
    for (uint32_t u = 0; u < in->unit_count; u++) column_max = max_i64(column_max, duals->column[u]);
    o->limit = (int64_t)(prefix_tasks * mean);
    o->none = min_i64(o->limit - column_max, proven - ends->last) * SCALE;
    if (!ends->full || o->limit <= 0) goto out;
    o->tick = (o->limit - 1) / PARTS_MAX + 1;
    o->grace = o->tick > 1 ? 2 : 0;
    o->span = (uint32_t)((o->limit - 1) / o->tick) + 1;
    if (!list_tasks(o, duals) || o->n == 0 || make_room(o, err)) goto out;
    list_arcs(o);
    set_leaves(o, duals, proven - ends->last);
    if (o->nearest == 0) goto out;
    int64_t opening = fit(o, mean), whole = opening / SCALE - (opening % SCALE != 0 && opening < 0);
    *out = max_i64(*out, whole + (int64_t)ends->ends);
out:
    free(o->arcs);
    free(o->cost);
    free(o->price);
    free(o);
    return err->status;
}
