/*
 * The results of training, ranked.
 *
 * Jobs are ranked by the best loss on held-out data if all of them have one, else by the loss of
 * their last minibatch. Non-finite losses and jobs without a loss come last; ties keep the order of
 * the plan.
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

/* The results of evaluations on held-out data. */
struct cli_evaluation {
    bool some;           /* some evaluation had a finite loss; else the next four fields are
                            invalid */
    bool last_finite;    /* the last evaluation had a finite loss */
    double best, last;
    uint64_t best_step;  /* minibatches before the best evaluation */
    const char *weights_path; /* weights of the best evaluation; NULL: not written */
};

/* Reads the executor's keys of evaluations, if they are there; strings are borrowed from the
 * input. */
MUST_CHECK enum status cli_evaluation_read(struct json_object *object, struct cli_evaluation *out,
                                           struct error *err);

struct cli_result {
    const char *name;         /* borrowed, like all strings */
    bool complete_before;     /* a resumed run had no remaining minibatches; it has no speed and no
                                 time */
    bool has_loss;            /* a minibatch had a finite loss */
    bool nonfinite;           /* some loss was not finite */
    double final_loss;
    struct cli_evaluation evaluation;
    double tokens_per_s, seconds;
    double rate;              /* in the unit of the table */
    const char *weights_path; /* NULL: not written */
};

/* Prints a table, the best job first; at most CLI_ROWS_MAX rows. */
MUST_CHECK enum status cli_results_print(FILE *out, const struct cli_result *results, uint32_t count,
                                         enum cli_unit unit, struct error *err);

/* "ranked_by" and "results", the best job first. STATUS_NO_MEMORY, before anything is written. */
MUST_CHECK enum status cli_results_json(struct json_out *json, const struct cli_result *results,
                                        uint32_t count, struct error *err);

#endif
