/*
 * Counts tokens in grains of the given granularity. best[e] is the least sum of slices that end at grain e, with hops,
 * t + s, within the current limit. Limits are tried upwards until (K - 1) times the limit reaches the best total.
 */
#include "planner/parallel/pipeline/slice_partition.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/order.h"

enum { GRAINS = PARALLEL_SLICES_MAX };

struct slice_partition_table {
    uint32_t grains;
    double seconds[GRAINS][GRAINS + 1], hops[GRAINS][GRAINS + 1]; /* [begin][end] */
    double sorted[GRAINS * (GRAINS + 1) / 2];
    double best[GRAINS + 1];
    uint32_t from[GRAINS + 1];
};

static uint32_t token_of(const struct slice_request *request, uint32_t grain)
{
    uint64_t token = (uint64_t)grain * request->granularity;
    return token < request->tokens ? (uint32_t)token : request->tokens;
}

/* Fills in both tables and sorts the hop times. Returns their number. */
static uint32_t fill(struct slice_partition_table *t, const struct slice_request *request)
{
    uint32_t count = 0;
    for (uint32_t b = 0; b < t->grains; b++)
        for (uint32_t e = b + 1; e <= t->grains; e++) {
            uint32_t begin = token_of(request, b), end = token_of(request, e);
            t->seconds[b][e] = request->seconds(request->context, begin, end);
            assert(t->seconds[b][e] > 0);
            t->hops[b][e] = t->seconds[b][e] + (request->sends ? request->sends(request->context, begin, end) : 0);
            t->sorted[count++] = t->hops[b][e];
        }
    qsort(t->sorted, count, sizeof *t->sorted, order_double);
    return count;
}

/* Returns the least sum of slices whose hops take at most `most_s`; INFINITY if there are none. */
static double least_sum(struct slice_partition_table *t, double most_s)
{
    t->best[0] = 0;
    for (uint32_t e = 1; e <= t->grains; e++) {
        t->best[e] = INFINITY;
        for (uint32_t b = 0; b < e; b++) {
            double sum = t->best[b] + t->seconds[b][e];
            if (t->hops[b][e] > most_s || !(sum < t->best[e])) continue;
            t->best[e] = sum;
            t->from[e] = b;
        }
    }
    return t->best[t->grains];
}

static void read_off(const struct slice_partition_table *t, const struct slice_request *request,
                     struct slice_partition *out)
{
    uint32_t ends[GRAINS], count = 0;
    for (uint32_t e = t->grains; e > 0; e = t->from[e]) ends[count++] = e;
    out->count = count;
    for (uint32_t s = 0; s < count; s++) {
        uint32_t end = ends[count - 1 - s];
        out->tokens[s] = token_of(request, end) - token_of(request, t->from[end]);
    }
}

enum status slice_partition_find(const struct slice_request *request, struct slice_partition *out, struct error *err)
{
    struct slice_partition_table *t = alloc_resize(NULL, sizeof *t);
    if (!t) return error_memory(err, "slices of a sequence", sizeof *t);
    t->grains = (request->tokens + request->granularity - 1) / request->granularity;
    assert(t->grains > 0 && t->grains <= GRAINS && request->stages > 0 && request->repeats > 0);
    uint32_t count = fill(t, request);
    double fill_stages = request->stages - 1, best = INFINITY;
    for (uint32_t i = 0; i < count; i++) {
        double most_s = t->sorted[i];
        if (fill_stages * most_s >= best) break;
        double value = (double)request->repeats * least_sum(t, most_s) + fill_stages * most_s;
        if (!(value < best)) continue;
        best = value;
        read_off(t, request, out);
        out->seconds = value;
    }
    free(t);
    return STATUS_OK;
}
