/*
 * Seconds span seven orders of magnitude over sizes; seconds per FLOP (or byte) rarely one. The code therefore
 * interpolates the logarithm of seconds per unit of work (models/kernel/work.h).
 *
 *     matmuls, attention   in (log m, log n, log k), per FLOP: trilinear if the points are a full
 *                          grid of m, n, k values, else the 4 nearest points weighted by 1/d^2
 *     all others           in log bytes, per byte: linear between the two neighbours
 *
 * Worked example: a norm measured at 1 MB in 0.1 ms and at 16 MB in 3.2 ms has 0.1 and 0.2 ns per
 * byte. 4 MB is half way in the logarithm: sqrt(0.1 * 0.2) = 0.141 ns per byte, 0.566 ms.
 *
 * Above the measured sizes the nearest rate applies. Below them a part of the seconds stays, however little there is
 * to do: a call, and of a product the weights that it reads. The two smallest sizes on the axis tell that part: with
 * the others' place on theirs, they are a + b x for x units of work.
 *
 *     seconds   |            o  16 rows        a product of few rows by a weight's matrix
 *               |       o  4
 *             a |__.--                         measured: 4 and 16 rows; 1 row is hardly faster than 4
 *               +------------- rows
 *
 * Spreads are added within a kernel, whose items err together.
 *
 * Tried and dropped: bilinear interpolation of seconds overshoots between powers of two by a third.
 */
#include "models/cost/measured_rate.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

/* The log of the seconds per FLOP or byte. */
struct rate {
    double log_s, spread;
};

/* --- points in m, n, k ---------------------------------------------------------------------- */

static double point_flops(uint32_t kernel, const struct rate_point *p)
{
    return work_item_flops(&(struct work_item){kernel, 1, p->m, p->n, p->k});
}

static struct rate point_rate(uint32_t kernel, const struct rate_point *p)
{
    return (struct rate){log(p->seconds / point_flops(kernel, p)), p->spread};
}

/* Lengths of a full grid. find_grid() returns true when points sorted by (m, n, k) form one. */
struct grid {
    uint32_t count[3];
};

static bool find_grid(const struct kernel_rate *rate, struct grid *out)
{
    const struct rate_point *p = rate->points;
    uint32_t total = rate->point_count, k_count = 1, m_run = 1;
    while (k_count < total && p[k_count].m == p[0].m && p[k_count].n == p[0].n) k_count++;
    while (m_run < total && p[m_run].m == p[0].m) m_run++;
    if (m_run % k_count != 0 || total % m_run != 0) return false;
    *out = (struct grid){{total / m_run, m_run / k_count, k_count}};
    for (uint32_t i = 0; i < total; i++) {
        uint32_t n_index = i / k_count % out->count[1], k_index = i % k_count;
        if (p[i].m != p[i / m_run * m_run].m || p[i].n != p[n_index * k_count].n ||
            p[i].k != p[k_index].k)
            return false;
    }
    return true;
}

/* A place between entries `low` and `low` + 1, or exactly on `low`. */
struct axis_place {
    uint32_t low, high;
    double part; /* from low to high, in the logarithm */
};

static uint64_t coordinate(const struct rate_point *p, int axis)
{
    return axis == 0 ? p->m : axis == 1 ? p->n : p->k;
}

static struct axis_place place_on_axis(const struct kernel_rate *rate, uint32_t stride,
                                       uint32_t count, int axis, double size)
{
    uint32_t high = 0;
    while (high < count && (double)coordinate(&rate->points[high * stride], axis) < size) high++;
    if (high == 0) return (struct axis_place){0, 0, 0};
    if (high == count) return (struct axis_place){count - 1, count - 1, 0};
    double below = (double)coordinate(&rate->points[(high - 1) * stride], axis);
    double above = (double)coordinate(&rate->points[high * stride], axis);
    return (struct axis_place){high - 1, high, log(size / below) / log(above / below)};
}

