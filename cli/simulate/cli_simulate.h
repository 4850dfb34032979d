/* The command line of `simulate`. */
#ifndef SPILLWAY_CLI_SIMULATE_CLI_SIMULATE_H
#define SPILLWAY_CLI_SIMULATE_CLI_SIMULATE_H

#include "cli/common/cli_machine.h"
#include "cli/common/cli_other_machine.h"
#include "cli/common/cli_parallel.h"
#include "cli/simulate/cli_failures.h"
#include "cli/ways/cli_swap.h"

/* What FILE contains. */
enum cli_simulate_subject { SIMULATE_PLAN, SIMULATE_JOBS, SIMULATE_INSTANCE };

struct cli_simulate_request {
    const char *path, *trace_path; /* trace_path may be NULL */
    enum cli_simulate_subject subject;
    bool live;                     /* --dispatch live */
    const char *policy;            /* asked live, or for planning jobs; may be NULL */
    const char *slow, *noise;      /* may be NULL */
    uint64_t seed;                 /* of policy, failures, noise and draws */
    uint64_t seeds;                /* machines for an interval; 0: none */
    struct cli_machine machine;    /* without name: the plan's or the instance's */
    struct cli_parallel parallel;  /* of jobs */
    struct cli_failures failures;
    size_t collectives;            /* enum sim_collectives_by */
    size_t activations, rule;      /* --activations swap: 0, else CLI_SWAP_RULE_NONE; rule: in cli_swap_rules */
    bool no_fold, caching, demand_first;
    bool contents;                 /* of the fullest device */
};

/* Returns true if activations are treated layer by layer. */
static inline bool cli_simulate_swaps(const struct cli_simulate_request *request)
{
    return request->activations != CLI_SWAP_RULE_NONE;
}

/*
 * Uses the version key. A file without one or unreadable is a plan, whose reader reports the error. Standard input is
 * a plan, except with `live`. Errors: STATUS_BAD_INPUT for a file of another verb; with `live`, any failure to read
 * the file.
 */
MUST_CHECK enum status simulate_find_subject(const char *path, bool live, enum cli_simulate_subject *out,
                                             struct error *err);

/*
 * Plans a file's jobs: parallel or with swaps as requested; with `live`, in one of many orders; else as `plan` does.
 * `swap`: zeroed before; choices of jobs that swap. Errors: as reading jobs and machine, and planner_plan().
 */
MUST_CHECK enum status simulate_plan_jobs(const struct cli_simulate_request *request, struct plan *plan,
                                          struct swap_report *swap, struct error *err);

/* Simulates live dispatch: sim/live/live.h. */
enum status simulate_live(struct cli *cli, const struct cli_simulate_request *request, struct error *err);

#endif
