/*
 * Results of training, ranked.
 *
 * Jobs are ranked by the best held-out loss if all have one, else by the last minibatch's. Non-finite and missing
 * losses come last; ties keep the plan's order.
 */
#ifndef SPILLWAY_CLI_REPORTS_CLI_RESULTS_H
#define SPILLWAY_CLI_REPORTS_CLI_RESULTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/json/json_in.h"
#include "base/json/json_out.h"
#include "cli/ways/cli_predict.h"

/* On held-out data. */
struct cli_evaluation {
    bool some;           /* some loss was finite; else the next four are invalid */
    bool last_finite;    /* the last loss was finite */
    double best, last;
    uint64_t best_step;  /* minibatches before the best */
    const char *weights_path; /* of the best; may be NULL */
};

/* Reads keys of evaluations, if there; strings are borrowed from the input. */
MUST_CHECK enum status cli_evaluation_read(struct json_object *object, struct cli_evaluation *out,
                                           struct error *err);

struct cli_result {
    const char *name;         /* borrowed */
    bool complete_before;     /* nothing was left to a resumed run; no speed, no time */
    bool has_loss;            /* some loss was finite */
    bool nonfinite;           /* some loss was not */
    double final_loss;
    struct cli_evaluation evaluation;
    double tokens_per_s, seconds;
    double rate;              /* in the table's unit */
    const char *weights_path; /* NULL: not written */
};

/* Prints at most CLI_ROWS_MAX rows, the best job first. */
MUST_CHECK enum status cli_results_print(FILE *out, const struct cli_result *results, uint32_t count,
                                         enum job_unit unit, struct error *err);

/* Writes "ranked_by" and "results", the best first. STATUS_NO_MEMORY, before anything is written. */
MUST_CHECK enum status cli_results_json(struct json_out *json, const struct cli_result *results,
                                        uint32_t count, struct error *err);

#endif
