/*
 * What `whatif` knows of a machine: the best way of training the jobs there, how long it takes and how sure that is, what
 * it costs.
 *
 * Jobs go one after the other, each by its own best way (planner/capacity/what_if.h), or all at once by a policy or by Saturn's
 * schedule, where that is faster.
 *
 * A prediction is an interval of 90 %, by cli_what_if_effects.c.
 */
#ifndef SPILLWAY_CLI_WHAT_IF_H
#define SPILLWAY_CLI_WHAT_IF_H

#include "cli/common/cli.h"
#include "cli/ways/cli_candidate.h"
#include "models/hardware/hardware.h"
#include "models/hardware/machine_figures.h"
#include "models/hardware/prices.h"
#include "models/job/job.h"
#include "planner/capacity/what_if.h"

enum { WHAT_IF_TEXT_BYTES = 256 };
/* Jobs with more minibatches than that in all are not simulated as one. */
enum { WHAT_IF_TOGETHER_MAX = 2000 };

/* What moving one figure of the machine, wherever it stands, does to the time. */
struct what_if_effect {
    double spread;            /* relative, the largest there is of the figure; 0: none is known */
    uint32_t kind;            /* enum figure_kind, of that one */
    double better_s, worse_s; /* seconds of the jobs with it at 5 % and 95 % of what it may be */
};

/* What one machine costs for an hour; `usd_per_h` 0: unknown. */
struct what_if_price {
    double usd_per_h;
    char basis[80], as_of[16]; /* "" where not stated; of several parts the first's */
    bool given;                /* on the command line, so nobody asks how old it is */
};

struct what_if_answer {
    const char *name;          /* as asked for; borrowed */
    struct hardware hardware;
    bool fits;
    char reason[WHAT_IF_TEXT_BYTES]; /* why not */
    struct what_if *searches;  /* per job; jobs that cost the same as one before have none */
    uint32_t job_count;
    char plan[WHAT_IF_TEXT_BYTES];
    double run_s, low_s, high_s; /* of all jobs as the file has them; 90 % are between the last two */
    double tokens, samples;      /* of all jobs */
    double model_flops;          /* forward and backward, recomputation not counted */
    double peak_flops_per_s;     /* of the whole machine, dense */
    struct what_if_effect effects[MACHINE_FIGURES];
    char binds[WHAT_IF_TEXT_BYTES]; /* of the longest job */
    uint64_t device_bytes, usable_bytes; /* of the device with the least left */
    uint64_t host_bytes;         /* of the fullest host: the largest job's, or of all jobs that are there together */
    uint32_t host_jobs;          /* that are there at a time; of jobs in turn, like the largest that could be; 0: none needs any */
    bool together;               /* jobs are not trained in turn */
    double watts;                /* of all boards; 0: one is unknown */
    struct what_if_price price;
};

struct what_if_prices {
    const struct price_list *list;
    const struct option_list *given; /* "NAME=USD" */
    double usd_per_gpu_hour;         /* negative: not given */
    double usd_per_kwh;              /* negative: not given */
    const char *basis;
};

/* Each "NAME=USD" that was given is of a machine among the answers, or of a part of one. After what_if_price(), which says
 * whether they can be read. Errors: STATUS_BAD_INPUT. */
MUST_CHECK enum status what_if_prices_check(const struct option_list *given, const struct what_if_answer *answers,
                                            uint32_t count, struct error *err);

/* The price of a machine, all its parts together. Errors: STATUS_BAD_INPUT for what was given. */
MUST_CHECK enum status what_if_price(const struct what_if_prices *prices, const char *machine, uint32_t devices,
                                     struct what_if_price *out, struct error *err);

/* Electricity for boards at their limit, beside what the machine costs already; `watts` > 0, usd_per_kwh > 0. */
void what_if_price_electricity(double watts, double usd_per_kwh, struct what_if_price *price);

/* Of all boards at their limit; 0: one is unknown. */
double what_if_watts(const struct hardware *hardware);

uint64_t what_if_minibatches(const struct job_set *jobs); /* of all of them */

/* Zeroed struct in, with name and hardware; release it, also after an error. That nothing fits is no error. `jobs` are
 * those of `from`, which names no machine. */
MUST_CHECK enum status what_if_answer(const struct cli_source *from, const struct job_set *jobs, struct what_if_answer *out,
                                      struct error *err);
void what_if_answer_release(struct what_if_answer *answer);

/* --- how sure it is ------------------------------------------------------------------------------ */

/* Effects anew: which figures have spreads, and no seconds. */
void what_if_effects_begin(struct what_if_answer *answer);
/* Of a plan that stands for `run_s` seconds of the jobs. Errors: those of sim_run(). */
MUST_CHECK enum status what_if_effects_add(const struct plan *plan, double run_s, struct what_if_answer *answer,
                                           struct error *err);
/* Of a job by its best way, and so many seconds of such jobs. Errors: those of what_if_plan() too. */
MUST_CHECK enum status what_if_effects_of_job(const struct job *job, const struct what_if_way *way, double run_s,
                                              struct what_if_answer *answer, struct error *err);
/* The interval, behind all of them. */
void what_if_effects_end(struct what_if_answer *answer);

/* --- the report ------------------------------------------------------------------------------- */

struct what_if_wanted;

struct what_if_report {
    const struct what_if_answer *answers;
    uint32_t count;
    const struct job_set *jobs;
    const char *jobs_path;
    double tokens;     /* that are to be trained on; 0: as many as the jobs have */
    double deadline_s, cost_max_usd; /* negative: not given */
    const struct what_if_wanted *wanted; /* cli_what_if_sensitivity.h; NULL: nobody asked what moves the time */
    bool search;       /* machines are the catalogue's: the cheapest in time is the answer */
    bool verbose;
};

/* Of the tokens that are asked for. */
double what_if_time_s(const struct what_if_report *report, const struct what_if_answer *answer, double run_s);
double what_if_cost_usd(const struct what_if_report *report, const struct what_if_answer *answer, double run_s);
/* Does it fit and keep what was asked for? */
bool what_if_meets(const struct what_if_report *report, const struct what_if_answer *answer);
/* The cheapest, without prices the fastest, of those that meet; `count`: none. */
uint32_t what_if_best(const struct what_if_report *report);

/* Into the page of --report, where there is one: of each machine what moves the time. */
void what_if_pictures(struct cli *cli, const struct what_if_report *report);

MUST_CHECK enum status what_if_text(struct cli *cli, const struct what_if_report *report, bool markdown,
                                    struct error *err);
MUST_CHECK enum status what_if_csv(struct cli *cli, const struct what_if_report *report, struct error *err);
MUST_CHECK enum status what_if_json(struct cli *cli, const struct what_if_report *report, struct error *err);

#endif
