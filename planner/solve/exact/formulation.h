/*
 * Shard schedules as mixed-integer programs.
 *
 *     disjunctive   which device has which task, and which of two tasks ends before the other starts. For
 *                   instances without copies. Tight windows, no blind big M; only the first tasks tell equal
 *                   devices apart
 *     adjacency     which task directly follows which on a device: for set-ups. Devices have no number, so
 *                   there is no symmetry among them. Arcs that the assignment bound's reduced costs exclude
 *                   are left out
 *     time-indexed  "has started by t" for every task and tick, as a decision: is there a schedule that
 *                   ends by `limit`? Without copies; its size is tasks by ticks
 *
 * All ask for makespans of at most `limit`. With limit = best known value - 1, "infeasible" proves that optimal, and
 * every M comes from the limit. One class of devices, makespan, no bridge. Columns and rows are named by job and task:
 * s_2_5 is the start of task 5 of job 2.
 *
 * Source: the big-M free windows follow Applegate and Cook, "A computational study of the job-shop scheduling problem",
 * 1991; step variables Pritsker and Watters, 1968, and Sousa and Wolsey, 1992.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_EXACT_FORMULATION_H
#define SPILLWAY_PLANNER_SOLVE_EXACT_FORMULATION_H

#include "planner/solve/bounds/instance_bound.h"
#include "planner/solve/instance/timetable.h"
#include "planner/solve/milp/milp.h"

enum formulation_kind {
    FORMULATION_DISJUNCTIVE,
    FORMULATION_ADJACENCY,
    FORMULATION_TIME_INDEXED,
    FORMULATION_COUNT
};
extern const char *const formulation_names[FORMULATION_COUNT];

enum { FORMULATION_TASKS_MAX = 128, FORMULATION_CELLS_MAX = 400000 /* tasks by ticks */ };

struct formulation; /* opaque */

/* Returns the kind that suits schedules of at most `limit`: adjacency for set-ups, else time-indexed for few ticks. */
enum formulation_kind formulation_suitable(const struct instance *in, int64_t limit);

/*
 * `in` and `bounds` are borrowed. The caller frees it with formulation_destroy(). Errors: STATUS_INFEASIBLE when tasks'
 * windows already exclude `limit`; STATUS_LIMIT, with the reason, for instances that the kind does not take.
 */
MUST_CHECK enum status formulation_create(const struct instance *in, const struct instance_bounds *bounds,
                                          enum formulation_kind kind, int64_t limit,
                                          struct formulation **out, struct error *err);
void formulation_destroy(struct formulation *formulation); /* NULL is fine */
const struct milp *formulation_milp(const struct formulation *formulation); /* borrowed */

/* Computes the columns' values for a schedule of at most `limit`, as milp_options.incumbent. x: (columns). */
MUST_CHECK enum status formulation_values(const struct formulation *formulation,
                                          const struct timetable *timetable, double *x,
                                          struct error *err);

/* Computes the order of the schedule of a solution. Errors: STATUS_CHECK when the solution is no schedule. */
MUST_CHECK enum status formulation_steps(const struct formulation *formulation, const double *x,
                                         struct dispatch_step *steps, struct error *err);

struct formulation_result {
    bool proven;      /* the solver reports that no better schedule exists */
    enum milp_status status;
    int64_t bound;    /* the solver's lower bound on the makespan; 0: none. At most the limit + 1, because the program
                         knows nothing about longer schedules */
    double seconds;
};

/*
 * Improves the best known schedule (*value, steps[]) or proves it optimal: solves with limit *value - 1, then rebuilds
 * the schedule and checks it by timetable_check(). After an improvement of a decision problem it asks again while time
 * lasts. Errors: as formulation_create() except STATUS_INFEASIBLE (a proof), and of milp_solve(). *value and steps[]
 * are valid after every error.
 */
MUST_CHECK enum status formulation_solve(const struct instance *in, const struct instance_bounds *bounds,
                                         enum formulation_kind kind, const char *solver, double limit_s,
                                         struct dispatch_step *steps, int64_t *value,
                                         struct formulation_result *result, struct error *err);

#endif
