/*
 * Classes' weights come from multiplicative steps: busier classes get larger ones. Whole numbers in proportion to them
 * are used; any weights are valid.
 *
 * The weighted assignment (instance_bound.h). On a device of class c a path pays w[c] times the ticks between
 * neighbours, and the bridge's share per byte that the second task copies in. A pair costs the least over the classes
 * that hold both, so a path may change classes, which relaxes the problem. Nearby weights are tried while the bound
 * rises.
 */
#include "planner/solve/bounds/weighted_bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "planner/solve/bounds/assignment.h"
#include "planner/solve/bounds/instance_bound.h"
#include "planner/solve/bounds/head_tail_bound.h"
#include "planner/solve/instance/bridge_bytes.h"

enum { CLASSES_MAX = INSTANCE_CLASSES_MAX, ROUNDS = 400, TRIALS = 24 };
static const double weights_work = 5e7; /* units by classes by rounds */
static const double trials_work = 2e7;  /* units cubed by trials: 0.1 s */
static const int64_t largest_cost = INT64_C(1) << 50;
static const double weight_max = 1 << 24;

/* --- weights --------------------------------------------------------------------------------- */

static void normalize(const struct instance *in, double *weights)
{
    double sum = 0;
    for (uint32_t c = 0; c < in->class_count; c++) sum += weights[c] * in->classes[c].device_count;
    for (uint32_t c = 0; c < in->class_count; c++) weights[c] *= in->device_count / sum;
}

/* Returns the weighted computation, each unit where it is least; busy[c]: computation on class c. */
static double weigh(const struct instance *in, const double *weights, double *busy)
{
    double sum = 0;
    memset(busy, 0, in->class_count * sizeof *busy);
    for (uint32_t u = 0; u < in->unit_count; u++) {
        double least = INFINITY, repeat = in->jobs[in->units[u].job].repeat;
        uint32_t class = 0;
        for (uint32_t c = 0; c < in->class_count; c++) {
            double cost = weights[c] * (double)instance_compute(in, u, c);
            if (!instance_fits(in, u, c) || cost >= least) continue;
            least = cost;
            class = c;
        }
        sum += repeat * least;
        busy[class] += repeat * (double)instance_compute(in, u, class);
    }
    return sum;
}

void weighted_bound_classes(const struct instance *in, double *weights)
{
    double now[CLASSES_MAX], busy[CLASSES_MAX], best = 0;
    double work = (double)in->unit_count * in->class_count;
    uint32_t rounds = work * ROUNDS > weights_work ? (uint32_t)(weights_work / work) + 1 : ROUNDS;
    for (uint32_t c = 0; c < in->class_count; c++) now[c] = weights[c] = 1;
    if (in->class_count == 1) return;
    for (uint32_t r = 0; r < rounds; r++) {
        double sum = weigh(in, now, busy), each = sum / in->device_count;
        if (sum > best) {
            best = sum;
            memcpy(weights, now, in->class_count * sizeof *now);
        }
        for (uint32_t c = 0; c < in->class_count; c++) {
            double over = busy[c] / in->classes[c].device_count / each - 1;
            now[c] *= exp(fmin(over, 1) * 2 / (4 + r));
        }
        normalize(in, now);
    }
}

/* --- bounds ---------------------------------------------------------------------------------- */

struct weighted_search {
    const struct instance *in;
    int64_t least;
    int64_t *cost, *duals; /* (unit_count + 1)^2, 2 (unit_count + 1) */
    uint32_t *supply;
    int64_t weights[CLASSES_MAX], byte; /* of a tick on a device; of a byte over the bridge */
    __int128 sum;                       /* of all devices and the bridge: the worth of a tick of the makespan */
    uint64_t most_bytes;                /* of a copy */
};

/* The bridge has a weight too. It starts as the sum of all devices' weights. */
enum { WEIGHTS_MAX = CLASSES_MAX + 1 };

/* Sets whole numbers in proportion. Returns false if all are 0. */
static bool set_weights(struct weighted_search *s, const double *weights)
{
    const struct instance *in = s->in;
    double scale = (double)largest_cost / (double)max_i64(in->horizon, 1), most = 0;
    for (uint32_t c = 0; c < in->class_count; c++) most = fmax(most, weights[c]);
    if (scale > weight_max) scale = weight_max;
    s->sum = 0;
    s->byte = 0;
    for (uint32_t c = 0; c < in->class_count; c++) {
        s->weights[c] = (int64_t)(weights[c] / most * scale);
        s->sum += (__int128)s->weights[c] * in->classes[c].device_count;
    }
    if (in->bridge_bytes_per_tick > 0) {
        double byte = weights[in->class_count] / most * scale / (double)in->bridge_bytes_per_tick;
        s->byte = (int64_t)fmin(byte, (double)largest_cost / (double)(s->most_bytes + 1));
        s->sum += (__int128)s->byte * (int64_t)in->bridge_bytes_per_tick;
    }
    return s->sum > 0;
}

static int64_t divide_up(__int128 a, __int128 b)
{
    return a <= 0 ? 0 : (int64_t)((a + b - 1) / b);
}

static int64_t by_computation(const struct weighted_search *s)
{
    const struct instance *in = s->in;
    __int128 sum = (__int128)s->byte * (__int128)bridge_bytes_least(in);
    for (uint32_t u = 0; u < in->unit_count; u++) {
        int64_t least = INT64_MAX;
        for (uint32_t c = 0; c < in->class_count; c++)
            if (instance_fits(in, u, c)) least = min_i64(least, s->weights[c] * instance_compute(in, u, c));
        sum += (__int128)least * in->jobs[in->units[u].job].repeat;
    }
    return divide_up(sum, s->sum);
}

