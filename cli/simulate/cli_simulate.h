/* What `simulate` was asked for. */
#ifndef SPILLWAY_CLI_SIMULATE_H
#define SPILLWAY_CLI_SIMULATE_H

#include "cli/common/cli_machine.h"
#include "cli/common/cli_other_machine.h"
#include "cli/common/cli_parallel.h"
#include "cli/simulate/cli_failures.h"
#include "cli/ways/cli_swap.h"

/* What FILE holds. */
enum cli_simulate_subject { SIMULATE_PLAN, SIMULATE_JOBS, SIMULATE_INSTANCE };

struct cli_simulate_request {
    const char *path, *trace_path; /* trace_path may be NULL */
    enum cli_simulate_subject subject;
    bool live;                     /* a policy is asked */
    const char *policy;            /* which one; or, not live, who orders the jobs that are planned; may be NULL */
    const char *slow, *noise;      /* NULL: nothing is slower than it should be */
    uint64_t seed;                 /* of the policy, of failures, of noise and of draws */
    uint64_t seeds;                /* draws of the machine for an interval; 0: none is wanted */
    struct cli_machine machine;    /* without a name: that of the plan or the instance */
    struct cli_parallel parallel;  /* jobs that are spread */
    struct cli_failures failures;
    size_t collectives;            /* enum sim_collectives_by */
    size_t activations, rule;      /* jobs that swap: 0, or CLI_SWAP_RULE_NONE; index into cli_swap_rules */
    bool no_fold, caching, demand_first;
    bool contents;                 /* of the fullest device, too */
};

/* Activations are kept, swapped or recomputed layer by layer. */
static inline bool cli_simulate_swaps(const struct cli_simulate_request *request)
{
    return request->activations != CLI_SWAP_RULE_NONE;
}

/*
 * What the file holds, by its version key; a plan where there is none and where it cannot be read, of which who reads
 * the plan tells. Standard input is a plan, unless it is to be dispatched live.
 * Errors: STATUS_BAD_INPUT for what another verb is for; live, whatever keeps the file from being read.
 */
MUST_CHECK enum status simulate_find_subject(const char *path, bool live, enum cli_simulate_subject *out,
                                             struct error *err);

/*
 * The jobs of a file on the machine: spread or swapping as asked for, live in an order that is one of many, else as
 * `plan` has them by the policy or without one. `swap`: zeroed, what was chosen where they swap.
 * Errors: those of reading both and of planner_plan().
 */
MUST_CHECK enum status simulate_plan_jobs(const struct cli_simulate_request *request, struct plan *plan,
                                          struct swap_report *swap, struct error *err);

/* An instance, dispatched live: sim/live/live.h. */
enum status simulate_live(struct cli *cli, const struct cli_simulate_request *request, struct error *err);

#endif
