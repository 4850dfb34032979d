/* The request of `simulate`: its command line. */
#ifndef SPILLWAY_CLI_SIMULATE_CLI_SIMULATE_H
#define SPILLWAY_CLI_SIMULATE_CLI_SIMULATE_H

#include "cli/common/cli_machine.h"
#include "cli/common/cli_other_machine.h"
#include "cli/common/cli_parallel.h"
#include "cli/simulate/cli_failures.h"
#include "cli/ways/cli_swap.h"

/* The contents of FILE. */
enum cli_simulate_subject { SIMULATE_PLAN, SIMULATE_JOBS, SIMULATE_INSTANCE };

struct cli_simulate_request {
    const char *path, *trace_path; /* trace_path may be NULL */
    enum cli_simulate_subject subject;
    bool live;                     /* --dispatch live */
    const char *policy;            /* policy that is asked live, or that orders the jobs when they are planned; may be
                                      NULL */
    const char *slow, *noise;      /* NULL: no device is slowed; no noise */
    uint64_t seed;                 /* of policy, failures, noise and draws */
    uint64_t seeds;                /* machines that are drawn for an interval; 0: no interval */
    struct cli_machine machine;    /* without a name: the machine of the plan or the instance */
    struct cli_parallel parallel;  /* --parallel and related options for jobs */
    struct cli_failures failures;
    size_t collectives;            /* enum sim_collectives_by */
    size_t activations, rule;      /* --activations swap: 0, else CLI_SWAP_RULE_NONE; rule: index into cli_swap_rules */
    bool no_fold, caching, demand_first;
    bool contents;                 /* also report the contents of the fullest device */
};

/* Returns true if activations are kept, swapped or recomputed layer by layer. */
static inline bool cli_simulate_swaps(const struct cli_simulate_request *request)
{
    return request->activations != CLI_SWAP_RULE_NONE;
}

/*
 * Finds the contents of the file by its version key. A file without one or that cannot be read counts as a plan, whose
 * reader reports the error. Standard input is a plan, except with `live`. Errors: STATUS_BAD_INPUT for a file of
 * another verb; with `live`, any failure to read the file.
 */
MUST_CHECK enum status simulate_find_subject(const char *path, bool live, enum cli_simulate_subject *out,
                                             struct error *err);

/*
 * Plans the jobs of a file on the machine: parallel or with swaps as requested; with `live`, in one of many orders;
 * else as `plan` does, by the policy or without one. `swap`: zeroed before; the choices for jobs that swap. Errors: as
 * reading jobs and machine, and planner_plan().
 */
MUST_CHECK enum status simulate_plan_jobs(const struct cli_simulate_request *request, struct plan *plan,
                                          struct swap_report *swap, struct error *err);

/* Simulates an instance, dispatched live: sim/live/live.h. */
enum status simulate_live(struct cli *cli, const struct cli_simulate_request *request, struct error *err);

#endif
