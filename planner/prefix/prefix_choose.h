/*
 * The choice of kept outputs: by GLPK, and by a greedy rule where it is cut short.
 *
 * The program has, for job i and its first l layers, a(i,l): their output is at hand; b(i,l): layer l is computed; and
 * for a group g c(g,l): the output is kept. All are 0 or 1.
 *
 *     min   sum over i, l  samples(i) (own_s(l) b(i,l) + load_s(l) (a(i,l) - b(i,l)))
 *         + sum over g, l  rows(g) make_s(l) c(g,l)
 *     a(i, most(i)) = 1
 *     b(i,l) <= a(i,l)           b(i,l) <= a(i,l-1)       one row for each input
 *     a(i,l) - b(i,l) <= c(g(i),l), 0 for l = 1
 *     sum over g, l  rows(g) bytes(l) c(g,l) <= budget
 *
 * Its answer is a choice, which is priced again and compared with the greedy one: take the choice for one job, or for
 * all of a group that freeze as much, that saves most, until none saves anything or fits.
 *
 * Source: as prefix_problem.h. Its released program sums the rows of a layer's inputs, which is weaker.
 */
#ifndef SPILLWAY_PLANNER_PREFIX_PREFIX_CHOOSE_H
#define SPILLWAY_PLANNER_PREFIX_PREFIX_CHOOSE_H

#include "planner/prefix/prefix_problem.h"

struct prefix_choice {
    uint64_t *layers;  /* by job; 0: it computes all */
    double seconds, without_s, bytes;
    double bound_s;    /* no choice takes less, by GLPK within its tolerances; 0: it was cut short */
    bool by_program;   /* GLPK found it, else the greedy rule */
    bool proven;       /* GLPK reports that no choice takes less */
    char failure[160]; /* why GLPK did not answer; empty: it did */
};

/* Chooses, with `limit_s` for GLPK (0: the greedy rule only). The choice is in the arena. Errors: STATUS_NO_MEMORY;
 * a solver's failure is no error. */
MUST_CHECK enum status prefix_choose(const struct prefix_problem *problem, double limit_s, struct arena *arena,
                                     struct prefix_choice *out, struct error *err);

/* Fills layers[] by the greedy rule. */
MUST_CHECK enum status prefix_choose_greedily(const struct prefix_problem *problem, struct arena *arena,
                                              uint64_t *layers, struct error *err);

#endif
