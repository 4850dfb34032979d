/*
 * A schedule of a SPASE instance with a proof of how good it is.
 *
 * The steps, each only if those before it left a gap: lower bounds (spase_bound.h); rules and annealing
 * (spase_search.h), which stop where they meet the bound; refutation of makespans below the best by
 * depth-first search (spase_branch.h), halfway first; a MILP solver on the allotment
 * and the flow formulation (spase_formulation.h). What is returned has passed spase_check(), and the
 * certificate says who proved what. It is about the run times given: nothing is said about what a run
 * will really take.
 */
#ifndef SPILLWAY_PLANNER_SPASE_CERTIFY_H
#define SPILLWAY_PLANNER_SPASE_CERTIFY_H

#include "planner/saturn/spase/spase_schedule.h"
#include "planner/solve/certify/certify.h"

struct spase_certify_options {
    uint64_t seed;
    uint64_t iterations;   /* of the search; 0: 200 000 */
    uint64_t nodes_max;    /* of the depth-first search, for one makespan; 0: no limit */
    bool early;            /* a little of search and depth-first search first: enough for small instances */
    /* What one of a bounded time leaves over goes to the next. HUGE_VAL: unbounded. */
    double search_limit_s; /* of bounds and search; 0: one list */
    double exact_limit_s;  /* of the depth-first search; 0: it is not tried */
    const char *solver;    /* "glpk", "cbc", "highs", a file (planner/solve/milp/milp.h); NULL: none */
    double solver_limit_s;
};

/* Divide `limit_s` among those that can do something for this instance (options->solver set), and ask
 * for an early proof. */
void spase_certify_divide(const struct spase *in, double limit_s, struct spase_certify_options *options);

enum spase_proof {
    SPASE_PROOF_LONGEST, /* as spase_bound_kind */
    SPASE_PROOF_AREA,
    SPASE_PROOF_SCALED,
    SPASE_PROOF_REFUTED,   /* the depth-first search found nothing below */
    SPASE_PROOF_ALLOTMENT, /* the solver's bound on the allotment, within its tolerances */
    SPASE_PROOF_FLOW,      /* the solver's bound on the flow formulation, within its tolerances */
    SPASE_PROOF_COUNT
};
extern const char *const spase_proof_names[SPASE_PROOF_COUNT];

struct spase_certificate {
    enum certificate_status status;
    int64_t value;          /* makespan of the schedule */
    int64_t searched_value; /* what the search had found before the exact methods */
    int64_t bound;
    enum spase_proof proved_by; /* whose the bound is */
    uint64_t iterations, nodes, solver_nodes;
    double bound_s, search_s, exact_s, solver_s;
    const char *solver;        /* that was asked; borrowed from the options; NULL: none */
    struct error solver_error; /* why it was of no use; the schedule is good all the same */
};

/*
 * *schedule is zeroed before; release it with spase_schedule_release(). Limits of time are kept to but
 * for one list, which is always made; deterministic without them.
 * Errors: STATUS_NO_MEMORY; STATUS_CHECK would be a mistake of ours.
 */
MUST_CHECK enum status spase_certify(const struct spase *in, const struct spase_certify_options *options,
                                     struct spase_schedule *schedule, struct spase_certificate *out,
                                     struct error *err);

/* Share of the bound that the value is above it. */
double spase_certificate_gap(const struct spase_certificate *certificate);

/* One sentence; `text` is returned. */
const char *spase_certificate_text(const struct spase_certificate *certificate,
                                   char text[CERTIFICATE_TEXT_BYTES]);

#endif
