/*
 * Duals stay feasible, and flow runs only on pairs without reduced cost. Columns are reduced, then rows, and all that
 * is possible is shipped; a few rows keep supply. From such a row Dijkstra's algorithm, over reduced costs, finds the
 * nearest column with demand, going back from full columns to rows that ship there. The duals are raised by the
 * distances, which frees the path of reduced cost, and it ships its bottleneck's capacity.
 */
#include "planner/solve/bounds/assignment.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { NO_ROW = UINT32_MAX };

struct solver {
    const int64_t *cost;
    uint32_t n;
    int64_t *row, *column;
    uint32_t *supply, *demand; /* remaining */
    uint32_t *flow;            /* (n, n), column by column: flow[k * n + i] */
    int64_t *distance;         /* of columns */
    int64_t *row_distance;     /* of reached rows */
    uint32_t *from;            /* per column: the previous row */
    uint32_t *via;             /* per row: the previous column; NO_ROW: the source */
    bool *done, *reached;      /* columns, rows */
};

static void reduce(struct solver *s)
{
    uint32_t n = s->n;
    for (uint32_t k = 0; k < n; k++) s->column[k] = ASSIGNMENT_FORBIDDEN;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n; k++)
            if (s->cost[(size_t)i * n + k] < s->column[k]) s->column[k] = s->cost[(size_t)i * n + k];
    for (uint32_t k = 0; k < n; k++)
        if (s->column[k] == ASSIGNMENT_FORBIDDEN) s->column[k] = 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t least = ASSIGNMENT_FORBIDDEN;
        for (uint32_t k = 0; k < n; k++) {
            int64_t reduced = s->cost[(size_t)i * n + k] - s->column[k];
            if (s->cost[(size_t)i * n + k] < ASSIGNMENT_FORBIDDEN && reduced < least) least = reduced;
        }
        s->row[i] = least == ASSIGNMENT_FORBIDDEN ? 0 : least;
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n && s->supply[i] > 0; k++) {
            int64_t cost = s->cost[(size_t)i * n + k];
            if (s->demand[k] == 0 || cost >= ASSIGNMENT_FORBIDDEN || cost != s->row[i] + s->column[k])
                continue;
            uint32_t ship = s->supply[i] < s->demand[k] ? s->supply[i] : s->demand[k];
            s->flow[(size_t)k * n + i] += ship;
            s->supply[i] -= ship;
            s->demand[k] -= ship;
        }
}

static void relax(struct solver *s, uint32_t i, int64_t distance, uint32_t via)
{
    const int64_t *cost = s->cost + (size_t)i * s->n;
    int64_t base = distance - s->row[i];
    s->reached[i] = true;
    s->row_distance[i] = distance;
    s->via[i] = via;
    for (uint32_t k = 0; k < s->n; k++) {
        if (s->done[k] || cost[k] >= ASSIGNMENT_FORBIDDEN) continue;
        int64_t d = base + cost[k] - s->column[k];
        if (d < s->distance[k]) {
            s->distance[k] = d;
            s->from[k] = i;
        }
    }
}

/* Returns the nearest column with demand from row `source`, or NO_ROW. */
static uint32_t search(struct solver *s, uint32_t source)
{
    uint32_t n = s->n;
    memset(s->done, 0, n * sizeof *s->done);
    memset(s->reached, 0, n * sizeof *s->reached);
    for (uint32_t k = 0; k < n; k++) s->distance[k] = ASSIGNMENT_FORBIDDEN;
    relax(s, source, 0, NO_ROW);
    for (;;) {
        uint32_t best = NO_ROW;
        for (uint32_t k = 0; k < n; k++)
            if (!s->done[k] && s->distance[k] < ASSIGNMENT_FORBIDDEN &&
                (best == NO_ROW || s->distance[k] < s->distance[best]))
                best = k;
        if (best == NO_ROW || s->demand[best] > 0) return best;
        s->done[best] = true;
        for (uint32_t i = 0; i < n; i++)
            if (s->flow[(size_t)best * n + i] > 0 && !s->reached[i])
                relax(s, i, s->distance[best], best);
    }
}

static void raise_duals(struct solver *s, int64_t reach)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->reached[i]) s->row[i] += reach - s->row_distance[i];
    for (uint32_t k = 0; k < s->n; k++)
        if (s->done[k]) s->column[k] -= reach - s->distance[k];
}

static void ship_along(struct solver *s, uint32_t source, uint32_t sink)
{
    uint32_t n = s->n, most = s->supply[source] < s->demand[sink] ? s->supply[source] : s->demand[sink];
    for (uint32_t k = sink, i = s->from[k]; s->via[i] != NO_ROW; k = s->via[i], i = s->from[k]) {
        uint32_t back = s->flow[(size_t)s->via[i] * n + i];
        if (back < most) most = back;
    }
    for (uint32_t k = sink;;) {
        uint32_t i = s->from[k];
        s->flow[(size_t)k * n + i] += most;
        if (s->via[i] == NO_ROW) break;
        k = s->via[i];
        s->flow[(size_t)k * n + i] -= most;
    }
    s->supply[source] -= most;
    s->demand[sink] -= most;
}

static enum status solve(struct solver *s, struct error *err)
{
    reduce(s);
    for (uint32_t i = 0; i < s->n; i++)
        while (s->supply[i] > 0) {
            uint32_t sink = search(s, i);
            if (sink == NO_ROW)
                return error_set(err, STATUS_INFEASIBLE, "no assignment without forbidden pairs");
            raise_duals(s, s->distance[sink]);
            ship_along(s, i, sink);
        }
    return STATUS_OK;
}

enum status assignment_solve(const int64_t *cost, uint32_t count, const uint32_t *supply,
                             const uint32_t *demand, int64_t *row, int64_t *column, struct error *err)
{
    size_t n = count;
    struct solver s = {.cost = cost, .n = count, .row = row, .column = column};
    s.supply = alloc_zeroed(n, sizeof *s.supply);
    s.demand = alloc_zeroed(n, sizeof *s.demand);
    s.flow = alloc_zeroed(n * n, sizeof *s.flow);
    s.distance = alloc_zeroed(n, sizeof *s.distance);
    s.row_distance = alloc_zeroed(n, sizeof *s.row_distance);
    s.from = alloc_zeroed(n, sizeof *s.from);
    s.via = alloc_zeroed(n, sizeof *s.via);
    s.done = alloc_zeroed(n, sizeof *s.done);
    s.reached = alloc_zeroed(n, sizeof *s.reached);
    if (!s.supply || !s.demand || !s.flow || !s.distance || !s.row_distance || !s.from || !s.via ||
        !s.done || !s.reached) {
        error_memory(err, "an assignment problem", n * n * sizeof *s.flow);
    } else {
        memcpy(s.supply, supply, n * sizeof *supply);
        memcpy(s.demand, demand, n * sizeof *demand);
        solve(&s, err);
    }
    free(s.supply);
    free(s.demand);
    free(s.flow);
    free(s.distance);
    free(s.row_distance);
    free(s.from);
    free(s.via);
    free(s.done);
    free(s.reached);
    return err->status;
}