/* Returns the rate at these places. */
static struct rate rate_at(uint32_t kernel, const struct kernel_rate *rate, const uint32_t strides[3],
                           const struct axis_place places[3])
{
    struct rate sum = {0};
    for (unsigned corner = 0; corner < 8; corner++) {
        double weight = 1;
        uint32_t index = 0;
        for (int axis = 0; axis < 3; axis++) {
            const struct axis_place *place = &places[axis];
            bool upper = corner >> axis & 1;
            weight *= upper ? place->part : 1 - place->part;
            index += strides[axis] * (upper ? place->high : place->low);
        }
        if (weight == 0) continue;
        struct rate at = point_rate(kernel, &rate->points[index]);
        sum.log_s += weight * at.log_s;
        sum.spread += weight * at.spread;
    }
    return sum;
}

/* Returns how many times the seconds for x units of work are those by the rate of x0, the smallest measured, since a
 * part of them stays. x1: the next one; log_s: of a unit. */
static double small_factor(double x, double x0, double log0_s, double x1, double log1_s)
{
    const double t0 = exp(log0_s) * x0, t1 = exp(log1_s) * x1, stays = (t0 * x1 - t1 * x0) / (x1 - x0);
    if (!(stays > 0) || x >= x0) return 1;
    const double least = fmin(stays, t0);
    return (least + (t0 - least) * x / x0) / (t0 * x / x0);
}

static struct work_item with_size(const struct work_item *item, int axis, uint64_t size)
{
    struct work_item out = *item;
    *(axis == 0 ? &out.m : axis == 1 ? &out.n : &out.k) = size;
    return out;
}

static uint64_t item_size(const struct work_item *item, int axis)
{
    return axis == 0 ? item->m : axis == 1 ? item->n : item->k;
}

static struct rate interpolate_grid(uint32_t kernel, const struct kernel_rate *rate,
                                    const struct grid *grid, const struct work_item *item)
{
    const uint32_t strides[3] = {grid->count[1] * grid->count[2], grid->count[2], 1};
    struct axis_place places[3];
    struct work_item least = *item; /* no smaller than what is measured */
    for (int axis = 0; axis < 3; axis++) {
        const uint64_t smallest = coordinate(&rate->points[0], axis), size = item_size(item, axis);
        places[axis] = place_on_axis(rate, strides[axis], grid->count[axis], axis, (double)size);
        if (size < smallest) least = with_size(&least, axis, smallest);
    }
    struct rate sum = rate_at(kernel, rate, strides, places);
    const double log0_s = sum.log_s;
    for (int axis = 0; axis < 3; axis++) {
        if (item_size(item, axis) >= item_size(&least, axis) || grid->count[axis] < 2) continue;
        struct axis_place next[3] = {places[0], places[1], places[2]};
        next[axis] = (struct axis_place){1, 1, 0};
        const struct work_item above = with_size(&least, axis, coordinate(&rate->points[strides[axis]], axis));
        const struct work_item below = with_size(&least, axis, item_size(item, axis));
        sum.log_s += log(small_factor(work_item_flops(&below), work_item_flops(&least), log0_s,
                                      work_item_flops(&above), rate_at(kernel, rate, strides, next).log_s));
    }
    return sum;
}

static double distance_squared(const struct rate_point *p, const struct work_item *item)
{
    double m = log((double)item->m / (double)p->m);
    double n = log((double)item->n / (double)p->n);
    double k = log((double)item->k / (double)p->k);
    return m * m + n * n + k * k;
}

enum { NEAREST = 4 };

/* Nearest points first. */
struct neighbour {
    const struct rate_point *point;
    double distance; /* squared */
};
static uint32_t find_nearest(const struct kernel_rate *rate, const struct work_item *item,
                             struct neighbour out[NEAREST])
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < rate->point_count; i++) {
        struct neighbour next = {&rate->points[i], distance_squared(&rate->points[i], item)};
        if (found == NEAREST && next.distance >= out[NEAREST - 1].distance) continue;
        uint32_t at = found < NEAREST ? found++ : NEAREST - 1;
        for (; at > 0 && out[at - 1].distance > next.distance; at--) out[at] = out[at - 1];
        out[at] = next;
    }
    return found;
}

