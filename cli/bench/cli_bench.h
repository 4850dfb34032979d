/*
 * `bench`: compares policies, in four steps with a file each:
 *
 *     cli_bench_workloads.c   the workloads: files of jobs and of instances, families by name
 *     cli_bench_trials.c      the value of each policy on an instance; cli_bench_jobs.c: on jobs
 *     cli_bench_summary.c     the statistics of each policy
 *     cli_bench_report.c      text, JSON, CSV
 *
 * cli_bench_counterfactual.c does other work: it repeats one run with one decision made by other policies.
 *
 * A *case* is a workload with a seed. For a family, the seed makes the instance. For a file, the first seed keeps the
 * order of the jobs and every other seed shuffles it, which changes how policies break ties between equal jobs. In all
 * cases the seed is also the policy's seed.
 */
#ifndef SPILLWAY_CLI_BENCH_CLI_BENCH_H
#define SPILLWAY_CLI_BENCH_CLI_BENCH_H

#include "cli/common/cli.h"
#include "cli/common/cli_machine.h"
#include "planner/solve/instance/instance_random.h"

enum { BENCH_POLICIES_MAX = 64, BENCH_WORKLOADS_MAX = 4096, BENCH_REASON_BYTES = 512 };

enum bench_kind { BENCH_FAMILY, BENCH_INSTANCE, BENCH_JOBS };

struct bench_workload {
    enum bench_kind kind;
    const char *name;            /* name of the file without its folder, or of the family */
    const char *path;            /* NULL: a family */
    enum instance_family family;
};

struct bench_options {
    struct cli_machine machine; /* for jobs */
    double noise;               /* relative noise of durations; 0: none */
    double limit_s;             /* seconds of a trial of the user's code */
    bool real;                  /* jobs: also run the plan, with the first seed */
    size_t dispatch;            /* jobs: index into cli_dispatches; with live, both orders are tried */
};

enum bench_outcome { BENCH_NONE, BENCH_DONE, BENCH_FAILED }; /* BENCH_NONE: the policy does not suit this workload */

struct bench_result {
    enum bench_outcome outcome;
    double value, bound;       /* ticks, or seconds for jobs; bound > 0 */
    double kept, live;         /* values with noise, of the planned order and decided live */
    double actual_bound;       /* lower bound of the durations with noise */
    bool has_live;
    double measured_s;         /* 0: the plan was not run */
    uint64_t decisions;
    double deciding_s;
};

struct bench_reason { /* why a policy lacks a value: its first failure, else its first refusal */
    char text[BENCH_REASON_BYTES]; /* "": it has all values */
    bool failed;
};

struct bench {
    const char *policies[BENCH_POLICIES_MAX]; /* as given on the command line */
    uint32_t policy_count;
    struct bench_workload *workloads;
    size_t workload_count, workload_capacity;
    uint32_t seeds;
    struct bench_options options;
    struct bench_result *results; /* (workloads, seeds, policies) */
    struct bench_reason *reasons; /* (policies) */
    struct arena arena;
};

static inline struct bench_result *bench_at(const struct bench *bench, size_t workload, uint32_t seed,
                                            uint32_t policy)
{
    return &bench->results[(workload * bench->seeds + seed) * bench->policy_count + policy];
}

/* Competitors that are not policies. bench_searched: the best result of a search of BENCH_ITERATIONS. bench_optimal:
 * exact methods for instances; for jobs, a search over cuts too (`plan --policy optimal`). */
enum { BENCH_ITERATIONS = 100 };
extern const char bench_searched[], bench_optimal[];
bool bench_is_search(const char *policy);

/* Adds policies: "a,b,./mine.so", or "all". Errors: STATUS_BAD_INPUT for a name that is unknown or given twice. */
MUST_CHECK enum status bench_add_policies(struct bench *bench, const char *list, struct error *err);

/* Add workloads: a file; a folder, whose *.json files are taken in the order of their names; a family. Errors:
 * STATUS_BAD_INPUT for a file of neither jobs nor an instance, STATUS_IO, STATUS_LIMIT. */
