/*
 * The answer of `whatif` for one machine: the best way to train the jobs there, its time with an interval, and its
 * cost.
 *
 * Jobs run one after the other, each in its own best way (planner/capacity/what_if.h). They run together, by a policy
 * or by Saturn's schedule, if that is faster.
 *
 * The interval covers 90 % (cli_what_if_effects.c).
 */
#ifndef SPILLWAY_CLI_CAPACITY_CLI_WHAT_IF_H
#define SPILLWAY_CLI_CAPACITY_CLI_WHAT_IF_H

#include "cli/common/cli.h"
#include "cli/ways/cli_candidate.h"
#include "models/hardware/hardware.h"
#include "models/hardware/machine_values.h"
#include "models/hardware/prices.h"
#include "models/job/job.h"
#include "planner/capacity/what_if.h"

enum { WHAT_IF_TEXT_BYTES = 256 };
/* Jobs with more minibatches in total than this are not simulated together. */
enum { WHAT_IF_TOGETHER_MAX = 2000 };

/* The effect on the time of changing one value in all places of the machine that have it. */
struct what_if_effect {
    double spread;            /* the largest relative spread of the value; 0: no spread is known */
    uint32_t kind;            /* enum source_kind of the entry with that spread */
    double better_s, worse_s; /* time of the jobs with the value at 5 % and at 95 % of its distribution */
};

/* The price of a machine per hour; usd_per_h 0: unknown. */
struct what_if_price {
    double usd_per_h;
    char basis[80], as_of[16]; /* "" if unknown; with several parts, of the first part */
    bool given;                /* given on the command line, so its age is not checked */
};

struct what_if_answer {
    const char *name;          /* as named on the command line; borrowed */
    struct hardware hardware;
    bool fits;
    char reason[WHAT_IF_TEXT_BYTES]; /* reason if it does not fit */
    struct what_if *searches;  /* per job; empty for jobs that cost the same as an earlier job */
    uint32_t job_count;
    char plan[WHAT_IF_TEXT_BYTES];
    double run_s, low_s, high_s; /* of all jobs in the file; [low_s, high_s] is the 90 % interval */
    double tokens, samples;      /* totals of all jobs */
    double model_flops;          /* forward and backward, recomputation not counted */
    double peak_flops_per_s;     /* of the whole machine, dense */
    struct what_if_effect effects[MACHINE_VALUES];
    char binds[WHAT_IF_TEXT_BYTES]; /* bottleneck of the longest job */
    uint64_t device_bytes, usable_bytes; /* of the device with the least memory left */
    uint64_t host_bytes;         /* of the fullest host: its largest job, or all jobs that are there at a time */
    uint32_t host_jobs;          /* jobs in its memory at a time; for jobs in turn, how many jobs like the largest fit;
                                    0: no job needs any */
    bool together;               /* jobs are trained together, not in turn */
    double watts;                /* power of all boards; 0: unknown for a board */
    struct what_if_price price;
};

struct what_if_prices {
    const struct price_list *list;
    const struct option_list *given; /* "NAME=USD" */
    double usd_per_gpu_hour;         /* negative: not given */
    double usd_per_kwh;              /* negative: not given */
    const char *basis;
};

/* Checks that each given "NAME=USD" names a machine among the answers, or a part of one. Called after what_if_price(),
 * which checks the syntax. Errors: STATUS_BAD_INPUT. */
MUST_CHECK enum status what_if_prices_check(const struct option_list *given, const struct what_if_answer *answers,
                                            uint32_t count, struct error *err);

/* Finds the price of a machine, the sum of its parts. Errors: STATUS_BAD_INPUT for given prices. */
MUST_CHECK enum status what_if_price(const struct what_if_prices *prices, const char *machine, uint32_t devices,
                                     struct what_if_price *out, struct error *err);

/* Adds electricity for boards at their power limit to a machine's price; watts > 0, usd_per_kwh > 0. */
void what_if_price_electricity(double watts, double usd_per_kwh, struct what_if_price *price);

/* Returns the power of all boards at their limit in watts; 0: unknown for a board. */
double what_if_watts(const struct hardware *hardware);

uint64_t what_if_minibatches(const struct job_set *jobs); /* minibatches of all jobs */

/* Computes the answer. `out` is zeroed before, except for name and hardware; the caller releases it, also after an
 * error. If nothing fits, that is an answer and not an error. `jobs` were read from `from`; from->machine is not
 * used. */
MUST_CHECK enum status what_if_answer(const struct cli_source *from, const struct job_set *jobs, struct what_if_answer *out,
                                      struct error *err);
void what_if_answer_release(struct what_if_answer *answer);

/* --- the interval ---------------------------------------------------------------------------------- */

/* Resets the effects: sets which values have spreads, and all seconds to 0. */
void what_if_effects_begin(struct what_if_answer *answer);
/* Adds the effects of a plan that stands for `run_s` seconds of the jobs. Errors: as sim_run(). */
MUST_CHECK enum status what_if_effects_add(const struct plan *plan, double run_s, struct what_if_answer *answer,
                                           struct error *err);
/* Adds the effects of a job in its best way, for `run_s` seconds of such jobs. Errors: also as what_if_plan(). */
MUST_CHECK enum status what_if_effects_of_job(const struct job *job, const struct what_if_way *way, double run_s,
                                              struct what_if_answer *answer, struct error *err);
/* Computes the interval from all effects. */
void what_if_effects_end(struct what_if_answer *answer);

/* --- the report ------------------------------------------------------------------------------- */

struct what_if_wanted;

struct what_if_report {
    const struct what_if_answer *answers;
    uint32_t count;
    const struct job_set *jobs;
    const char *jobs_path;
    double tokens;     /* tokens to train on; 0: as in the jobs */
    double deadline_s, cost_max_usd; /* negative: not given */
    const struct what_if_wanted *wanted; /* cli_what_if_sensitivity.h; NULL: not asked for */
    bool search;       /* all machines of the catalogue are compared: the best one is the answer */
    bool verbose;
};

/* Returns the seconds of an answer's run, for the tokens of the report where it names some. */
double what_if_time_s(const struct what_if_report *report, const struct what_if_answer *answer, double run_s);
/* Returns the cost in dollars of the tokens asked for. */
double what_if_cost_usd(const struct what_if_report *report, const struct what_if_answer *answer, double run_s);
/* Returns the cheapest machine that meets the limits, or without prices the fastest; `count`: none. */
uint32_t what_if_best(const struct what_if_report *report);

/* Adds pictures of the sensitivity of each machine to the page of --report, if there is one. */
void what_if_pictures(struct cli *cli, const struct what_if_report *report);

MUST_CHECK enum status what_if_text(struct cli *cli, const struct what_if_report *report, bool markdown,
                                    struct error *err);
MUST_CHECK enum status what_if_csv(struct cli *cli, const struct what_if_report *report, struct error *err);
MUST_CHECK enum status what_if_json(struct cli *cli, const struct what_if_report *report, struct error *err);

#endif
