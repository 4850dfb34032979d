/*
 * The results of training: which job came out best?
 *
 * Jobs are ranked by the best loss on held-out data when all of them have one, else by the loss of
 * their last minibatch; losses that are not finite and jobs without any come last, and ties stay in
 * the order of the plan.
 */
#ifndef SPILLWAY_CLI_RESULTS_H
#define SPILLWAY_CLI_RESULTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/json/json_in.h"
#include "base/json/json_out.h"
#include "cli/ways/cli_predict.h"

/* What evaluations on held-out data came to. */
struct cli_evaluation {
    bool some;           /* with a finite loss at least once; else the next four mean nothing */
    bool last_finite;    /* the last one's loss was */
    double best, last;
    uint64_t best_step;  /* after which the best one was, from 1 */
    const char *weights_path; /* of the best one; NULL: not written */
};

/* The keys that the executor has for them, if it has; strings are borrowed from the input. */
MUST_CHECK enum status cli_take_evaluation(struct json_object *object, struct cli_evaluation *out,
                                           struct error *err);

struct cli_result {
    const char *name;         /* borrowed, as all strings */
    bool complete_before;     /* a resumed run had nothing left to do: it has no speed and no time */
    bool has_loss;            /* of a minibatch, and finite */
    bool nonfinite;           /* some loss was not */
    double final_loss;
    struct cli_evaluation evaluation;
    double tokens_per_s, seconds;
    double rate;              /* in the unit of the table */
    const char *weights_path; /* NULL: not written */
};

/* Prints a table, the best job first; at most CLI_ROWS_MAX rows. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status cli_results_print(FILE *out, const struct cli_result *results, uint32_t count,
                                         enum cli_unit unit, struct error *err);

/* "ranked_by" and "results", the best job first. STATUS_NO_MEMORY, before anything is written. */
MUST_CHECK enum status cli_results_json(struct json_out *json, const struct cli_result *results,
                                        uint32_t count, struct error *err);

#endif
