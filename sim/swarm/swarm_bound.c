/*
 * The program by groups of equal peers, in a dense tableau:
 *
 *     l - sum over g of rate(g, s) x(g, s) <= 0             for each stage s
 *         sum over s of x(g, s)            <= presence(g)   for each group g
 *
 * The zero solution is feasible, so one phase is enough. The first column with a profitable price is taken (Bland's
 * rule, which terminates although the first rows are degenerate). Rates are relative to the largest.
 */
#include "sim/swarm/swarm_bound.h"

#include <math.h>

#include "base/try.h"

enum { PIVOTS_MAX = 20000 };
#define LEAST_GAIN 1e-11

struct tableau {
    double *at;             /* (rows + 1, columns + 1): the objective is the last row, right sides the last column */
    uint32_t *basis;        /* (rows) */
    uint32_t rows, columns; /* columns: l, x, one slack for each row */
};

static double *cell(const struct tableau *t, uint32_t row, uint32_t column)
{
    return &t->at[(size_t)row * (t->columns + 1) + column];
}

static void pivot(struct tableau *t, uint32_t row, uint32_t column)
{
    double scale = 1 / *cell(t, row, column);
    for (uint32_t c = 0; c <= t->columns; c++) *cell(t, row, c) *= scale;
    for (uint32_t r = 0; r <= t->rows; r++) {
        double factor = *cell(t, r, column);
        if (r == row || factor == 0) continue;
        for (uint32_t c = 0; c <= t->columns; c++) *cell(t, r, c) -= factor * *cell(t, row, c);
    }
    t->basis[row] = column;
}

/* Returns the row whose variable leaves for the column's; rows: none. */
static uint32_t leaving(const struct tableau *t, uint32_t column)
{
    uint32_t best = t->rows;
    double least = HUGE_VAL;
    for (uint32_t r = 0; r < t->rows; r++) {
        if (*cell(t, r, column) <= LEAST_GAIN) continue;
        double ratio = *cell(t, r, t->columns) / *cell(t, r, column);
        if (ratio > least || (ratio >= least && t->basis[r] > t->basis[best])) continue;
        least = ratio;
        best = r;
    }
    return best;
}

static void maximise(struct tableau *t)
{
    for (uint32_t i = 0; i < PIVOTS_MAX; i++) {
        uint32_t column = 0;
        while (column < t->columns && *cell(t, t->rows, column) >= -LEAST_GAIN) column++;
        if (column == t->columns) return;
        uint32_t row = leaving(t, column);
        if (row == t->rows) return; /* l is bounded, so this is rounding */
        pivot(t, row, column);
    }
}

static void fill(struct tableau *t, const struct swarm *in, const double *presence, double rate_max)
{
    uint32_t stages = in->stage_count;
    for (uint32_t s = 0; s < stages; s++) {
        *cell(t, s, 0) = 1;
        for (uint32_t g = 0; g < in->group_count; g++) {
            *cell(t, s, 1 + g * stages + s) = -swarm_rate(in, g, s) / rate_max;
            *cell(t, stages + g, 1 + g * stages + s) = 1;
        }
    }
    for (uint32_t g = 0; g < in->group_count; g++) *cell(t, stages + g, t->columns) = presence[g];
    for (uint32_t r = 0; r < t->rows; r++) {
        t->basis[r] = t->columns - t->rows + r;
        *cell(t, r, t->basis[r]) = 1;
    }
    *cell(t, t->rows, 0) = -1;
}

/* Returns the bound that prices prove; only their ratios matter. */
static double proven(const struct swarm *in, const double *presence, const double *prices)
{
    double bound = 0, sum = 0;
    for (uint32_t s = 0; s < in->stage_count; s++) sum += prices[s];
    for (uint32_t g = 0; g < in->group_count; g++) {
        double most = 0;
        for (uint32_t s = 0; s < in->stage_count; s++) most = fmax(most, prices[s] / sum * swarm_rate(in, g, s));
        bound += presence[g] * most;
    }
    return bound;
}

