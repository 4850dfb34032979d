/*
 * `solve`: a file that states one planning problem, its best schedule and what is proven of it.
 *
 * The file's version key says which problem it is ("spillway_instance": 1); each kind of problem is one
 * file of this folder with a function and a row in the table of verb_solve.c.
 */
#ifndef SPILLWAY_CLI_CLI_SOLVE_H
#define SPILLWAY_CLI_CLI_SOLVE_H

#include "base/json/json_in.h"
#include "base/json/json_out.h"
#include "cli/common/cli.h"
#include "planner/solve/certify/certify.h"
#include "planner/solve/milp/milp.h"

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
    uint64_t threshold;   /* by which a new plan must end sooner to be taken; UINT64_MAX: half an interval */
    uint64_t restart;     /* ticks that a job loses when a new plan stops it */
};

typedef enum status (*cli_solve)(struct cli *cli, const struct cli_solve_request *request,
                                 const struct json_input *input, struct error *err);

/* --- what all kinds report ------------------------------------------------------------------- */

/* The best schedule's value, in ticks, and what is proven of it. Strings are borrowed. */
struct cli_solved {
    const char *problem, *name;
    const char *objective; /* NULL: the kind has one alone, which the report does not name */
    enum certificate_status status;
    int64_t value, bound;
    double gap;
    const char *bound_kind, *proof;
};

/* What that took, in seconds of each part. */
struct cli_solve_work {
    uint64_t iterations, nodes;
    double bound_s, search_s, exact_s, solver_s;
    const char *solver; /* NULL: none was asked */
};

/* The keys at the beginning of a report, and those of the work; the same for people: a line each for bound,
 * proof and work. */
void cli_solved_json(const struct cli_solved *solved, const struct cli_solve_request *request,
                     struct json_out *json);
void cli_solve_work_json(const struct cli_solve_work *work, struct json_out *json);
void cli_solved_text(const struct cli_solved *solved, FILE *out);
void cli_solve_work_text(const struct cli_solve_work *work, FILE *out);

/* The integer program, to the files that were asked for. */
MUST_CHECK enum status cli_solve_write_milp(const struct cli_solve_request *request,
                                            const struct milp *milp, struct error *err);

/* --- kinds ------------------------------------------------------------------------------------- */

/* Shard schedules: planner/solve/instance/instance.h. */
enum status solve_instance(struct cli *cli, const struct cli_solve_request *request,
                           const struct json_input *input, struct error *err);

/* Keep, swap or recompute in a chain: planner/chain/chain.h. */
enum status solve_chain(struct cli *cli, const struct cli_solve_request *request,
                        const struct json_input *input, struct error *err);

/* Parallelisms, devices and starts of whole jobs: planner/saturn/spase/spase.h. */
enum status solve_spase(struct cli *cli, const struct cli_solve_request *request,
                        const struct json_input *input, struct error *err);

#endif
