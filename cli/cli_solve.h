/*
 * `solve`: a file that states one planning problem, its best schedule and what is proven of it.
 *
 * The file's version key says which problem it is ("spillway_instance": 1); each kind of problem is one
 * file of this folder with a function and a row in the table of verb_solve.c.
 */
#ifndef SPILLWAY_CLI_CLI_SOLVE_H
#define SPILLWAY_CLI_CLI_SOLVE_H

#include "base/json_in.h"
#include "cli/cli.h"

/* What was asked for; a kind that has no use for an option that was given refuses it. */
struct cli_solve_request {
    const char *path;
    double limit_s;      /* of all that is done; 0: the first schedule that comes, and its bounds */
    uint64_t seed;
    uint64_t iterations; /* of the search; 0: as many as there is time for */
    const char *solver;  /* "glpk", "cbc", "highs", a program; NULL: none is asked */
    const char *lp, *mps; /* files to write the integer program to; may be NULL */
    const char *output;   /* file for the schedule; may be NULL */
    uint64_t interval;    /* SPASE: ticks between looks at the plan; 0: it is not planned again */
    uint64_t restart;     /* ticks that a job loses when a new plan stops it */
};

typedef enum status (*cli_solve)(struct cli *cli, const struct cli_solve_request *request,
                                 const struct json_input *input, struct error *err);

/* Shard schedules: planner/instance.h. */
enum status solve_instance(struct cli *cli, const struct cli_solve_request *request,
                           const struct json_input *input, struct error *err);

/* Keep, swap or recompute in a chain: planner/chain.h. */
enum status solve_chain(struct cli *cli, const struct cli_solve_request *request,
                        const struct json_input *input, struct error *err);

/* Parallelisms, devices and starts of whole jobs: planner/spase.h. */
enum status solve_spase(struct cli *cli, const struct cli_solve_request *request,
                        const struct json_input *input, struct error *err);

#endif