static enum status bound_of_peers(const struct swarm *in, const double *presence, double *out, struct error *err)
{
    struct arena arena = {0};
    struct tableau t = {.rows = in->stage_count + in->group_count,
                        .columns = 1 + in->group_count * in->stage_count + in->stage_count + in->group_count};
    double prices[SWARM_STAGES_MAX] = {0}, equal[SWARM_STAGES_MAX] = {0}, rate_max = 0, sum = 0;
    for (uint32_t g = 0; g < in->group_count; g++)
        for (uint32_t s = 0; s < in->stage_count; s++) rate_max = fmax(rate_max, swarm_rate(in, g, s));
    if (!ARENA_NEW(&arena, (size_t)(t.rows + 1) * (t.columns + 1), t.at, err) &&
        !ARENA_NEW(&arena, t.rows, t.basis, err)) {
        fill(&t, in, presence, rate_max);
        maximise(&t);
        for (uint32_t s = 0; s < in->stage_count; s++) {
            equal[s] = 1;
            prices[s] = fmax(*cell(&t, t.rows, t.columns - t.rows + s), 0);
            sum += prices[s];
        }
        *out = proven(in, presence, equal);
        if (sum > 0) *out = fmin(*out, proven(in, presence, prices));
    }
    arena_release(&arena);
    return err->status;
}

/* Returns the least seconds of a microbatch: the fastest passes, the widest links, the least latencies. */
static double least_s(const struct swarm *in)
{
    double up = 0, down = 0, latency_s = HUGE_VAL, sum_s = 0;
    for (uint32_t g = 0; g < in->group_count; g++) {
        up = fmax(up, in->groups[g].up_bytes_per_s);
        down = fmax(down, in->groups[g].down_bytes_per_s);
        latency_s = fmin(latency_s, in->groups[g].latency_s);
    }
    for (uint32_t s = 0; s < in->stage_count; s++) {
        double pass_s = HUGE_VAL;
        for (uint32_t g = 0; g < in->group_count; g++)
            pass_s = fmin(pass_s, in->groups[g].passes[s].forward_s + in->groups[g].passes[s].backward_s);
        sum_s += pass_s + (s + 1 < in->stage_count ? 2 * in->stages[s].boundary_bytes / fmin(up, down) : 0);
    }
    return sum_s + (4 * (in->stage_count - 1) + 1) * latency_s; /* each hop has two latencies; one more to the first
                                                                   stage */
}

enum status swarm_bound(const struct swarm *in, const struct swarm_result *result, bool moving,
                        struct swarm_bound *out, struct error *err)
{
    double presence[SWARM_GROUPS_MAX] = {0}, rate[SWARM_STAGES_MAX] = {0};
    *out = (struct swarm_bound){.kind = moving ? SWARM_BOUND_PEERS : SWARM_BOUND_STAGE};
    if (!(result->elapsed_s > 0)) return STATUS_OK;
    for (uint32_t g = 0; g < in->group_count; g++)
        for (uint32_t p = in->groups[g].first; p < in->groups[g].first + in->groups[g].count; p++) {
            double share = result->peers[p].working_s / result->elapsed_s;
            presence[g] += share;
            rate[result->peers[p].stage] += share * swarm_rate(in, g, result->peers[p].stage);
        }
    if (moving) {
        TRY(bound_of_peers(in, presence, &out->per_s, err));
    } else {
        for (uint32_t s = 1; s < in->stage_count; s++)
            if (rate[s] < rate[out->stage]) out->stage = s;
        out->per_s = rate[out->stage];
    }
    uint64_t under_way = (uint64_t)in->trainers * in->under_way;
    double little = (double)(under_way < in->batch ? under_way : in->batch) / least_s(in) *
                    (1 - result->averaging_s / result->elapsed_s);
    if (little < out->per_s) *out = (struct swarm_bound){little, SWARM_BOUND_LATENCY, 0};
    return STATUS_OK;
}
