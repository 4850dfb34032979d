/*
 * A schedule of an instance with a proof of how good it is.
 *
 * The steps, each only if those before it left a gap: lower bounds (instance_bound.h); list
 * schedules, beams and a large-neighbourhood search (schedule_search.h), which stop where they meet
 * the bound; branch and bound, in depth (branch_bound.h) and, for makespans, by label setting (label_setting.h); a MILP
 * solver on a formulation (formulation.h). What is returned has
 * passed timetable_check(), and the certificate says who proved what. It is about the model of
 * instance.h and the durations given: nothing is said about what a run will really take.
 */
#ifndef SPILLWAY_PLANNER_CERTIFY_H
#define SPILLWAY_PLANNER_CERTIFY_H

#include "planner/solve/bounds/instance_bound.h"
#include "planner/solve/instance/timetable.h"

struct certify_options {
    uint64_t seed;
    uint32_t iterations;   /* of the search; 0: 400 */
    uint32_t searches;      /* searches at the same time (search_portfolio.h), at most 16; 0: 1 */
    uint64_t nodes_max;    /* of branch and bound; 0: no limit */
    bool early;            /* a little of search and branch and bound first: enough for small instances */
    /* What one of a bounded time leaves over goes to the next. HUGE_VAL: unbounded. */
    double search_limit_s; /* of bounds and search; 0: one list schedule */
    double exact_limit_s;  /* of branch and bound; 0: it is not tried */
    const char *solver;    /* "glpk", "cbc", "highs", a file (planner/solve/milp/milp.h); NULL: none */
    double solver_limit_s;
};

/* Divide `limit_s` among those that can do something for this instance (options->solver set), and ask
 * for an early proof. */
void certify_divide(const struct instance *in, double limit_s, struct certify_options *options);

enum certificate_status {
    CERTIFICATE_BOUND,    /* optimal: the value is a lower bound's */
    CERTIFICATE_SEARCHED, /* optimal: nothing better is left, branch and bound looked everywhere */
    CERTIFICATE_SOLVED,   /* optimal, says the solver, within its floating-point tolerances */
    CERTIFICATE_GAP       /* within value - bound of the optimum */
};

struct certificate {
    enum certificate_status status;
    int64_t value;          /* of the timetable */
    int64_t searched_value; /* what the search had found before branch and bound */
    int64_t bound;
    enum instance_bound_kind proved_by; /* whose the bound is; CERTIFICATE_SEARCHED: branch and bound */
    uint32_t iterations;
    uint64_t nodes;
    double bound_s, search_s, exact_s, solver_s;
    const char *solver;     /* that was asked; borrowed from the options; NULL: none */
    char formulation[24];   /* that it was given */
    struct error solver_error; /* why it was of no use; the schedule is good all the same */
};

/*
 * *timetable is zeroed before; release it with timetable_release(). Limits of time are kept to but
 * for one list schedule, which is always made; deterministic without them.
 * Errors: STATUS_NO_MEMORY; STATUS_CHECK would be a mistake of ours.
 */
MUST_CHECK enum status certify(const struct instance *in, const struct certify_options *options,
                               struct timetable *timetable, struct certificate *out,
                               struct error *err);

/* Share of the bound that the value is above it; 0 when both are 0. */
double certificate_gap(const struct certificate *certificate);

/* One sentence ("makespan 1326 is optimal: it equals the area bound"); `text` is returned. */
enum { CERTIFICATE_TEXT_BYTES = 200 };
const char *certificate_text(const struct instance *in, const struct certificate *certificate,
                             char text[CERTIFICATE_TEXT_BYTES]);

#endif
