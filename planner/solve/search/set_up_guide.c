/* If there are many units, a sample stands for all. */
#include "planner/solve/search/set_up_guide.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "planner/solve/bounds/assignment.h"

enum { SAMPLE_MAX = 160, ROUNDS = 30, COOLING = 15  };

struct sample {
    const struct instance *in;
    uint32_t count;
    uint32_t units[SAMPLE_MAX];
    double share[SAMPLE_MAX];               /* of all tasks */
    double row[SAMPLE_MAX], column[SAMPLE_MAX];
    double cost[SAMPLE_MAX][SAMPLE_MAX];    /* HUGE_VAL: forbidden */
    double temperature;
};

static double cost_of(const struct instance *in, uint32_t j, uint32_t k)
{
    int64_t distance = instance_distance(in, j, k);
    return distance >= ASSIGNMENT_FORBIDDEN ? HUGE_VAL : (double)distance;
}

static void draw(struct sample *s)
{
    const struct instance *in = s->in;
    double all = 0;
    s->count = in->unit_count < SAMPLE_MAX ? in->unit_count : SAMPLE_MAX;
    for (uint32_t i = 0; i < s->count; i++) {
        s->units[i] = (uint32_t)((uint64_t)i * in->unit_count / s->count);
        s->share[i] = in->jobs[in->units[s->units[i]].job].repeat;
        all += s->share[i];
    }
    for (uint32_t i = 0; i < s->count; i++) s->share[i] /= all;
    for (uint32_t i = 0; i < s->count; i++)
        for (uint32_t k = 0; k < s->count; k++) s->cost[i][k] = cost_of(in, s->units[i], s->units[k]);
}

/* Returns -T log sum of share * exp((dual - cost) / T), with the largest exponent taken out. */
static double soft_least(const struct sample *s, const double *cost, const double *dual)
{
    double best = HUGE_VAL, sum = 0, limit;
    for (uint32_t i = 0; i < s->count; i++)
        if (cost[i] - dual[i] < best) best = cost[i] - dual[i];
    if (best == HUGE_VAL) return 0;
    limit = best + 30 * s->temperature; /* exp(-30) is nothing */
    for (uint32_t i = 0; i < s->count; i++)
        if (cost[i] - dual[i] < limit) sum += s->share[i] * exp((best - cost[i] + dual[i]) / s->temperature);
    return best - s->temperature * log(sum);
}

static void iterate(struct sample *s)
{
    double across[SAMPLE_MAX], wanted = s->temperature;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        s->temperature = round < COOLING ? ldexp(wanted, (int)(COOLING - round) / 3) : wanted;
        for (uint32_t j = 0; j < s->count; j++) s->row[j] = soft_least(s, s->cost[j], s->column);
        for (uint32_t k = 0; k < s->count; k++) {
            for (uint32_t j = 0; j < s->count; j++) across[j] = s->cost[j][k];
            s->column[k] = soft_least(s, across, s->row);
        }
    }
}

static void spread(const struct sample *s, struct set_up_guide *out)
{
    double cost[SAMPLE_MAX];
    for (uint32_t u = 0; u < s->in->unit_count; u++) {
        for (uint32_t i = 0; i < s->count; i++) cost[i] = cost_of(s->in, u, s->units[i]);
        out->row[u] = soft_least(s, cost, s->column);
        for (uint32_t i = 0; i < s->count; i++) cost[i] = cost_of(s->in, s->units[i], u);
        out->column[u] = soft_least(s, cost, s->row);
    }
    for (uint32_t i = 0; i < s->count; i++) cost[i] = (double)s->in->units[s->units[i]].in;
    out->row_start = soft_least(s, cost, s->column);
}

enum status set_up_guide_make(const struct instance *in, const struct instance_bounds *bounds,
                              double softness, struct set_up_guide *out, struct error *err)
{
    struct sample *s = alloc_zeroed(1, sizeof *s);
    struct set_up_guide made = {.row_start = (double)bounds->row_start};
    made.row = alloc_zeroed(in->unit_count, sizeof *made.row);
    made.column = alloc_zeroed(in->unit_count, sizeof *made.column);
    if (!s || !made.row || !made.column) {
        error_memory(err, "a guide", in->unit_count * sizeof *made.row);
        set_up_guide_release(&made);
        goto out;
    }
    double compute = 0, tasks = 0;
    for (uint32_t u = 0; u < in->unit_count; u++) {
        double repeat = in->jobs[in->units[u].job].repeat;
        made.row[u] = (double)bounds->row[u];
        made.column[u] = (double)bounds->column[u];
        compute += repeat * (double)instance_compute_min(in, u);
        tasks += repeat;
    }
    s->in = in;
    s->temperature = softness * compute / tasks;
    if (softness > 0) {
        draw(s);
        iterate(s);
        spread(s, &made);
    }
    *out = made;
out:
    free(s);
    return err->status;
}

void set_up_guide_release(struct set_up_guide *guide)
{
    free(guide->row);
    free(guide->column);
    *guide = (struct set_up_guide){0};
}
