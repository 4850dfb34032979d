/*
 * `bench`: policies against each other, in four steps with a file each,
 *
 *     cli_bench_workloads.c   what they are given: files of jobs and of instances, families by name
 *     cli_bench_trials.c      what each of them makes of an instance; cli_bench_jobs.c: of jobs
 *     cli_bench_summary.c     what that says about each of them
 *     cli_bench_report.c      text, JSON, CSV
 *
 * and instead of these cli_bench_counterfactual.c: one run again, with one decision made by others.
 *
 * A *case* is a workload with a seed. Of a family the seed makes the instance. Of a file the first seed
 * leaves the jobs as they stand and every other one puts them in another order, which changes what is done
 * about equal jobs. In all, the seed is the policy's as well.
 */
#ifndef SPILLWAY_CLI_BENCH_H
#define SPILLWAY_CLI_BENCH_H

#include "cli/common/cli.h"
#include "cli/common/cli_machine.h"
#include "planner/solve/instance/instance_random.h"

enum { BENCH_POLICIES_MAX = 64, BENCH_WORKLOADS_MAX = 4096, BENCH_REASON_BYTES = 512 };

enum bench_kind { BENCH_FAMILY, BENCH_INSTANCE, BENCH_JOBS };

struct bench_workload {
    enum bench_kind kind;
    const char *name;            /* of the file, without its folder; of the family */
    const char *path;            /* NULL: a family */
    enum instance_family family;
};

struct bench_options {
    struct cli_machine machine; /* for jobs */
    double noise;               /* share; 0: none */
    double limit_s;             /* of a trial of the user's code */
    bool real;                  /* jobs: carried out as well, with the first seed */
    size_t dispatch;            /* jobs: index into cli_dispatches; live, both are */
};

enum bench_outcome { BENCH_NONE, BENCH_DONE, BENCH_FAILED }; /* NONE: it is none for this workload */

struct bench_result {
    enum bench_outcome outcome;
    double value, bound;       /* ticks, or seconds of jobs; bound > 0 */
    double kept, live;         /* with noise: values of the planned order, and decided live */
    double actual_bound;       /* of what happened */
    bool has_live;
    double measured_s;         /* 0: it was not carried out */
    uint64_t decisions;
    double deciding_s;
};

struct bench_reason { /* why a policy has no value somewhere: the first failure, else the first refusal */
    char text[BENCH_REASON_BYTES]; /* "": it has everywhere */
    bool failed;
};

struct bench {
    const char *policies[BENCH_POLICIES_MAX]; /* as they were given */
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

/* Competitors that are no policies: the best of a search of BENCH_ITERATIONS; and of instances what exact
 * methods make of it, of jobs what searching cuts as well does (`plan --policy optimal`). */
enum { BENCH_ITERATIONS = 100 };
extern const char bench_searched[], bench_optimal[];
bool bench_is_search(const char *policy);

/* "a,b,./mine.so", or "all". Errors: STATUS_BAD_INPUT for a name that is unknown or given twice. */
MUST_CHECK enum status bench_add_policies(struct bench *bench, const char *list, struct error *err);

/* A file, or a folder whose *.json files are taken in the order of their names; and a family.
 * Errors: STATUS_BAD_INPUT for what is neither jobs nor an instance, STATUS_IO, STATUS_LIMIT. */
MUST_CHECK enum status bench_add_path(struct bench *bench, const char *path, struct error *err);
MUST_CHECK enum status bench_add_family(struct bench *bench, const char *name, struct error *err);

/* Try everything. What policies do wrong is in the results. */
MUST_CHECK enum status bench_run(struct bench *bench, struct error *err);

/* A case as policies get it; zeroed but for the first four, which bench_round_of() fills in for case `number`, from 0. */
struct bench_round {
    const struct bench *bench;
    size_t workload;
    uint32_t seed_index;
    uint64_t seed;             /* from 1 */
    struct instance in, actual; /* actual: with noise */
    double ticks;               /* of these in one tick of the workload */
    double bound, actual_bound; /* in ticks of the workload, like all results */
};
struct bench_round bench_round_of(const struct bench *bench, size_t number);
/* Not of jobs. Release it, also after an error. Errors: those of the instance, STATUS_BAD_INPUT where its bound is 0,
 * STATUS_NO_MEMORY. */
MUST_CHECK enum status bench_round_make(struct bench_round *round, struct error *err);
void bench_round_release(struct bench_round *round);

/*
 * Of cli_bench_counterfactual.c: "17:4", what had become of run 17 had another policy made its fourth decision? Runs are the
 * lines of --csv, from 1. Errors: STATUS_BAD_INPUT where there is no such run or decision, or it is none of instances.
 */
MUST_CHECK enum status bench_counterfactual(struct cli *cli, const struct bench *bench, const char *text, struct error *err);

/* Of cli_bench_jobs.c: plan and simulate the jobs of a file; `plan_path` NULL: the plan is not kept. */
MUST_CHECK enum status bench_try_jobs(const struct bench *bench, const char *path, const char *policy,
                                      uint64_t seed, const char *plan_path, struct bench_result *out,
                                      char reason[BENCH_REASON_BYTES], struct error *err);
/* Carry a plan out; `policy`: asking it live, with `seed`; NULL: in the plan's order. *measured_s: its
 * makespan. */
MUST_CHECK enum status bench_execute(const char *plan_path, const char *policy, uint64_t seed, double *measured_s,
                                     struct error *err);

void bench_release(struct bench *bench);

/* --- what it says ---------------------------------------------------------------------------- */

/* Over the bound: the mean of samples, half the width of its 95 % interval, the worst case. A sample is
 * a case of a family, and all cases of a file together: orders of the same jobs are no workloads of
 * their own. */
struct bench_figure {
    uint32_t samples; /* 0: it has none */
    double mean, half, worst;
};

/* Samples in which one side's value was less, and how likely that would be by chance. */
struct bench_pair {
    uint32_t better, worse, equal;
    double p;
};

struct bench_summary { /* of a policy */
    uint32_t done, failed;
    struct bench_figure planned, kept, live;
    uint32_t wins;               /* cases in which none was better */
    struct bench_pair against;   /* the first policy */
    struct bench_pair deciding;  /* live against the kept order */
    double decision_s;           /* median over the cases; 0: not measured */
};

/* summaries: (policy_count). Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status bench_summarize(const struct bench *bench, struct bench_summary *summaries,
                                       struct error *err);

/* Do simulation and measurement rank the policies alike, on one workload? False: nothing to rank. */
bool bench_agreement(const struct bench *bench, size_t workload, double *tau);

MUST_CHECK enum status bench_text(struct cli *cli, const struct bench *bench,
                                  const struct bench_summary *summaries, struct error *err);
MUST_CHECK enum status bench_json(struct cli *cli, const struct bench *bench,
                                  const struct bench_summary *summaries, struct error *err);
MUST_CHECK enum status bench_csv(const struct bench *bench, const char *path, struct error *err);

#endif
