/*
 * Shard schedules as mixed-integer programs.
 *
 *   disjunctive   which device has which task, which of two tasks ends before the other starts. For
 *                 instances without copies. Tight windows, no blind big M, equal devices told apart
 *                 by the first tasks alone
 *   adjacency     which task directly follows which on a device: for set-ups; devices have no number,
 *                 so there is no symmetry among them. Arcs that the assignment bound's reduced costs
 *                 exclude are left out
 *   time-indexed  "has started by t" for every task and tick, as a decision: is there a schedule that
 *                 ends by `limit`? Without copies; its size is tasks by ticks
 *
 * All of them ask for makespans of at most `limit`: with limit = best known value - 1 "infeasible"
 * proves the best known optimal, and every M is the limit's. One class of devices, makespan, no
 * bridge. Columns and rows are named by job and task: s_2_5 is the start of task 5 of job 2.
 *
 * Source: the big-M free windows follow Applegate and Cook, "A computational study of the job-shop
 * scheduling problem", 1991; step variables Pritsker and Watters, 1968, and Sousa and Wolsey, 1992.
 */
#ifndef SPILLWAY_PLANNER_FORMULATION_H
#define SPILLWAY_PLANNER_FORMULATION_H

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

/* The kind to ask about schedules of at most `limit`: set-ups want arcs; without, few ticks steps of time. */
enum formulation_kind formulation_suitable(const struct instance *in, int64_t limit);

/*
 * `in` and `bounds` are borrowed. The caller frees it with formulation_destroy().
 * Errors: STATUS_INFEASIBLE when windows alone show that no schedule ends by `limit`;
 * STATUS_LIMIT for instances that the kind does not take, saying why; STATUS_NO_MEMORY.
 */
MUST_CHECK enum status formulation_create(const struct instance *in, const struct instance_bounds *bounds,
                                          enum formulation_kind kind, int64_t limit,
                                          struct formulation **out, struct error *err);
void formulation_destroy(struct formulation *formulation); /* NULL is fine */
const struct milp *formulation_milp(const struct formulation *formulation); /* borrowed */

/* The values of the columns for a schedule of at most `limit`: (columns), for milp_options.incumbent. */
MUST_CHECK enum status formulation_values(const struct formulation *formulation,
                                          const struct timetable *timetable, double *x,
                                          struct error *err);

/* The order of the schedule that a solution stands for. STATUS_CHECK when it stands for none. */
MUST_CHECK enum status formulation_steps(const struct formulation *formulation, const double *x,
                                         struct dispatch_step *steps, struct error *err);

struct formulation_result {
    bool proven;      /* the solver reports that nothing better exists */
    enum milp_status status;
    int64_t bound;    /* what the solver's bound says of the makespan; 0: nothing. At most the limit + 1,
                         for of longer schedules the program knows nothing */
    double seconds;
};

/*
 * Better the best known schedule (*value, steps[]) or have it proven: the formulation with limit
 * *value - 1, then the answer rebuilt and checked by timetable_check(). After an improvement of a
 * decision problem it is asked again while time lasts.
 * Errors: those of formulation_create() but STATUS_INFEASIBLE (that is a proof), and of milp_solve();
 * *value and steps[] are valid after all of them.
 */
MUST_CHECK enum status formulation_solve(const struct instance *in, const struct instance_bounds *bounds,
                                         enum formulation_kind kind, const char *solver, double limit_s,
                                         struct dispatch_step *steps, int64_t *value,
                                         struct formulation_result *result, struct error *err);

#endif
