/*
 * One function of a value x of at most X is
 *
 *     identity    x                                         of X
 *     threshold   0 below e, X above X - e, x between       of X        e <= X / 2
 *     rounding    floor((p + 1) x / X) X, p x where whole   of p X
 *
 * The first counts area; the second gangs that cannot stand next to each other; the third gangs of which only few fit
 * next to each other. Devices use each that differs on 1 .. X; time uses thresholds at the run times of the instance.
 *
 * Rows refute T by weights: with w >= 0 every schedule has sum_r w_r load_r <= sum_r w_r room_r, and the left side is
 * at least the sum of the jobs' cheapest modes. Weights grow on overloaded rows, until the sum refutes T or time is up.
 * Bisection finds the makespan: a refuted value stays refuted below.
 */
#include "planner/saturn/spase/spase_bound.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/order.h"
#include "base/process/clock.h"
#include "base/try.h"

enum {
    TIME_THRESHOLDS = 24,   /* an even selection of all possible ones */
    ROUNDINGS_MAX = 7,
    ENTRIES_MAX = 12000000, /* modes by rows; beyond, rows are identities */
    ROUNDS = 600            /* of weights for one makespan */
};

/* --- scaling --------------------------------------------------------------------------------- */

static int64_t threshold(int64_t x, int64_t all, int64_t e)
{
    return x < e ? 0 : x > all - e ? all : x;
}

static int64_t rounded(int64_t x, int64_t all, int64_t p)
{
    return (p + 1) * x % all == 0 ? p * x : (p + 1) * x / all * all;
}

/* f: 0 identity; 1 .. ROUNDINGS_MAX rounding; above: threshold f - ROUNDINGS_MAX. */
static int64_t scale_devices(uint32_t f, int64_t k, int64_t all)
{
    if (f == 0) return k;
    return f <= ROUNDINGS_MAX ? rounded(k, all, f) : threshold(k, all, f - ROUNDINGS_MAX);
}

static int64_t scaled_all(uint32_t f, int64_t all)
{
    return f >= 1 && f <= ROUNDINGS_MAX ? all * f : all;
}

static int64_t scale_ticks(const struct spase_row *row, int64_t t, int64_t limit)
{
    if (row->g == 0) return t;
    return row->g <= ROUNDINGS_MAX ? rounded(t, limit, row->g) : threshold(t, limit, row->g_at);
}

/* Nodes of a class may differ: a gang counts with its smallest share of a node, in units of the widest node. Then only
 * identities are used, as for gangs that span. */
__int128 spase_row_weight(const struct spase *in, const struct spase_row *row, int64_t limit,
                          const struct spase_mode *mode)
{
    if (mode->class != row->class || (mode->spans && row->f != 0)) return 0;
    int64_t devices = scale_devices(row->f, mode->devices, in->class_widest[row->class]);
    return (__int128)devices * scale_ticks(row, mode->ticks, limit);
}

__int128 spase_row_room(const struct spase *in, const struct spase_row *row, int64_t limit)
{
    int64_t widest = in->class_widest[row->class], nodes = in->class_devices[row->class] / widest;
    int64_t devices = row->f == 0 ? in->class_devices[row->class] : nodes * scaled_all(row->f, widest);
    return (__int128)devices * (row->g >= 1 && row->g <= ROUNDINGS_MAX ? limit * row->g : limit);
}

/* --- rows ------------------------------------------------------------------------------------ */

static bool same_function(uint32_t f, uint32_t other, int64_t all)
{
    for (int64_t k = 1; k <= all; k++)
        if (scale_devices(f, k, all) * scaled_all(other, all) != scale_devices(other, k, all) * scaled_all(f, all))
            return false;
    return true;
}

/* Lists functions of devices that differ on a node of this class: at most 64. */
static uint32_t device_functions(const struct spase *in, uint32_t class, uint32_t functions[64])
{
    int64_t all = in->class_widest[class];
    uint32_t count = 0, thresholds = all / 2 < 24 ? (uint32_t)(all / 2) : 24;
    bool equal = true;
    for (uint32_t n = 0; n < in->node_count; n++)
        if (in->nodes[n].class == class) equal &= in->nodes[n].device_count == all;
    functions[count++] = 0;
    for (uint32_t f = 1; equal && f <= ROUNDINGS_MAX + thresholds; f++) {
        bool known = false;
        for (uint32_t o = 0; o < count && !known; o++) known = same_function(f, functions[o], all);
        if (!known) functions[count++] = f;
    }
    return count;
}