/* Returns the weighted bytes that a task of unit k copies in directly after a task of j; j = unit_count: after none. */
static int64_t copy_of(const struct weighted_search *s, uint32_t j, uint32_t k)
{
    const struct instance_unit *units = s->in->units;
    if (j < s->in->unit_count && instance_resident(&units[j], &units[k])) return 0;
    return s->byte * (int64_t)units[k].in_bytes;
}

static void fill_matrix(struct weighted_search *s)
{
    const struct instance *in = s->in;
    uint32_t n = in->unit_count;
    size_t width = n + 1u;
    int64_t lightest = INT64_MAX;
    for (size_t e = 0; e < width * width; e++) s->cost[e] = ASSIGNMENT_FORBIDDEN;
    for (uint32_t c = 0; c < in->class_count; c++) {
        int64_t w = s->weights[c];
        lightest = min_i64(lightest, w);
        for (uint32_t j = 0; j < n; j++) {
            if (!instance_fits(in, j, c)) continue;
            int64_t *row = s->cost + j * width, longer = instance_compute(in, j, c) - instance_compute_min(in, j);
            for (uint32_t k = 0; k < n; k++) {
                int64_t distance = instance_class_distance(in, j, k, c);
                if (distance >= ASSIGNMENT_FORBIDDEN) continue;
                row[k] = min_i64(row[k], w * distance + copy_of(s, j, k));
            }
            row[n] = min_i64(row[n], w * (instance_tail(in, j) + longer));
            int64_t first = w * head_tail_bound_first_start(in, j) + copy_of(s, n, j);
            s->cost[n * width + j] = min_i64(s->cost[n * width + j], first);
        }
    }
    for (uint32_t j = 0; j < n; j++) s->supply[j] = in->jobs[in->units[j].job].repeat;
    s->cost[n * width + n] = lightest * s->least;
    s->supply[n] = in->device_count;
}

static uint64_t written_bytes(const struct instance *in)
{
    uint64_t bytes = 0;
    for (uint32_t u = 0; u < in->unit_count; u++)
        if (in->units[u].writes) bytes += in->jobs[in->units[u].job].repeat * in->units[u].out_bytes;
    return bytes;
}

static enum status by_assignment(struct weighted_search *s, int64_t *out, struct error *err)
{
    uint32_t width = s->in->unit_count + 1u;
    struct error none = {0};
    __int128 sum = (__int128)s->byte * (__int128)written_bytes(s->in);
    fill_matrix(s);
    *out = 0;
    if (assignment_solve(s->cost, width, s->supply, s->supply, s->duals, s->duals + width, &none)) {
        if (none.status != STATUS_INFEASIBLE) *err = none;
        return err->status;
    }
    for (uint32_t j = 0; j < width; j++) sum += (__int128)s->supply[j] * (s->duals[j] + s->duals[width + j]);
    *out = divide_up(sum, s->sum);
    return STATUS_OK;
}

/* Tries weights around the best ones, in ever smaller steps. */
static enum status try_weights(struct weighted_search *s, const double *first, int64_t *best, struct error *err)
{
    const struct instance *in = s->in;
    double n = in->unit_count + 1.0, at[WEIGHTS_MAX] = {0}, factor = in->bridge_bytes_per_tick > 0 ? 2 : 1.3;
    uint32_t trials = n * n * n * TRIALS > trials_work ? (uint32_t)(trials_work / (n * n * n)) : TRIALS;
    uint32_t count = in->class_count + (in->bridge_bytes_per_tick > 0 ? 1u : 0), failed = 0;
    int64_t value;
    memcpy(at, first, count * sizeof *at);
    if (!set_weights(s, at) || by_assignment(s, best, err)) return err->status;
    for (uint32_t which = 0; trials > 0; trials--) {
        double tried[WEIGHTS_MAX];
        memcpy(tried, at, sizeof tried);
        tried[which / 2 % count] *= which % 2 ? factor : 1 / factor;
        if (!set_weights(s, tried) || by_assignment(s, &value, err)) return err->status;
        if (value > *best) { /* another step in this direction */
            *best = value;
            memcpy(at, tried, sizeof tried);
            failed = 0;
            continue;
        }
        which++;
        if (++failed < 2 * count) continue;
        factor = sqrt(factor);
        failed = 0;
    }
    return STATUS_OK;
}

enum status weighted_bound(const struct instance *in, const double *weights, int64_t least, int64_t *out,
                           struct error *err)
{
    struct weighted_search s = {.in = in, .least = least};
    double first[WEIGHTS_MAX] = {0};
    int64_t value = 0;
    *out = 0;
    if (in->class_count == 1 && in->bridge_bytes_per_tick == 0) return STATUS_OK;
    for (uint32_t u = 0; u < in->unit_count; u++)
        if (in->units[u].in_bytes > s.most_bytes) s.most_bytes = in->units[u].in_bytes;
    memcpy(first, weights, in->class_count * sizeof *first);
    if (!set_weights(&s, first)) return STATUS_OK;
    *out = by_computation(&s);
    if (in->unit_count > INSTANCE_BOUND_UNITS_MAX) return STATUS_OK;
    if (in->bridge_bytes_per_tick > 0) first[in->class_count] = in->device_count;
    size_t width = in->unit_count + 1u;
    s.cost = alloc_zeroed(width * width, sizeof *s.cost);
    s.duals = alloc_zeroed(2 * width, sizeof *s.duals);
    s.supply = alloc_zeroed(width, sizeof *s.supply);
    if (!s.cost || !s.duals || !s.supply) error_memory(err, "a weighted bound", width * width * sizeof *s.cost);
    else if (!try_weights(&s, first, &value, err) && value > *out) *out = value;
    free(s.cost);
    free(s.duals);
    free(s.supply);
    return err->status;
}
