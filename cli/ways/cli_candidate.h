/* Candidate plans: made, simulated, the best kept. */
#ifndef SPILLWAY_CLI_WAYS_CLI_CANDIDATE_H
#define SPILLWAY_CLI_WAYS_CLI_CANDIDATE_H

#include "cli/common/cli.h"
#include "cli/common/cli_machine.h"
#include "cli/common/cli_parallel.h"
#include "cli/ways/cli_outcome.h"
#include "cli/ways/cli_predict.h"
#include "planner/saturn/saturn.h"
#include "planner/strategy/planner.h"
#include "planner/swap/swap.h"

/* planner_plan() takes jobs and machine over, so each candidate has a copy of the jobs and reads the machine. */
struct cli_source {
    struct job_set *jobs; /* borrowed; candidates share what its jobs point to */
    struct cli_machine machine;
    struct cli_parallel parallel;
    const struct parallel *way; /* borrowed; for all jobs; NULL: the jobs' */
    double shortened; /* of their minibatches, at least two each; 0: all */
    uint64_t order; /* seed that shuffles jobs; 0: the file's order */
    bool contained; /* this is a limited child, where a user's policy plans */
};

/* With simulated times. */
struct cli_candidate {
    struct plan plan;
    struct cli_prediction prediction;
    struct saturn_report saturn; /* valid if by_saturn */
    bool by_saturn;
    struct swap_report swap; /* without jobs if no layers are swapped */
};

/* Reads a jobs file, which may be a pipe; its paths then begin in the current folder. `out` is zeroed before; the
 * caller releases it, also after an error. */
MUST_CHECK enum status cli_jobs_read(const char *path, struct job_set *out, struct error *err);

/* Makes the plan and simulates it. */
MUST_CHECK enum status cli_candidate_make(const struct cli_source *source,
                                          const struct planner_options *options,
                                          struct cli_candidate *out, struct error *err);
void cli_candidate_release(struct cli_candidate *candidate);

/* All outcomes. `kept` is outcomes[best]: the least simulated makespan, the first of equal ones. A zeroed field is
 * empty. */
struct cli_field {
    struct cli_policy_outcome outcomes[CLI_POLICIES_MAX];
    size_t count, best;
    struct cli_candidate kept;
    bool any;
    bool runnable_first; /* plans that `run` can carry out rank first */
    struct planner_search search; /* of all searches */
    struct planner_milp milp;     /* of the last candidate by policy milp */
};

/*
 * Makes a candidate and keeps the best. One that does not fit or suit becomes an outcome with its reason. Does nothing
 * when the field is full. `label` is copied. Errors: all except STATUS_INFEASIBLE, STATUS_BAD_INPUT and STATUS_LIMIT.
 */
MUST_CHECK enum status cli_field_try(struct cli_field *field, const struct cli_source *source,
                                     const struct planner_options *options, const char *label,
                                     struct error *err);

/* As cli_field_try(), but simulates only plans that end by limit_s by the planner's own clock; others become outcomes
 * that were not tried. */
MUST_CHECK enum status cli_field_try_within(struct cli_field *field, const struct cli_source *source,
                                            const struct planner_options *options, double limit_s, const char *label,
                                            struct error *err);

/* Adds a made candidate; takes it over. */
void cli_field_add(struct cli_field *field, struct cli_candidate *candidate, const char *label);

/* Adds a failure of only this way (STATUS_INFEASIBLE, STATUS_BAD_INPUT, STATUS_LIMIT). Errors: other statuses of
 * `why`. */
MUST_CHECK enum status cli_field_fail(struct cli_field *field, const char *label, const struct error *why,
                                      struct error *err);

/* Adds an outcome without a plan; STATUS_OK: not tried. */
void cli_field_note(struct cli_field *field, const char *label, enum status status, const char *reason);

/* Adds another field's best candidate, or its first reason, and its search counts; takes `other` over. */
void cli_field_adopt(struct cli_field *field, struct cli_field *other, const char *label);

/* Returns true if there is room for `label` and no such outcome. */
bool cli_field_lacks(const struct cli_field *field, const char *label);

/* Sorts plans first, by simulated makespan. */
void cli_field_sort(struct cli_field *field);

/* Checks that the field has a plan. Errors: STATUS_INFEASIBLE with the first reason; STATUS_BAD_INPUT if no outcome
 * lacks room. */
MUST_CHECK enum status cli_field_check(const struct cli_field *field, struct error *err);
void cli_field_release(struct cli_field *field);

#endif
