#include "planner/prefix/prefix_choose.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/try.h"
#include "planner/solve/milp/milp.h"

/* --- greedily ----------------------------------------------------------------------------------- */

/* Lets a job, or all jobs of its group that freeze at least so much, begin after `l` layers. */
static void set(const struct prefix_problem *p, uint32_t job, uint64_t l, bool group, uint64_t *layers)
{
    for (uint32_t j = 0; j < p->job_count; j++)
        if (j == job || (group && p->jobs[j].group == p->jobs[job].group && p->jobs[j].most >= l)) layers[j] = l;
}

/* Takes the best step from layers[]. Returns false if there is none. `trial`, `best`: scratch. */
static bool step(const struct prefix_problem *p, uint64_t *layers, uint64_t *trial, uint64_t *best)
{
    const size_t bytes = p->job_count * sizeof *layers;
    double least_s = prefix_seconds(p, layers);
    bool found = false;
    for (uint32_t j = 0; j < p->job_count; j++) {
        for (uint64_t l = 2; p->jobs[j].group != PREFIX_NONE && l <= p->jobs[j].most; l++)
            for (uint32_t group = 0; group < 2; group++) {
                memcpy(trial, layers, bytes);
                set(p, j, l, group, trial);
                const double seconds = prefix_seconds(p, trial);
                if (!(seconds < least_s) || prefix_bytes(p, trial) > p->budget_bytes) continue;
                least_s = seconds;
                found = true;
                memcpy(best, trial, bytes);
            }
    }
    if (found) memcpy(layers, best, bytes);
    return found;
}

enum status prefix_choose_greedily(const struct prefix_problem *p, struct arena *arena, uint64_t *layers,
                                   struct error *err)
{
    uint64_t *trial, *best;
    TRY(ARENA_NEW(arena, p->job_count, trial, err));
    TRY(ARENA_NEW(arena, p->job_count, best, err));
    memset(layers, 0, p->job_count * sizeof *layers);
    while (step(p, layers, trial, best)) {}
    return STATUS_OK;
}

/* --- by GLPK ------------------------------------------------------------------------------------ */

struct program {
    const struct prefix_problem *p;
    struct milp *milp;
    uint32_t *kept;     /* by group: the column of c(g,1) */
    uint32_t *at_hand;  /* by job: the column of a(i,1), after which come b(i,1), a(i,2), ... */
};

static uint32_t at_hand(const struct program *m, uint32_t job, uint64_t l)
{
    return m->at_hand[job] + 2 * (uint32_t)(l - 1);
}
static uint32_t computed(const struct program *m, uint32_t job, uint64_t l) { return at_hand(m, job, l) + 1; }

static void add_columns(struct program *m)
{
    const struct prefix_problem *p = m->p;
    for (uint32_t g = 0; g < p->group_count; g++) {
        const struct prefix_group *group = &p->groups[g];
        m->kept[g] = milp_column_count(m->milp);
        for (uint64_t l = 1; l <= group->most; l++)
            (void)milp_column(m->milp, 0, l > 1 ? 1 : 0,
                              group->rows * group->layers[l].make_s, true, "c_%u_%u", g, (unsigned)l);
    }
    for (uint32_t j = 0; j < p->job_count; j++) {
        const struct prefix_job *job = &p->jobs[j];
        if (job->group == PREFIX_NONE) continue;
        const struct prefix_layer *layers = p->groups[job->group].layers;
        m->at_hand[j] = milp_column_count(m->milp);
        for (uint64_t l = 1; l <= job->most; l++) {
            const double load_s = job->samples * layers[l].load_s;
            const double own_s = job->samples * (layers[l].compute_s - (l > 1 ? layers[l - 1].compute_s : 0));
            (void)milp_column(m->milp, l == job->most ? 1 : 0, 1, load_s, true, "a_%u_%u", j, (unsigned)l);
            (void)milp_column(m->milp, 0, 1, own_s - load_s, true, "b_%u_%u", j, (unsigned)l);
        }
    }
}

