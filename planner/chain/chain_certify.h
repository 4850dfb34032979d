/*
 * A chain's schedule with a proof of how good it is.
 *
 * The steps, each only while time is left and those before left a gap: the rules of others
 * (chain_rules.h), the best of which is bettered by local search; prices from the duals of the fluid
 * program (chain_bound.h); narrow searches over states (chain_search.h), and more prices where their
 * states are; the fluid program by GLPK or another solver, and whole copies for what it recomputes, by
 * annealing (chain_anneal.h), once more for each layer that may be the last one swapped, which often take
 * no longer; annealing of all choices; the other sets of
 * layers whose recomputation the fluid program, as GLPK sees it, leaves a chance, first those near its
 * optimum and annealed, then all, and searched until nothing better can be in them; wide searches.
 *
 * What is returned has passed chain_check(). "Optimal" is said of the model of chain.h, whole copies
 * and whole ticks, and of the durations given: no schedule by those rules is shorter. Nothing is said
 * about what a run will really take.
 */
#ifndef SPILLWAY_PLANNER_CHAIN_CERTIFY_H
#define SPILLWAY_PLANNER_CHAIN_CERTIFY_H

#include "planner/chain/chain_rules.h"
#include "planner/solve/certify/certify.h"

struct chain_certify_options {
    double limit_s;        /* of everything; at most 0: the first rule that fits is all there is */
    uint32_t width_max;    /* of the search; 0: no limit but memory */
    size_t memory_bytes;   /* of the search; 0: 256 MiB */
    const char *solver;    /* of the fluid program (planner/solve/milp/milp.h); NULL: glpk, which alone lists sets */
};

struct chain_certificate {
    enum certificate_status status; /* CERTIFICATE_SOLVED: with what the solver says of the fluid program */
    int64_t value, bound;           /* ticks */
    const char *proved_by;          /* whose the bound is */
    int64_t rule_values[CHAIN_RULES];
    bool rule_fits[CHAIN_RULES];    /* rule_values is meaningful */
    int64_t price_bound;            /* by the prices alone */
    int64_t fluid_bound;            /* by the solver on the fluid program; 0: not told */
    bool fluid_proven;              /* and that is its optimum */
    uint32_t sets;          /* of recomputed layers that the fluid program leaves below the value; 0: not
                               listed, or not all of them */
    uint64_t states, nodes;         /* of the search; of the solver */
    const char *solver;             /* that was asked; borrowed from the options; NULL: none */
    double search_s, seconds;       /* of the search over states; of everything */
    struct error solver_error;      /* why it was of no use; the schedule is good all the same */
};

/*
 * *schedule is zeroed before; release it with chain_schedule_release(). Deterministic where no limit
 * of time is met. Errors: STATUS_NO_MEMORY; STATUS_CHECK would be a mistake of ours.
 */
MUST_CHECK enum status chain_certify(const struct chain *chain, const struct chain_certify_options *options,
                                     struct chain_schedule *schedule, struct chain_certificate *out,
                                     struct error *err);

/* Share of the bound that the value is above it. */
double chain_certificate_gap(const struct chain_certificate *certificate);

/* One sentence; `text` is returned. */
const char *chain_certificate_text(const struct chain_certificate *certificate,
                                   char text[CERTIFICATE_TEXT_BYTES]);

#endif