/* Lists run times up to half the limit, and the limit minus longer ones. */
static enum status time_thresholds(const struct spase *in, int64_t limit, int64_t thresholds[TIME_THRESHOLDS],
                                   uint32_t *count, struct error *err)
{
    int64_t *all = alloc_zeroed(in->mode_count, sizeof *all);
    uint32_t found = 0, distinct = 0;
    if (!all) return error_memory(err, "bounds", in->mode_count * sizeof *all);
    for (uint32_t m = 0; m < in->mode_count; m++) {
        int64_t t = in->modes[m].ticks, e = 2 * t <= limit ? t : limit - t + 1;
        if (t <= limit && 2 * e <= limit) all[found++] = e;
    }
    qsort(all, found, sizeof *all, order_i64);
    for (uint32_t i = 0; i < found; i++)
        if (distinct == 0 || all[distinct - 1] != all[i]) all[distinct++] = all[i];
    *count = distinct < TIME_THRESHOLDS ? distinct : TIME_THRESHOLDS;
    for (uint32_t i = 0; i < *count; i++) thresholds[i] = all[(size_t)(i + 1) * distinct / *count - 1];
    free(all);
    return STATUS_OK;
}

enum status spase_rows_make(const struct spase *in, int64_t limit, struct spase_row **rows, uint32_t *count,
                            struct error *err)
{
    int64_t thresholds[TIME_THRESHOLDS];
    uint32_t threshold_count = 0, functions[64];
    struct spase_row *made = alloc_zeroed(SPASE_ROWS_MAX, sizeof *made);
    if (!made) return error_memory(err, "bounds", SPASE_ROWS_MAX * sizeof *made);
    if (time_thresholds(in, limit, thresholds, &threshold_count, err)) {
        free(made);
        return err->status;
    }
    *count = 0;
    for (uint32_t c = 0; c < in->class_count; c++) {
        uint32_t function_count = device_functions(in, c, functions);
        if (function_count * (1 + 4 + threshold_count) * in->class_count > SPASE_ROWS_MAX) function_count = 1;
        for (uint32_t f = 0; f < function_count; f++) {
            for (uint32_t g = 0; g <= 4; g++)
                made[(*count)++] = (struct spase_row){.class = c, .f = functions[f], .g = g};
            for (uint32_t e = 0; e < threshold_count; e++)
                made[(*count)++] = (struct spase_row){c, functions[f], ROUNDINGS_MAX + 1, thresholds[e]};
        }
    }
    if ((uint64_t)*count * in->mode_count > ENTRIES_MAX) { /* one row per class is left */
        uint32_t kept = 0;
        for (uint32_t i = 0; i < *count; i++)
            if (made[i].f == 0 && made[i].g == 0) made[kept++] = made[i];
        *count = kept;
    }
    *rows = made;
    return STATUS_OK;
}

/* --- refuting a makespan --------------------------------------------------------------------- */

struct refuter {
    const struct spase *in;
    int64_t limit;
    struct spase_row *rows;
    uint32_t row_count;
    double *share;    /* (mode_count, row_count): weight by room */
    double *weight;   /* (row_count), adding up to 1 */
    double *load;     /* (row_count) of the cheapest modes */
    double *best;     /* (row_count): the weights that came nearest */
    double best_sum;
    int64_t *factor;  /* (row_count) scratch */
};

/* Returns the weighted sum, in four parts, so that additions do not wait for each other. */
static double weigh(const double *share, const double *weight, uint32_t count)
{
    double a = 0, b = 0, c = 0, d = 0;
    uint32_t i = 0;
    for (; i + 4 <= count; i += 4) {
        a += share[i] * weight[i];
        b += share[i + 1] * weight[i + 1];
        c += share[i + 2] * weight[i + 2];
        d += share[i + 3] * weight[i + 3];
    }
    for (; i < count; i++) a += share[i] * weight[i];
    return (a + b) + (c + d);
}

/* Finds the cheapest modes under r->weight and their loads, whose weighted sum it returns. */
static double cheapest(struct refuter *r)
{
    const struct spase *in = r->in;
    double sum = 0;
    memset(r->load, 0, r->row_count * sizeof *r->load);
    for (uint32_t j = 0; j < in->job_count; j++) {
        const struct spase_job *job = &in->jobs[j];
        const double *best_share = NULL;
        double best = HUGE_VAL;
        for (uint32_t m = job->first_mode; m < job->first_mode + job->mode_count; m++) {
            const double *share = r->share + (size_t)m * r->row_count;
            if (in->modes[m].ticks > r->limit) continue;
            double cost = weigh(share, r->weight, r->row_count);
            if (cost >= best) continue;
            best = cost;
            best_share = share;
        }
        if (!best_share) return HUGE_VAL;
        sum += best;
        for (uint32_t i = 0; i < r->row_count; i++) r->load[i] += best_share[i];
    }
    return sum;
}