static void add_rows(struct program *m)
{
    const struct prefix_problem *p = m->p;
    for (uint32_t j = 0; j < p->job_count; j++)
        for (uint64_t l = 1; p->jobs[j].group != PREFIX_NONE && l <= p->jobs[j].most; l++) {
            milp_term(m->milp, computed(m, j, l), 1);
            milp_term(m->milp, at_hand(m, j, l), -1);
            milp_row(m->milp, -HUGE_VAL, 0, "own_%u_%u", j, (unsigned)l);
            if (l > 1) {
                milp_term(m->milp, computed(m, j, l), 1);
                milp_term(m->milp, at_hand(m, j, l - 1), -1);
                milp_row(m->milp, -HUGE_VAL, 0, "input_%u_%u", j, (unsigned)l);
            }
            milp_term(m->milp, at_hand(m, j, l), 1);
            milp_term(m->milp, computed(m, j, l), -1);
            milp_term(m->milp, m->kept[p->jobs[j].group] + (uint32_t)(l - 1), -1);
            milp_row(m->milp, -HUGE_VAL, 0, "load_%u_%u", j, (unsigned)l);
        }
    for (uint32_t g = 0; g < p->group_count; g++)
        for (uint64_t l = 2; l <= p->groups[g].most; l++) /* in shares of the budget */
            milp_term(m->milp, m->kept[g] + (uint32_t)(l - 1),
                      p->groups[g].rows * p->groups[g].layers[l].bytes / p->budget_bytes);
    milp_row(m->milp, -HUGE_VAL, 1, "budget");
}

/* Reads the layers after which each job begins: the highest that are loaded. */
static void read(const struct program *m, const double *x, uint64_t *layers)
{
    for (uint32_t j = 0; j < m->p->job_count; j++) {
        layers[j] = 0;
        for (uint64_t l = m->p->jobs[j].most; m->p->jobs[j].group != PREFIX_NONE && l > 1 && layers[j] == 0; l--)
            if (x[at_hand(m, j, l)] > 0.5 && x[computed(m, j, l)] < 0.5) layers[j] = l;
    }
}

/* Takes the program's answer if it is better and within the budget. */
static void take(const struct program *m, const struct milp_result *result, uint64_t *layers,
                 struct prefix_choice *out)
{
    out->proven = result->status == MILP_OPTIMAL && result->found;
    if (result->bounded || out->proven) out->bound_s = out->proven ? result->value : result->bound;
    if (!result->found) return;
    read(m, result->x, layers);
    const double seconds = prefix_seconds(m->p, layers);
    if (prefix_bytes(m->p, layers) > m->p->budget_bytes || seconds > out->seconds) return;
    memcpy(out->layers, layers, m->p->job_count * sizeof *layers);
    out->seconds = seconds;
    out->by_program = true;
}

static enum status solve(const struct prefix_problem *p, double limit_s, struct arena *arena,
                         struct prefix_choice *out, struct error *err)
{
    struct program m = {.p = p};
    struct milp_result result = {0};
    struct error failure = {0};
    uint64_t *layers;
    TRY(ARENA_NEW(arena, p->job_count, layers, err));
    TRY(ARENA_NEW(arena, p->job_count, m.kept, err));
    TRY(ARENA_NEW(arena, p->job_count, m.at_hand, err));
    m.milp = milp_create("kept outputs");
    if (!m.milp) return error_memory(err, "a program", 1);
    add_columns(&m);
    add_rows(&m);
    const struct milp_options options = {.limit_s = limit_s, .cuts = true};
    if (milp_solve(m.milp, &options, &result, &failure))
        snprintf(out->failure, sizeof out->failure, "%.150s", failure.text);
    else take(&m, &result, layers, out);
    free(result.x);
    milp_destroy(m.milp);
    return STATUS_OK;
}

enum status prefix_choose(const struct prefix_problem *p, double limit_s, struct arena *arena,
                          struct prefix_choice *out, struct error *err)
{
    *out = (struct prefix_choice){0};
    TRY(ARENA_NEW(arena, p->job_count, out->layers, err));
    out->seconds = out->without_s = prefix_seconds(p, out->layers);
    if (p->group_count == 0 || !(p->budget_bytes > 0)) return STATUS_OK;
    TRY(prefix_choose_greedily(p, arena, out->layers, err));
    out->seconds = prefix_seconds(p, out->layers);
    if (limit_s > 0) TRY(solve(p, limit_s, arena, out, err));
    out->bytes = prefix_bytes(p, out->layers);
    return STATUS_OK;
}
