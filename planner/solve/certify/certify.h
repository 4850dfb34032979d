/*
 * A schedule with a certificate of its quality.
 *
 * The steps, each only when the earlier ones left a gap: lower bounds (instance_bound.h); list schedules, beams and a
 * large-neighbourhood search (schedule_search.h), which stop when they meet the bound; branch and bound
 * (branch_bound.h) and, for makespans, label setting (label_setting.h); a MILP solver on a formulation (formulation.h).
 * The schedule has passed timetable_check(), and the certificate names the proof's origin. The proof is about
 * instance.h's model and the given durations.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_CERTIFY_CERTIFY_H
#define SPILLWAY_PLANNER_SOLVE_CERTIFY_CERTIFY_H

#include "planner/solve/bounds/instance_bound.h"
#include "planner/solve/instance/timetable.h"

struct certify_options {
    uint64_t seed;
    uint32_t iterations;   /* iterations of the search; 0: 400 */
    uint32_t searches;      /* searches at the same time (search_portfolio.h), at most 16; 0: 1 */
    uint64_t nodes_max;    /* nodes of branch and bound; 0: no limit */
    bool early;            /* a short search and a short branch and bound first: enough for small instances */
    /* Time limits. The unused time of a step goes to the next one. HUGE_VAL: unlimited. */
    double search_limit_s; /* for bounds and search; 0: one list schedule */
    double exact_limit_s;  /* for branch and bound; 0: it is skipped */
    const char *solver;    /* "glpk", "cbc", "highs", a file (planner/solve/milp/milp.h); NULL: none */
    double solver_limit_s;
};

/* Divides `limit_s` among the steps that are useful for this instance (options->solver is set), and asks for an early
 * proof. */
void certify_divide(const struct instance *in, double limit_s, struct certify_options *options);

/* Returns the end of a step of `limit_s` that follows a step with the end `before_s`. */
double certify_step_end_s(double before_s, double limit_s);

enum certificate_status {
    CERTIFICATE_BOUND,    /* optimal: the value equals a lower bound */
    CERTIFICATE_SEARCHED, /* optimal: branch and bound found no better schedule anywhere */
    CERTIFICATE_SOLVED,   /* optimal by the solver, within its floating-point tolerances */
    CERTIFICATE_GAP       /* within value - bound of the optimum */
};

struct certificate {
    enum certificate_status status;
    int64_t value;          /* value of the timetable */
    int64_t searched_value; /* value that the search found before branch and bound */
    int64_t bound;
    enum instance_bound_kind proved_by; /* kind of the bound; CERTIFICATE_SEARCHED: branch and bound */
    uint32_t iterations;
    uint64_t nodes;
    double bound_s, search_s, exact_s, solver_s;
    const char *solver;     /* the solver asked; borrowed from the options; NULL: none */
    char formulation[24];   /* the formulation given to the solver */
    struct error solver_error; /* why the solver failed; the schedule is valid all the same */
};

/* Keeps to the time limits, except for one list schedule, which is always made; deterministic without limits. Errors:
 * STATUS_CHECK would be a fault of this program. */
MUST_CHECK enum status certify(const struct instance *in, const struct certify_options *options,
                               struct timetable *timetable, struct certificate *out,
                               struct error *err);

/* Returns the excess of the value over the bound, relative to the bound; 0 when both are 0. */
double certificate_gap(const struct certificate *certificate);

/* The proof of a value, in the same form for each kind of problem. */
struct certificate_claim {
    enum certificate_status status;
    const char *objective;        /* "makespan" */
    int64_t value, bound;
    const char *bound_name;       /* "area bound" */
    const char *search, *unit;    /* the complete search, and the unit of its work: "branch and bound", "nodes" */
    uint64_t work;
    const char *solver, *program; /* the solver, and the program that it was given: "fluid program" */
};

/* Returns the share of the bound by which the value exceeds it; 0 when both are 0. */
double certificate_claim_gap(int64_t value, int64_t bound);

/* Writes the claim as a sentence ("makespan 1326 is optimal: it equals the area bound"). Returns `text`. */
enum { CERTIFICATE_TEXT_BYTES = 200 };
const char *certificate_claim_text(const struct certificate_claim *claim, char text[CERTIFICATE_TEXT_BYTES]);

/* Writes one sentence ("makespan 1326 is optimal: it equals the area bound") into `text` and returns it. */
const char *certificate_text(const struct instance *in, const struct certificate *certificate,
                             char text[CERTIFICATE_TEXT_BYTES]);

#endif
