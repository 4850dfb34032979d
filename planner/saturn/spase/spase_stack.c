/*
 * Scaled values are a weighted sum of functions of time. The weights come from a game against the jobs: they grow on
 * functions by which the cheapest modes fill the devices most. Capacities are knapsacks with one item per job, over
 * steps of time; a mode's steps are rounded down.
 *
 * Source: dual-feasible functions and multiplicative weights as in spase_bound.h; the patterns of Gilmore and Gomory,
 * "A linear programming approach to the cutting-stock problem", 1961, bounded as here.
 */
#include "planner/saturn/spase/spase_stack.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/try.h"
#include "planner/saturn/spase/spase_bound.h"

enum { STEPS = 8192, ROUNDS = 300 }; /* of time, at most; of the game */
#define VALUE_MAX 0x1p40             /* of all ticks of a device */

/* --- weights --------------------------------------------------------------------------------- */

struct game {
    const struct spase *in;
    int64_t limit;
    struct spase_row *rows; /* rows that do not scale devices */
    uint32_t row_count;
    double *share;          /* (mode_count, row_count): weight by room */
    double *weight, *best;  /* (row_count) */
    double *load;           /* (row_count) */
};

static void game_release(struct game *g)
{
    free(g->rows);
    free(g->share);
    free(g->weight);
    free(g->best);
    free(g->load);
}

static enum status game_make(const struct spase *in, int64_t limit, struct game *g, struct error *err)
{
    uint32_t count;
    *g = (struct game){.in = in, .limit = limit};
    TRY(spase_rows_make(in, limit, &g->rows, &count, err));
    for (uint32_t i = 0; i < count; i++)
        if (g->rows[i].f == 0) g->rows[g->row_count++] = g->rows[i];
    g->share = alloc_zeroed((size_t)in->mode_count * g->row_count, sizeof *g->share);
    g->weight = alloc_zeroed(g->row_count, sizeof *g->weight);
    g->best = alloc_zeroed(g->row_count, sizeof *g->best);
    g->load = alloc_zeroed(g->row_count, sizeof *g->load);
    if (!g->share || !g->weight || !g->best || !g->load) {
        game_release(g);
        return error_memory(err, "stacks", (size_t)in->mode_count * g->row_count * sizeof *g->share);
    }
    for (uint32_t m = 0; m < in->mode_count; m++)
        for (uint32_t i = 0; i < g->row_count && in->modes[m].ticks <= limit; i++)
            g->share[(size_t)m * g->row_count + i] = (double)spase_row_weight(in, &g->rows[i], limit, &in->modes[m]) /
                                                     (double)spase_row_room(in, &g->rows[i], limit);
    return STATUS_OK;
}

static double worth(const struct game *g, const double *weight, uint32_t mode)
{
    const double *share = g->share + (size_t)mode * g->row_count;
    double sum = 0;
    for (uint32_t i = 0; i < g->row_count; i++) sum += share[i] * weight[i];
    return sum;
}

/* Computes the loads of the cheapest modes; returns their total value. */
static double answer(struct game *g)
{
    const struct spase *in = g->in;
    double sum = 0;
    for (uint32_t i = 0; i < g->row_count; i++) g->load[i] = 0;
    for (uint32_t j = 0; j < in->job_count; j++) {
        uint32_t cheapest = UINT32_MAX;
        double least = HUGE_VAL;
        for (uint32_t m = in->jobs[j].first_mode; m < in->jobs[j].first_mode + in->jobs[j].mode_count; m++) {
            double cost = in->modes[m].ticks <= g->limit ? worth(g, g->weight, m) : HUGE_VAL;
            if (cost >= least) continue;
            least = cost;
            cheapest = m;
        }
        if (cheapest == UINT32_MAX) continue;
        sum += least;
        for (uint32_t i = 0; i < g->row_count; i++) g->load[i] += g->share[(size_t)cheapest * g->row_count + i];
    }
    return sum;
}

static void play(struct game *g)
{
    double most = -1;
    for (uint32_t i = 0; i < g->row_count; i++) g->weight[i] = 1.0 / g->row_count;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        double sum = answer(g), highest = 0, all = 0, rate = 10 / sqrt(1 + round / 8.0);
        if (sum > most) {
            most = sum;
            for (uint32_t i = 0; i < g->row_count; i++) g->best[i] = g->weight[i];
        }
        for (uint32_t i = 0; i < g->row_count; i++) highest = fmax(highest, g->load[i]);
        if (highest <= 0) return;
        for (uint32_t i = 0; i < g->row_count; i++) {
            g->weight[i] *= exp(rate * (g->load[i] / highest - 1));
            all += g->weight[i];
        }
        for (uint32_t i = 0; i < g->row_count; i++) g->weight[i] /= all;
    }
}

/* --- stacks ---------------------------------------------------------------------------------- */

static enum status scaled_values(const struct spase *in, int64_t limit, int64_t *value, struct error *err)
{
    struct game g;
    double all = 0;
    TRY(game_make(in, limit, &g, err));
    play(&g);
    for (uint32_t i = 0; i < g.row_count; i++) all += g.best[i];
    for (uint32_t m = 0; m < in->mode_count; m++)
        if (in->modes[m].ticks <= limit)
            value[m] = (int64_t)(worth(&g, g.best, m) / all / in->modes[m].devices * VALUE_MAX);
    game_release(&g);
    return STATUS_OK;
}

/* Finds capacity[s] for s steps: jobs one after the other, each in one mode of the class or not at all. */
static void find_capacities(const struct spase *in, const struct spase_stacks *stacks, int64_t limit,
                            uint32_t class, int64_t *capacity)
{
    for (uint32_t j = 0; j < in->job_count; j++) {
        const struct spase_job *job = &in->jobs[j];
        for (int64_t s = stacks->step_count - 1; s >= 0; s--) {
            int64_t best = capacity[s];
            for (uint32_t m = job->first_mode; m < job->first_mode + job->mode_count; m++) {
                int64_t steps = in->modes[m].ticks / stacks->step;
                if (in->modes[m].class != class || in->modes[m].ticks > limit || steps > s) continue;
                int64_t with = capacity[s - steps] + stacks->value[m];
                if (with > best) best = with;
            }
            capacity[s] = best;
        }
    }
}

enum status spase_stacks_make(const struct spase *in, int64_t limit, enum spase_stack_values values,
                              struct spase_stacks *out, struct error *err)
{
    struct spase_stacks made = {.step = limit / STEPS + 1};
    made.step_count = (uint32_t)(limit / made.step) + 1;
    size_t entries = (size_t)in->class_count * made.step_count;
    made.value = alloc_zeroed(in->mode_count, sizeof *made.value);
    made.capacity = alloc_zeroed(entries, sizeof *made.capacity);
    if (!made.value || !made.capacity) {
        error_memory(err, "stacks", entries * sizeof *made.capacity);
        goto failed;
    }
    for (uint32_t m = 0; m < in->mode_count; m++)
        if (in->modes[m].ticks <= limit) made.value[m] = in->modes[m].ticks;
    if (values == SPASE_STACK_SCALED && scaled_values(in, limit, made.value, err)) goto failed;
    for (uint32_t c = 0; c < in->class_count; c++)
        find_capacities(in, &made, limit, c, made.capacity + (size_t)c * made.step_count);
    *out = made;
    return STATUS_OK;
failed:
    spase_stacks_release(&made);
    return err->status;
}

void spase_stacks_release(struct spase_stacks *stacks)
{
    free(stacks->value);
    free(stacks->capacity);
    *stacks = (struct spase_stacks){0};
}
