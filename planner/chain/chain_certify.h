/*
 * A chain's schedule with a certificate of its quality.
 *
 * The steps, each only while time is left and a gap remains:
 *
 *     1  the rules of other systems (chain_rules.h); local search improves the best
 *     2  prices from the duals of the fluid program (chain_bound.h)
 *     3  narrow searches over states (chain_search.h), and more prices at their states
 *     4  the fluid program by GLPK or another solver; annealing (chain_anneal.h) finds whole copies for the layers
 *        that it recomputes, once more for each layer that may be the last one swapped. They often take no longer
 *     5  annealing of all choices
 *     6  the other sets of recomputed layers that the fluid program, as GLPK sees it, does not exclude: first the
 *        sets near its optimum, annealed; then all, searched until they cannot hold a better schedule
 *     7  wide searches
 *
 * The schedule has passed chain_check(). "Optimal" is about chain.h's model and the given durations.
 */
#ifndef SPILLWAY_PLANNER_CHAIN_CHAIN_CERTIFY_H
#define SPILLWAY_PLANNER_CHAIN_CHAIN_CERTIFY_H

#include "planner/chain/chain_rules.h"
#include "planner/solve/certify/certify.h"

struct chain_certify_options {
    double limit_s;        /* time limit of all steps; at most 0: the first rule that fits is the result */
    uint32_t width_max;    /* of the search; 0: limited by memory only */
    size_t memory_bytes;   /* of the search; 0: 256 MiB */
    const char *solver;    /* for the fluid program (planner/solve/milp/milp.h); NULL: glpk, the only one that lists
                              sets */
};

struct chain_certificate {
    enum certificate_status status; /* CERTIFICATE_SOLVED: the bound is the solver's, on the fluid program */
    int64_t value, bound;           /* ticks */
    const char *proved_by;          /* name of the bound */
    int64_t rule_values[CHAIN_RULES];
    bool rule_fits[CHAIN_RULES];    /* rule_values is meaningful */
    int64_t price_bound;            /* bound by prices */
    int64_t fluid_bound;            /* the solver's bound on the fluid program; 0: not known */
    bool fluid_proven;              /* fluid_bound is the program's optimum */
    uint32_t sets;          /* sets of recomputed layers with a fluid program below the value; 0: not listed, or not all
                               of them */
    uint64_t states, nodes;         /* states of the search; nodes of the solver */
    const char *solver;             /* the solver asked; borrowed from the options; NULL: none */
    double search_s, seconds;       /* time of the search over states; of all steps */
    struct error solver_error;      /* why the solver failed; the schedule is valid all the same */
};

/* Makes a certified schedule. Deterministic unless a time limit ends a step. Errors: STATUS_CHECK would be a fault
 * of this program. */
MUST_CHECK enum status chain_certify(const struct chain *chain, const struct chain_certify_options *options,
                                     struct chain_schedule *schedule, struct chain_certificate *out,
                                     struct error *err);

/* Returns the excess of the value over the bound, relative to the bound. */
double chain_certificate_gap(const struct chain_certificate *certificate);

/* Writes one sentence into `text` and returns it. */
const char *chain_certificate_text(const struct chain_certificate *certificate,
                                   char text[CERTIFICATE_TEXT_BYTES]);

#endif
