/*
 * A schedule with a certificate of its quality.
 *
 * The steps, each only when the earlier ones left a gap: lower bounds (spase_bound.h); rules and annealing
 * (spase_search.h), which stop when they meet the bound; refutation of makespans below the best by depth-first search
 * (spase_branch.h), halfway first; a MILP solver on the allotment and the flow formulation (spase_formulation.h). The
 * schedule has passed spase_check(), and the certificate names the proof's origin.
 */
#ifndef SPILLWAY_PLANNER_SATURN_SPASE_SPASE_CERTIFY_H
#define SPILLWAY_PLANNER_SATURN_SPASE_SPASE_CERTIFY_H

#include "planner/saturn/spase/spase_schedule.h"
#include "planner/solve/certify/certify.h"

struct spase_certify_options {
    uint64_t seed;
    uint64_t iterations;   /* iterations of the search; 0: 200 000 */
    uint64_t nodes_max;    /* nodes of the depth-first search, for one makespan; 0: no limit */
    bool early;            /* a short search and a short depth-first search first: enough for small instances */
    /* Unused time goes to the next step. HUGE_VAL: unlimited. */
    double search_limit_s; /* for bounds and search; 0: one list */
    double exact_limit_s;  /* for the depth-first search; 0: it is skipped */
    const char *solver;    /* "glpk", "cbc", "highs", a file (planner/solve/milp/milp.h); NULL: none */
    double solver_limit_s;
};

/* Divides `limit_s` among useful steps (options->solver is set), and asks for an early proof. */
void spase_certify_divide(const struct spase *in, double limit_s, struct spase_certify_options *options);

enum spase_proof {
    SPASE_PROOF_LONGEST, /* as spase_bound_kind */
    SPASE_PROOF_AREA,
    SPASE_PROOF_SCALED,
    SPASE_PROOF_REFUTED,   /* the depth-first search found no schedule below */
    SPASE_PROOF_ALLOTMENT, /* the solver's bound on the allotment, within its tolerances */
    SPASE_PROOF_FLOW,      /* the solver's bound on the flow formulation, within its tolerances */
    SPASE_PROOF_COUNT
};
extern const char *const spase_proof_names[SPASE_PROOF_COUNT];

struct spase_certificate {
    enum certificate_status status;
    int64_t value;          /* makespan of the schedule */
    int64_t searched_value; /* value that the search found before the exact methods */
    int64_t bound;
    enum spase_proof proved_by; /* kind of the bound */
    uint64_t iterations, nodes, solver_nodes;
    double bound_s, search_s, exact_s, solver_s;
    const char *solver;        /* the solver asked; borrowed from the options; NULL: none */
    struct error solver_error; /* why the solver failed; the schedule is valid all the same */
};

/* Keeps to the time limits, except for one list, which is always made; deterministic without limits. Errors:
 * STATUS_CHECK would be a fault of this program. */
MUST_CHECK enum status spase_certify(const struct spase *in, const struct spase_certify_options *options,
                                     struct spase_schedule *schedule, struct spase_certificate *out,
                                     struct error *err);

/* Relative to the bound. */
double spase_certificate_gap(const struct spase_certificate *certificate);

/* Writes one sentence into `text` and returns it. */
const char *spase_certificate_text(const struct spase_certificate *certificate,
                                   char text[CERTIFICATE_TEXT_BYTES]);

#endif