/* Makes integer weights: the factors of the rows' own weights and rooms. */
static void make_factors(const struct refuter *r, const double *weight, int64_t *factor)
{
    double most = 0;
    for (uint32_t i = 0; i < r->row_count; i++)
        most = fmax(most, weight[i] / (double)spase_row_room(r->in, &r->rows[i], r->limit));
    for (uint32_t i = 0; i < r->row_count; i++)
        factor[i] = (int64_t)(weight[i] / (double)spase_row_room(r->in, &r->rows[i], r->limit) / most * 0x1p30);
}

static __int128 room_of(const struct refuter *r, const int64_t *factor)
{
    __int128 room = 0;
    for (uint32_t i = 0; i < r->row_count; i++)
        room += factor[i] * spase_row_room(r->in, &r->rows[i], r->limit);
    return room;
}

static __int128 cost_of(const struct refuter *r, const int64_t *factor, const struct spase_mode *mode)
{
    __int128 cost = 0;
    for (uint32_t i = 0; i < r->row_count; i++)
        if (factor[i] > 0) cost += factor[i] * spase_row_weight(r->in, &r->rows[i], r->limit, mode);
    return cost;
}

/* Returns true if these weights refute the limit, in integers. */
static bool refutes(const struct refuter *r, const double *weight)
{
    const struct spase *in = r->in;
    __int128 sum = 0;
    make_factors(r, weight, r->factor);
    for (uint32_t j = 0; j < in->job_count; j++) {
        const struct spase_job *job = &in->jobs[j];
        __int128 least = -1;
        for (uint32_t m = job->first_mode; m < job->first_mode + job->mode_count; m++) {
            if (in->modes[m].ticks > r->limit) continue;
            __int128 cost = cost_of(r, r->factor, &in->modes[m]);
            if (least < 0 || cost < least) least = cost;
        }
        if (least < 0) return true; /* a job that no mode ends in time */
        sum += least;
    }
    return sum > room_of(r, r->factor);
}

static bool adjust(struct refuter *r, double until_s)
{
    for (uint32_t i = 0; i < r->row_count; i++) r->weight[i] = 1.0 / r->row_count;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        double sum = cheapest(r), all = 0, most = 0, rate = 0.5 / sqrt(1 + round / 8.0);
        if (sum > r->best_sum) {
            r->best_sum = sum;
            memcpy(r->best, r->weight, r->row_count * sizeof *r->best);
        }
        if (sum > 1 + 1e-9 && refutes(r, r->weight)) return true;
        for (uint32_t i = 0; i < r->row_count; i++) most = fmax(most, r->load[i]);
        if (most <= 1) return false; /* no row can refute then */
        for (uint32_t i = 0; i < r->row_count; i++) {
            r->weight[i] *= exp(rate * 20 * (r->load[i] - most));
            all += r->weight[i];
        }
        for (uint32_t i = 0; i < r->row_count; i++) r->weight[i] /= all;
        if (round % 16 == 15 && clock_s() >= until_s) return false;
    }
    return false;
}

static void refuter_release(struct refuter *r)
{
    free(r->rows);
    free(r->share);
    free(r->weight);
    free(r->load);
    free(r->best);
    free(r->factor);
}

static enum status refuter_make(const struct spase *in, int64_t limit, struct refuter *r, struct error *err)
{
    assert(limit >= 1);
    *r = (struct refuter){.in = in, .limit = limit};
    TRY(spase_rows_make(in, limit, &r->rows, &r->row_count, err));
    size_t entries = (size_t)in->mode_count * r->row_count;
    r->share = alloc_zeroed(entries, sizeof *r->share);
    r->weight = alloc_zeroed(r->row_count, sizeof *r->weight);
    r->load = alloc_zeroed(r->row_count, sizeof *r->load);
    r->best = alloc_zeroed(r->row_count, sizeof *r->best);
    r->factor = alloc_zeroed(r->row_count, sizeof *r->factor);
    if (!r->share || !r->weight || !r->load || !r->best || !r->factor) {
        refuter_release(r);
        return error_memory(err, "bounds", entries * sizeof *r->share);
    }
    for (uint32_t i = 0; i < r->row_count; i++) {
        double room = (double)spase_row_room(in, &r->rows[i], limit);
        for (uint32_t m = 0; m < in->mode_count; m++)
            if (in->modes[m].ticks <= limit)
                r->share[(size_t)m * r->row_count + i] =
                    (double)spase_row_weight(in, &r->rows[i], limit, &in->modes[m]) / room;
    }
    return STATUS_OK;
}

