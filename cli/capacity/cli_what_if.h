/*
 * The answer of `whatif` for one machine: the best way to train the jobs, its time with an interval of 90 %
 * (cli_what_if_effects.c), and its cost. Jobs run one after the other in their own best ways
 * (planner/capacity/what_if.h), or together, by a policy or Saturn's schedule, if that is faster.
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
/* More minibatches are not simulated together. */
enum { WHAT_IF_TOGETHER_MAX = 2000 };

/* The effect on the time of changing a value in all its places. */
struct what_if_effect {
    double spread;            /* largest relative spread; 0: unknown */
    uint32_t kind;            /* enum source_kind of that place */
    double better_s, worse_s; /* time with the value at 5 % and at 95 % of its distribution */
};

/* Per hour; usd_per_h 0: unknown. */
struct what_if_price {
    double usd_per_h;
    char basis[80], as_of[16]; /* "" if unknown; of the first part */
    bool given;                /* on the command line: its age is not checked */
};

struct what_if_answer {
    const char *name;          /* as given; borrowed */
    struct hardware hardware;
    bool fits;
    char reason[WHAT_IF_TEXT_BYTES]; /* if it does not fit */
    struct what_if *searches;  /* per job; empty for jobs that cost the same as an earlier one */
    uint32_t job_count;
    char plan[WHAT_IF_TEXT_BYTES];
    double run_s, low_s, high_s; /* of all jobs; [low_s, high_s] is the 90 % interval */
    double tokens, samples;      /* of all jobs */
    double model_flops;          /* forward and backward, without recomputation */
    double peak_flops_per_s;     /* of the machine, dense */
    struct what_if_effect effects[MACHINE_VALUES];
    char binds[WHAT_IF_TEXT_BYTES]; /* of the longest job */
    uint64_t device_bytes, usable_bytes; /* of the device with the least left */
    uint64_t host_bytes;         /* of the fullest host */
    uint32_t host_jobs;          /* in its memory at a time; in turn: how many like the largest fit; 0: none needed */
    bool together;               /* not in turn */
    double watts;                /* of all boards; 0: unknown */
    struct what_if_price price;
};

struct what_if_prices {
    const struct price_list *list;
    const struct option_list *given; /* "NAME=USD" */
    double usd_per_gpu_hour;         /* negative: not given */
    double usd_per_kwh;              /* negative: not given */
    const char *basis;
};

/* Checks that each given "NAME=USD" names an answer's machine or a part of one, after what_if_price(). Errors:
 * STATUS_BAD_INPUT. */
MUST_CHECK enum status what_if_prices_check(const struct option_list *given, const struct what_if_answer *answers,
                                            uint32_t count, struct error *err);

/* Adds up the prices of a machine's parts. Errors: STATUS_BAD_INPUT for given prices. */
MUST_CHECK enum status what_if_price(const struct what_if_prices *prices, const char *machine, uint32_t devices,
                                     struct what_if_price *out, struct error *err);

/* Adds electricity at the boards' power limit; both numbers > 0. */
void what_if_price_electricity(double watts, double usd_per_kwh, struct what_if_price *price);

/* Returns the watts of all boards at their limit; 0: unknown. */
double what_if_watts(const struct hardware *hardware);

uint64_t what_if_minibatches(const struct job_set *jobs); /* of all jobs */

/* Computes the answer. `out` is zeroed before, except for name and hardware; the caller releases it, also after an
 * error. If nothing fits, that is an answer. `jobs` were read from `from`; from->machine is not used. */
MUST_CHECK enum status what_if_answer(const struct cli_source *from, const struct job_set *jobs,
                                      struct what_if_answer *out, struct error *err);
void what_if_answer_release(struct what_if_answer *answer);

/* --- the interval ---------------------------------------------------------------------------------- */

/* Sets which values have spreads, and all seconds to 0. */
void what_if_effects_begin(struct what_if_answer *answer);
/* Adds the effects of a plan that stands for `run_s` seconds. Errors: as sim_run(). */
MUST_CHECK enum status what_if_effects_add(const struct plan *plan, double run_s, struct what_if_answer *answer,
                                           struct error *err);
/* Adds the effects of a job in its best way, for `run_s` seconds. Errors: also as what_if_plan(). */
MUST_CHECK enum status what_if_effects_of_job(const struct job *job, const struct what_if_way *way, double run_s,
                                              struct what_if_answer *answer, struct error *err);
void what_if_effects_end(struct what_if_answer *answer);

/* --- the report ------------------------------------------------------------------------------- */

struct what_if_wanted;

struct what_if_report {
    const struct what_if_answer *answers;
    uint32_t count;
    const struct job_set *jobs;
    const char *jobs_path;
    double tokens;     /* to train on; 0: the jobs' */
    double deadline_s, cost_max_usd; /* negative: not given */
    const struct what_if_wanted *wanted; /* may be NULL */
    bool search;       /* the best machine of the catalogue is the answer */
    bool verbose;
};

/* Returns the seconds for the report's tokens, if it names some. */
double what_if_time_s(const struct what_if_report *report, const struct what_if_answer *answer, double run_s);
/* Returns dollars for the tokens asked for. */
double what_if_cost_usd(const struct what_if_report *report, const struct what_if_answer *answer, double run_s);
/* Returns the cheapest machine within the limits, without prices the fastest; `count`: none. */
uint32_t what_if_best(const struct what_if_report *report);

/* Adds each machine's sensitivity to the page of --report. */
void what_if_pictures(struct cli *cli, const struct what_if_report *report);

MUST_CHECK enum status what_if_text(struct cli *cli, const struct what_if_report *report, bool markdown,
                                    struct error *err);
MUST_CHECK enum status what_if_csv(struct cli *cli, const struct what_if_report *report, struct error *err);
MUST_CHECK enum status what_if_json(struct cli *cli, const struct what_if_report *report, struct error *err);

#endif