static struct rate interpolate_scattered(uint32_t kernel, const struct kernel_rate *rate,
                                         const struct work_item *item)
{
    struct neighbour nearest[NEAREST] = {{0}};
    uint32_t found = find_nearest(rate, item, nearest);
    if (nearest[0].distance == 0) return point_rate(kernel, nearest[0].point);
    struct rate sum = {0};
    double weights = 0;
    for (uint32_t i = 0; i < found; i++) {
        double weight = nearest[0].distance / nearest[i].distance;
        struct rate at = point_rate(kernel, nearest[i].point);
        sum.log_s += weight * at.log_s;
        sum.spread += weight * at.spread;
        weights += weight;
    }
    return (struct rate){sum.log_s / weights, sum.spread / weights};
}

/* --- points in bytes ------------------------------------------------------------------------ */

static double point_bytes(uint32_t kernel, const struct rate_point *p)
{
    return work_item_bytes(&(struct work_item){kernel, 1, p->m, p->n, p->k}, MEASURED_ELEMENT_BYTES);
}

/* Returns the rate below all measured sizes. */
static struct rate few_bytes(uint32_t kernel, const struct kernel_rate *rate, const struct rate_point *smallest,
                             double bytes)
{
    const double x0 = point_bytes(kernel, smallest), log0_s = log(smallest->seconds / x0);
    const struct rate_point *next = NULL;
    for (uint32_t i = 0; i < rate->point_count; i++) {
        const double at = point_bytes(kernel, &rate->points[i]);
        if (at > x0 && (!next || at < point_bytes(kernel, next))) next = &rate->points[i];
    }
    if (!next) return (struct rate){log0_s, smallest->spread};
    const double x1 = point_bytes(kernel, next);
    return (struct rate){log0_s + log(small_factor(bytes, x0, log0_s, x1, log(next->seconds / x1))), smallest->spread};
}

static struct rate interpolate_bytes(uint32_t kernel, const struct kernel_rate *rate, double bytes)
{
    const struct rate_point *low = NULL, *high = NULL;
    double low_bytes = 0, high_bytes = 0;
    for (uint32_t i = 0; i < rate->point_count; i++) {
        const struct rate_point *p = &rate->points[i];
        double at = point_bytes(kernel, p);
        if (at <= bytes && (!low || at > low_bytes)) low = p, low_bytes = at;
        if (at >= bytes && (!high || at < high_bytes)) high = p, high_bytes = at;
    }
    if (!low) return few_bytes(kernel, rate, high, bytes);
    struct rate below = {log(low->seconds / low_bytes), low->spread};
    if (!high || high_bytes == low_bytes) return below;
    struct rate above = {log(high->seconds / high_bytes), high->spread};
    double part = log(bytes / low_bytes) / log(high_bytes / low_bytes);
    return (struct rate){(1 - part) * below.log_s + part * above.log_s,
                         (1 - part) * below.spread + part * above.spread};
}

/* --- one item ------------------------------------------------------------------------------- */

struct measured_cost measured_cost(uint32_t kernel, const struct kernel_rate *rate, const struct work_item *item)
{
    double flops = work_item_flops(item), bytes = work_item_bytes(item, MEASURED_ELEMENT_BYTES);
    struct work_item one = *item;
    struct grid grid;
    struct rate at;
    one.count = 1;
    if (flops == 0 && bytes == 0) return (struct measured_cost){0};
    if (flops == 0)
        at = interpolate_bytes(kernel, rate, work_item_bytes(&one, MEASURED_ELEMENT_BYTES));
    else if (find_grid(rate, &grid))
        at = interpolate_grid(kernel, rate, &grid, &one);
    else
        at = interpolate_scattered(kernel, rate, &one);
    return (struct measured_cost){.seconds = exp(at.log_s) * (flops > 0 ? flops : bytes), .spread = at.spread};
}