MUST_CHECK enum status bench_add_path(struct bench *bench, const char *path, struct error *err);
MUST_CHECK enum status bench_add_family(struct bench *bench, const char *name, struct error *err);

/* Tries all policies on all cases. Faults of policies are in the results. */
MUST_CHECK enum status bench_run(struct bench *bench, struct error *err);

/* One case, as policies get it. bench_round_of() sets the first four fields for case `number`, from 0, and zeroes the
 * others. */
struct bench_round {
    const struct bench *bench;
    size_t workload;
    uint32_t seed_index;
    uint64_t seed;             /* from 1 */
    struct instance in, actual; /* actual: durations with noise */
    double ticks;               /* ticks of the instance in one tick of the workload */
    double bound, actual_bound; /* in ticks of the workload, like all results */
};
struct bench_round bench_round_of(const struct bench *bench, size_t number);
/* Makes the instance of a case without jobs. The caller releases it, also after an error. Errors: those of the
 * instance; STATUS_BAD_INPUT if its bound is 0. */
MUST_CHECK enum status bench_round_make(struct bench_round *round, struct error *err);
void bench_round_release(struct bench_round *round);

/*
 * Defined in cli_bench_counterfactual.c. "17:4": the result of run 17 if another policy had made its fourth decision.
 * Runs are the lines of --csv, from 1. Errors: STATUS_BAD_INPUT if there is no such run or decision, or the run is not
 * of an instance.
 */
MUST_CHECK enum status bench_counterfactual(struct cli *cli, const struct bench *bench, const char *text, struct error *err);

/* Defined in cli_bench_jobs.c. Plans and simulates the jobs of a file; `plan_path` NULL: the plan is not kept. */
MUST_CHECK enum status bench_try_jobs(const struct bench *bench, const char *path, const char *policy,
                                      uint64_t seed, const char *plan_path, struct bench_result *out,
                                      char reason[BENCH_REASON_BYTES], struct error *err);
/* Runs a plan. `policy` is asked live, with `seed`; NULL: the plan's order is kept. *measured_s: the makespan in
 * seconds. */
MUST_CHECK enum status bench_execute(const char *plan_path, const char *policy, uint64_t seed, double *measured_s,
                                     struct error *err);

void bench_release(struct bench *bench);

/* --- summary and report ---------------------------------------------------------------------- */

/* Relative distance from the bound: the mean of samples, half the width of its 95 % interval, the worst case. A sample
 * is a case of a family, or all cases of a file together: orders of the same jobs are not independent workloads. */
struct bench_figure {
    uint32_t samples; /* 0: none */
    double mean, half, worst;
};

/* Counts of samples in which one side's value was less or equal, and the probability p of such a difference by
 * chance. */
struct bench_pair {
    uint32_t better, worse, equal;
    double p;
};

struct bench_summary { /* summary of a policy */
    uint32_t done, failed;
    struct bench_figure planned, kept, live;
    uint32_t wins;               /* cases in which no other policy was better */
    struct bench_pair against;   /* compared with the first policy */
    struct bench_pair deciding;  /* live compared with the kept order */
    double decision_s;           /* median over the cases; 0: not measured */
};

/* Fills summaries, (policy_count). */
MUST_CHECK enum status bench_summarize(const struct bench *bench, struct bench_summary *summaries,
                                       struct error *err);

/* Computes how well simulation and measurement agree on the ranking of policies on one workload. Returns false if
 * nothing can be ranked. */
bool bench_agreement(const struct bench *bench, size_t workload, double *tau);

MUST_CHECK enum status bench_text(struct cli *cli, const struct bench *bench,
                                  const struct bench_summary *summaries, struct error *err);
MUST_CHECK enum status bench_json(struct cli *cli, const struct bench *bench,
                                  const struct bench_summary *summaries, struct error *err);
MUST_CHECK enum status bench_csv(const struct bench *bench, const char *path, struct error *err);

#endif
