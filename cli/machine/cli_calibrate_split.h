/*
 * Which measured runs a fit sees, and which judge it.
 *
 * A half is every other run of a file, or what a seed draws. Runs that are alike but for their batch stand in both halves, so
 * what all of them share (a shape that a library is bad at, a node that was slow) is fitted as well as judged: an error
 * of what nobody has seen is that of a whole group, such as all runs of one width, which is held out (--hold-out), or of
 * every group in its turn (--folds).
 *
 * Source: Stone, Cross-Validatory Choice and Assessment of Statistical Predictions, 1974.
 */
#ifndef SPILLWAY_CLI_CALIBRATE_SPLIT_H
#define SPILLWAY_CLI_CALIBRATE_SPLIT_H

#include "cli/machine/cli_runs.h"

enum { CALIBRATION_HELD_MAX = 16, CALIBRATION_FOLDS_MAX = 64, CALIBRATION_LABEL_BYTES = 64 };

/* Runs that have this value in this column. */
struct calibration_group {
    enum run_column column;
    uint32_t value;
};

/* Fitted to is what is in the half, not in the fold, and in no group. */
struct calibration_split {
    enum { HALF_ALL, HALF_EVEN, HALF_ODD, HALF_BY_SEED, HALF_NONE } half; /* places of a file's runs, from 0 */
    uint64_t seed;
    uint32_t fold, folds; /* runs i with i mod folds = fold; folds 0: none */
    struct calibration_group held[CALIBRATION_HELD_MAX];
    uint32_t held_count;
};
bool calibration_is_fitted(const struct calibration_split *split, const struct measured_run *run, uint32_t index);

/* "none", "all", "even", "odd" or a seed; "COLUMN=VALUE", added to those that are there. Errors: STATUS_BAD_INPUT. */
MUST_CHECK enum status calibration_half_parse(const char *text, struct calibration_split *out, struct error *err);
MUST_CHECK enum status calibration_held_parse(const char *text, struct calibration_split *out, struct error *err);

/* Splits that hold out each run once: by place, or one for each value of a column, the smallest first. */
struct calibration_folds {
    uint32_t count; /* 0: none */
    bool by_column;
    enum run_column column;
    uint32_t values[CALIBRATION_FOLDS_MAX];
};

/* A number from 2 on, or the name of a column in which the sets have several values. Errors: STATUS_BAD_INPUT. */
MUST_CHECK enum status calibration_folds_parse(const char *text, const struct measured_runs *sets, uint32_t set_count,
                                               struct calibration_folds *out, struct error *err);
struct calibration_split calibration_fold(const struct calibration_folds *folds, uint32_t index);

/* "fold 2 of 5", "micro batch 4". */
void calibration_fold_label(const struct calibration_folds *folds, uint32_t index, char label[CALIBRATION_LABEL_BYTES]);

#endif