/* Finds out whether it is proven that nothing ends by `limit`. */
static enum status refute(const struct spase *in, int64_t limit, double until_s, bool *refuted, struct error *err)
{
    struct refuter r;
    TRY(refuter_make(in, limit, &r, err));
    *refuted = adjust(&r, until_s);
    refuter_release(&r);
    return STATUS_OK;
}

/* Divides by 2^shift, costs rounded down and room up, so that the sum stays valid. */
static void scale_down(const struct refuter *r, struct spase_surrogate *out)
{
    __int128 room = room_of(r, r->factor);
    uint32_t shift = 0;
    while (room >> shift >= (__int128)1 << 40) shift++;
    out->room = (int64_t)(room >> shift) + 1;
    for (uint32_t m = 0; m < r->in->mode_count; m++)
        if (r->in->modes[m].ticks <= r->limit)
            out->cost[m] = (int64_t)(cost_of(r, r->factor, &r->in->modes[m]) >> shift);
    for (uint32_t i = 0; i < r->row_count; i++)
        if (r->rows[i].f == 0 && r->rows[i].g == 0)
            out->idle_cost[r->rows[i].class] = (int64_t)(((__int128)r->factor[i] << 20) >> shift);
}

enum status spase_surrogate_make(const struct spase *in, int64_t limit, double until_s,
                                 struct spase_surrogate *out, struct error *err)
{
    struct spase_surrogate made = {0};
    struct refuter r;
    TRY(refuter_make(in, limit, &r, err));
    made.refuted = adjust(&r, until_s);
    made.cost = alloc_zeroed(in->mode_count, sizeof *made.cost);
    made.idle_cost = alloc_zeroed(in->class_count, sizeof *made.idle_cost);
    if (made.cost && made.idle_cost) {
        make_factors(&r, r.best, r.factor);
        scale_down(&r, &made);
        *out = made;
    } else {
        spase_surrogate_release(&made);
        error_memory(err, "bounds", in->mode_count * sizeof *made.cost);
    }
    refuter_release(&r);
    return err->status;
}

void spase_surrogate_release(struct spase_surrogate *surrogate)
{
    free(surrogate->cost);
    free(surrogate->idle_cost);
    *surrogate = (struct spase_surrogate){0};
}

/* --- bounds ---------------------------------------------------------------------------------- */

enum status spase_bounds_make(const struct spase *in, int64_t known, double until_s, struct spase_bounds *out,
                              struct error *err)
{
    struct spase_bounds made = {0};
    int64_t area = 0;
    for (uint32_t j = 0; j < in->job_count; j++) {
        const struct spase_job *job = &in->jobs[j];
        int64_t least_area = INT64_MAX, shortest = INT64_MAX;
        for (uint32_t m = job->first_mode; m < job->first_mode + job->mode_count; m++) {
            if (spase_area(&in->modes[m]) < least_area) least_area = spase_area(&in->modes[m]);
            if (in->modes[m].ticks < shortest) shortest = in->modes[m].ticks;
        }
        area += least_area;
        if (shortest > made.value[SPASE_BOUND_LONGEST]) made.value[SPASE_BOUND_LONGEST] = shortest;
    }
    made.value[SPASE_BOUND_AREA] = (area + in->device_count - 1) / in->device_count;
    if (made.value[SPASE_BOUND_AREA] > made.value[SPASE_BOUND_LONGEST]) made.best = SPASE_BOUND_AREA;
    int64_t low = spase_bounds_best(&made), high = known;
    while (low < high && clock_s() < until_s) { /* low: not refuted; high: known or not refuted */
        int64_t middle = low + (high - low) / 2;
        bool refuted = false;
        TRY(refute(in, middle, until_s, &refuted, err));
        if (refuted) low = middle + 1;
        else high = middle;
    }
    made.value[SPASE_BOUND_SCALED] = low;
    if (low > spase_bounds_best(&made)) made.best = SPASE_BOUND_SCALED;
    *out = made;
    return STATUS_OK;
}
