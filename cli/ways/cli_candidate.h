/* Plans to choose from: each made and simulated, the best so far kept. */
#ifndef SPILLWAY_CLI_CANDIDATE_H
#define SPILLWAY_CLI_CANDIDATE_H

#include "cli/common/cli.h"
#include "cli/common/cli_machine.h"
#include "cli/common/cli_parallel.h"
#include "cli/ways/cli_outcome.h"
#include "cli/ways/cli_predict.h"
#include "planner/saturn/saturn.h"
#include "planner/strategy/planner.h"
#include "planner/swap/swap.h"

/* Where plans are made from. planner_plan() takes jobs and machine over, so each reads both anew. */
struct cli_source {
    const char *jobs_path;
    const struct json_input *jobs; /* borrowed; what is there, where it can be read but once; else NULL */
    struct cli_machine machine;
    struct cli_parallel parallel;
    const struct parallel *spread; /* borrowed; all jobs run like this over devices; NULL: as the jobs say */
    double shortened; /* jobs have this share of their minibatches, two at least; 0: all of them */
    uint64_t order; /* a seed by which the jobs are put in another order; 0: as they stand */
    bool contained; /* this process is a child with limits: a policy of the user's plans in it */
};

/* A plan and what the simulator says of it. */
struct cli_candidate {
    struct plan plan;
    struct cli_prediction prediction;
    struct saturn_report saturn; /* `by_saturn` */
    bool by_saturn;
    struct swap_report swap; /* no jobs: activations are not swapped layer by layer */
};

/* The jobs, as they stand there. Zeroed struct in; release it also after an error. */
MUST_CHECK enum status cli_source_jobs(const struct cli_source *source, struct job_set *out, struct error *err);

/* The plan alone. Zeroed struct in; release it also after an error. */
MUST_CHECK enum status cli_candidate_plan(const struct cli_source *source, const struct planner_options *options,
                                          struct cli_candidate *out, struct error *err);

/* And what is simulated. */
MUST_CHECK enum status cli_candidate_make(const struct cli_source *source,
                                          const struct planner_options *options,
                                          struct cli_candidate *out, struct error *err);
void cli_candidate_release(struct cli_candidate *candidate);

/* The plans that were tried; `kept` is the candidate of outcomes[best]: of plans by simulated makespan, the first of equal ones.
 * Zeroed it is empty. */
struct cli_field {
    struct cli_policy_outcome outcomes[CLI_POLICIES_MAX];
    size_t count, best;
    struct cli_candidate kept;
    bool any;
    bool runnable_first; /* plans that `run` can carry out come before all others, however fast */
    struct planner_search search; /* of all that was tried */
};

/*
 * Make a candidate and keep it if it is the best. One that does not fit is an outcome with its reason, and one that does
 * not go with the jobs or the options, too; when the field is full, nothing is done. `label`: the outcome's name, copied.
 * Errors: all but STATUS_INFEASIBLE, STATUS_BAD_INPUT and STATUS_LIMIT.
 */
MUST_CHECK enum status cli_field_try(struct cli_field *field, const struct cli_source *source,
                                     const struct planner_options *options, const char *label,
                                     struct error *err);

/* The same with a candidate that is made; takes it over. */
void cli_field_take(struct cli_field *field, struct cli_candidate *candidate, const char *label);

/* Notes why a way has no plan, where that concerns only this way (STATUS_INFEASIBLE, STATUS_BAD_INPUT, STATUS_LIMIT).
 * Errors: all others, as `why` has them. */
MUST_CHECK enum status cli_field_fail(struct cli_field *field, const char *label, const struct error *why,
                                      struct error *err);

/* An outcome without a plan. `status`: STATUS_OK where it was not tried. */
void cli_field_note(struct cli_field *field, const char *label, enum status status, const char *reason);

/* The best of another field, as an outcome of this one; takes it over, with what its searches did. Where it has none,
 * the first reason. */
void cli_field_adopt(struct cli_field *field, struct cli_field *other, const char *label);

/* Is there room for `label`, and no outcome of that name? */
bool cli_field_lacks(const struct cli_field *field, const char *label);

/* Plans first, by simulated makespan. */
void cli_field_sort(struct cli_field *field);

/* Errors: where there is no plan STATUS_INFEASIBLE with the first reason, or STATUS_BAD_INPUT where nothing is short of
 * room. */
MUST_CHECK enum status cli_field_check(const struct cli_field *field, struct error *err);
void cli_field_release(struct cli_field *field);

#endif
