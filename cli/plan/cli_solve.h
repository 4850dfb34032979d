/*
 * `solve`: reads a file with one planning problem, and reports its best schedule and the proof.
 *
 * The file's version key names the kind of problem ("spillway_instance": 1). Each kind is one file of this folder with
 * a function, and a row in the table of verb_solve.c.
 */
#ifndef SPILLWAY_CLI_PLAN_CLI_SOLVE_H
#define SPILLWAY_CLI_PLAN_CLI_SOLVE_H

#include "base/json/json_in.h"
#include "base/json/json_out.h"
#include "cli/common/cli.h"
#include "planner/solve/certify/certify.h"
#include "planner/solve/milp/milp.h"

/* The options of `solve`; a kind refuses options that it does not use. */
struct cli_solve_request {
    const char *path;
    double limit_s;      /* seconds of the whole call; 0: only the first schedule and its bounds */
    uint64_t seed;
    uint64_t iterations; /* of the search; 0: limited only by time */
    const char *solver;  /* "glpk", "cbc", "highs", a program; NULL: no solver is started */
    const char *lp, *mps; /* files to write the integer program to; may be NULL */
    const char *output;   /* file for the schedule; may be NULL */
    uint64_t interval;    /* SPASE: ticks between looks at the plan; 0: it is planned only once */
    uint64_t threshold;   /* ticks by which a new plan must end sooner to be taken; UINT64_MAX: half an interval */
    uint64_t restart;     /* ticks that a job loses when a new plan stops it */
};

typedef enum status (*cli_solve)(struct cli *cli, const struct cli_solve_request *request,
                                 const struct json_input *input, struct error *err);

/* --- common parts of the reports --------------------------------------------------------------- */

/* The value of the best schedule, in ticks, its bound and its proof. Strings are borrowed. */
struct cli_solved {
    const char *problem, *name;
    const char *objective; /* NULL: the kind has a single objective, which the report does not name */
    enum certificate_status status;
    int64_t value, bound;
    double gap;
    const char *bound_kind, *proof;
};

/* The work of a call; seconds of each part. */
struct cli_solve_work {
    uint64_t iterations, nodes;
    double bound_s, search_s, exact_s, solver_s;
    const char *solver; /* NULL: no solver was started */
};

/* Write the first keys of a report, and the keys of the work; as text, a line each for bound, proof and work. */
void cli_solved_json(const struct cli_solved *solved, const struct cli_solve_request *request,
                     struct json_out *json);
void cli_solve_work_json(const struct cli_solve_work *work, struct json_out *json);
void cli_solved_text(const struct cli_solved *solved, FILE *out);
void cli_solve_work_text(const struct cli_solve_work *work, FILE *out);

/* Writes the integer program to the files that were asked for. */
MUST_CHECK enum status cli_solve_write_milp(const struct cli_solve_request *request,
                                            const struct milp *milp, struct error *err);

/* --- kinds ------------------------------------------------------------------------------------- */

/* Solves shard schedules: planner/solve/instance/instance.h. */
enum status solve_instance(struct cli *cli, const struct cli_solve_request *request,
                           const struct json_input *input, struct error *err);

/* Solves keep, swap or recompute in a chain: planner/chain/chain.h. */
enum status solve_chain(struct cli *cli, const struct cli_solve_request *request,
                        const struct json_input *input, struct error *err);

/* Solves parallelism, devices and starts of whole jobs: planner/saturn/spase/spase.h. */
enum status solve_spase(struct cli *cli, const struct cli_solve_request *request,
                        const struct json_input *input, struct error *err);

#endif
