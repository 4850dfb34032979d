/*
 * `bench`: compares policies, in four steps:
 *
 *     cli_bench_workloads.c   the workloads: files of jobs and of instances, families by name
 *     cli_bench_trials.c      the value of each policy on an instance; cli_bench_jobs.c: on jobs
 *     cli_bench_summary.c     the statistics of each policy
 *     cli_bench_report.c      text, JSON, CSV
 *
 * cli_bench_counterfactual.c does other work: it repeats one run with one decision made by other policies.
 *
 * A *case* is a workload with a seed. For a family, the seed makes the instance. For a file, the first seed keeps the
 * order of the jobs and every other shuffles it, which changes how policies break ties. The seed is also the policy's.
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
    const char *name;            /* a file's name without folder, or a family's */
    const char *path;            /* NULL: a family */
    enum instance_family family;
};

struct bench_options {
    struct cli_machine machine; /* for jobs */
    double noise;               /* relative, of durations; 0: none */
    double limit_s;             /* of a trial of the user's code */
    bool real;                  /* jobs: also run, with the first seed */
    size_t dispatch;            /* jobs: index into cli_dispatches; live tries both orders */
};

enum bench_outcome { BENCH_NONE, BENCH_DONE, BENCH_FAILED }; /* BENCH_NONE: policy and workload do not fit */

struct bench_result {
    enum bench_outcome outcome;
    double value, bound;       /* ticks, or seconds for jobs; bound > 0 */
    double kept, live;         /* with noise: in the planned order, and live */
    double actual_bound;       /* of the durations with noise */
    bool has_live;
    double measured_s;         /* 0: not run */
    uint64_t decisions;
    double deciding_s;
};

struct bench_reason { /* first failure, else first refusal */
    char text[BENCH_REASON_BYTES]; /* "": it has all values */
    bool failed;
};

struct bench {
    const char *policies[BENCH_POLICIES_MAX]; /* as given */
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

/* Competitors that are not policies. bench_searched: the best of BENCH_ITERATIONS. bench_optimal: exact methods for
 * instances; for jobs, a search over cuts too. */
enum { BENCH_ITERATIONS = 100 };
extern const char bench_searched[], bench_optimal[];
bool bench_is_search(const char *policy);

/* Adds "a,b,./mine.so", or "all". Errors: STATUS_BAD_INPUT for a name that is unknown or given twice. */
MUST_CHECK enum status bench_add_policies(struct bench *bench, const char *list, struct error *err);

/* Add a file, a folder, whose *.json files are taken in order, or a family. Errors: STATUS_BAD_INPUT for a file of
 * neither jobs nor an instance, STATUS_IO, STATUS_LIMIT. */
MUST_CHECK enum status bench_add_path(struct bench *bench, const char *path, struct error *err);
MUST_CHECK enum status bench_add_family(struct bench *bench, const char *name, struct error *err);

/* Tries all policies on all cases. Their faults are in the results. */
MUST_CHECK enum status bench_run(struct bench *bench, struct error *err);

/* bench_round_of() sets the first four fields for case `number`, from 0, and zeroes the others. */
struct bench_round {
    const struct bench *bench;
    size_t workload;
    uint32_t seed_index;
    uint64_t seed;             /* from 1 */
    struct instance in, actual; /* actual: durations with noise */
    double ticks;               /* of the instance in one of the workload */
    double bound, actual_bound; /* in ticks of the workload */
};
struct bench_round bench_round_of(const struct bench *bench, size_t number);
/* Makes a case's instance. The caller releases it, also after an error. Errors: those of the instance;
 * STATUS_BAD_INPUT if its bound is 0. */
MUST_CHECK enum status bench_round_make(struct bench_round *round, struct error *err);
void bench_round_release(struct bench_round *round);

/*
 * Prints for "17:4" the result of run 17 if another policy had made its fourth decision. Runs are the lines of --csv,
 * from 1. Errors: STATUS_BAD_INPUT if there is no such run or decision, or the run is not of an instance.
 */
MUST_CHECK enum status bench_counterfactual(struct cli *cli, const struct bench *bench, const char *text,
                                            struct error *err);

/* Plans and simulates a file's jobs; `plan_path` may be NULL. */
MUST_CHECK enum status bench_try_jobs(const struct bench *bench, const char *path, const char *policy,
                                      uint64_t seed, const char *plan_path, struct bench_result *out,
                                      char reason[BENCH_REASON_BYTES], struct error *err);
/* Runs a plan. `policy` is asked live; NULL: the plan's order. *measured_s: the makespan. */
MUST_CHECK enum status bench_execute(const char *plan_path, const char *policy, uint64_t seed, double *measured_s,
                                     struct error *err);

void bench_release(struct bench *bench);

/* --- summary and report ---------------------------------------------------------------------- */

/* Relative distance from the bound: the mean of samples, half the width of its 95 % interval, the worst. A sample
 * is a case of a family, or all cases of a file: orders of the same jobs are not independent. */
struct bench_figure {
    uint32_t samples; /* 0: none */
    double mean, half, worst;
};

/* Samples in which one side was less or equal, and the probability p of such a difference by chance. */
struct bench_pair {
    uint32_t better, worse, equal;
    double p;
};

struct bench_summary { /* of a policy */
    uint32_t done, failed;
    struct bench_figure planned, kept, live;
    uint32_t wins;               /* cases without a better policy */
    struct bench_pair against;   /* with the first policy */
    struct bench_pair deciding;  /* live with the kept order */
    double decision_s;           /* median; 0: not measured */
};

/* Fills summaries (policy_count). */
MUST_CHECK enum status bench_summarize(const struct bench *bench, struct bench_summary *summaries,
                                       struct error *err);

/* Computes how well simulation and measurement agree on the ranking of policies. False if nothing can be ranked. */
bool bench_agreement(const struct bench *bench, size_t workload, double *tau);

MUST_CHECK enum status bench_text(struct cli *cli, const struct bench *bench,
                                  const struct bench_summary *summaries, struct error *err);
MUST_CHECK enum status bench_json(struct cli *cli, const struct bench *bench,
                                  const struct bench_summary *summaries, struct error *err);
MUST_CHECK enum status bench_csv(const struct bench *bench, const char *path, struct error *err);

#endif
