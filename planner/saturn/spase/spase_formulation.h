/*
 * SPASE as mixed-integer programs.
 *
 *     published   Saturn's own rows: a start for every device, node and job, one order binary for every ordered pair,
 *                 each row switched on and off by a blind big M. It serves for comparison: a solver's bound on it is
 *                 worthless (M times the integer tolerance is longer than most jobs), so only its schedules are used
 *     flow        one start for each job, "i ends before j starts" for each pair, and devices that pass from job to job
 *                 as a flow on each node; M is the limit. Asks for makespans of at most `limit`, with the scaled rows
 *                 of spase_bound.h: with limit = best known - 1 "infeasible" proves the best known optimal
 *     allotment   only the modes, under the rows that scale devices: a small program whose optimum is a lower bound
 *
 * Gangs that span nodes are in the allotment only. Names have job, mode (within the job) and node: x_2_5_0 is mode 5 of
 * job 2 on node 0.
 *
 * Source: Saturn's formulation as its paper (PVLDB 17(4), sec. 4) and its code state it, M = 1e8 as in the code; flow
 * after Artigues, Michelon and Reusser, "Insertion techniques for static and dynamic resource-constrained project
 * scheduling", 2003.
 */
#ifndef SPILLWAY_PLANNER_SATURN_SPASE_SPASE_FORMULATION_H
#define SPILLWAY_PLANNER_SATURN_SPASE_SPASE_FORMULATION_H

#include "planner/saturn/spase/spase_schedule.h"
#include "planner/solve/milp/milp.h"

enum spase_formulation_kind {
    SPASE_PUBLISHED,
    SPASE_FLOW,
    SPASE_ALLOTMENT,
    SPASE_FORMULATION_COUNT
};
extern const char *const spase_formulation_names[SPASE_FORMULATION_COUNT];

/* Longer times drown in the tolerances of solvers (flow: M is the limit). */
enum { SPASE_FORMULATION_TICKS_MAX = 10000000 };

struct spase_formulation; /* opaque */

/*
 * `in` is borrowed. `bound`: a lower bound on the makespan; `limit`: at least that, for flow only. The caller frees it
 * with spase_formulation_destroy(). Errors: STATUS_INFEASIBLE when a job has no mode that ends by `limit`; STATUS_LIMIT
 * for gangs that span nodes or, for flow, too long a limit. milp_solve() and the writers report too many entries.
 */
MUST_CHECK enum status spase_formulation_create(const struct spase *in, enum spase_formulation_kind kind,
                                                int64_t bound, int64_t limit,
                                                struct spase_formulation **out, struct error *err);
void spase_formulation_destroy(struct spase_formulation *formulation); /* NULL is fine */
const struct milp *spase_formulation_milp(const struct spase_formulation *formulation); /* borrowed */

struct spase_formulation_result {
    enum milp_status status;
    bool proven;    /* flow: the solver reports that no better schedule exists */
    int64_t bound;  /* flow, allotment: the solver's bound on the makespan; 0: none. At most the limit + 1, because
                     * longer schedules are unknown to the program */
    bool claims;    /* it had a solution, with the end `claimed` */
    double claimed;
    uint64_t nodes;
    double seconds;
};

/*
 * Improves the best known schedule (*value, steps[]): solves the program, then rebuilds and checks its answer, with its
 * real value. Errors: as spase_formulation_create() except STATUS_INFEASIBLE (a proof), and of milp_solve(); *value and
 * steps[] are valid after every error.
 */
MUST_CHECK enum status spase_formulation_solve(const struct spase *in, enum spase_formulation_kind kind,
                                               const char *solver, double limit_s, int64_t bound,
                                               struct spase_step *steps, int64_t *value,
                                               struct spase_formulation_result *result, struct error *err);

#endif
