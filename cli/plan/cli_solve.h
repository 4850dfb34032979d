/*
 * `solve`: the best schedule of a problem and its proof. A version key names the kind ("spillway_instance": 1), which
 * is a file of this folder and a row of verb_solve.c.
 */
#ifndef SPILLWAY_CLI_PLAN_CLI_SOLVE_H
#define SPILLWAY_CLI_PLAN_CLI_SOLVE_H

#include "base/json/json_in.h"
#include "base/json/json_out.h"
#include "base/json/json_stream.h"
#include "cli/common/cli.h"
#include "planner/solve/certify/certify.h"
#include "planner/solve/milp/milp.h"

/* A kind refuses options that it does not use. */
struct cli_solve_request {
    const char *path;
    double limit_s;      /* of the call; 0: first schedule and bounds only */
    uint64_t seed;
    uint64_t iterations; /* of the search; 0: only time limits */
    const char *solver;  /* "glpk", "cbc", "highs", a program; may be NULL */
    const char *lp, *mps; /* the integer program; may be NULL */
    const char *output;   /* for the schedule; may be NULL */
    uint64_t interval;    /* SPASE: ticks between looks at the plan; 0: none */
    uint64_t threshold;   /* ticks that a new plan must gain; UINT64_MAX: half an interval */
    uint64_t restart;     /* ticks lost by a stopped job */
};

/* Solve the problem of a file; the first one reads it as a stream. */
typedef enum status (*cli_solve_stream)(struct cli *cli, const struct cli_solve_request *request,
                                        struct json_stream *file, struct error *err);
typedef enum status (*cli_solve)(struct cli *cli, const struct cli_solve_request *request,
                                 const struct json_input *input, struct error *err);

/* --- common parts of the reports --------------------------------------------------------------- */

/* In ticks. Strings are borrowed. */
struct cli_solved {
    const char *problem, *name;
    const char *objective; /* NULL: there is only one */
    enum certificate_status status;
    int64_t value, bound;
    double gap;
    const char *bound_kind, *proof;
};

/* Seconds of each part. */
struct cli_solve_work {
    uint64_t iterations, nodes;
    double bound_s, search_s, exact_s, solver_s;
    const char *solver; /* may be NULL */
};

/* Write a report's first keys, and the work's; as text, lines of bound, proof and work. */
void cli_solved_json(const struct cli_solved *solved, const struct cli_solve_request *request,
                     struct json_out *json);
void cli_solve_work_json(const struct cli_solve_work *work, struct json_out *json);
void cli_solved_text(const struct cli_solved *solved, FILE *out);
void cli_solve_work_text(const struct cli_solve_work *work, FILE *out);

/* Writes the files that were asked for. */
MUST_CHECK enum status cli_solve_write_milp(const struct cli_solve_request *request,
                                            const struct milp *milp, struct error *err);

/* --- kinds ------------------------------------------------------------------------------------- */

/* Solves shard schedules: planner/solve/instance/instance.h. */
enum status solve_instance(struct cli *cli, const struct cli_solve_request *request,
                           struct json_stream *file, struct error *err);

/* Solves keep, swap or recompute: planner/chain/chain.h. */
enum status solve_chain(struct cli *cli, const struct cli_solve_request *request,
                        const struct json_input *input, struct error *err);

/* Solves parallelism, devices and starts: planner/saturn/spase/spase.h. */
enum status solve_spase(struct cli *cli, const struct cli_solve_request *request,
                        const struct json_input *input, struct error *err);

#endif
