/*
 * Fitted and held-out runs.
 *
 * A half is every other run, or a seed's draw: runs that differ only in batch size are in both halves, with their
 * common effects. Only a held-out group gives the error for unseen runs: all of one width (--hold-out), or every group
 * in turn (--folds).
 *
 * Source: Stone, Cross-Validatory Choice and Assessment of Statistical Predictions, 1974.
 */
#ifndef SPILLWAY_CLI_MACHINE_CLI_CALIBRATE_SPLIT_H
#define SPILLWAY_CLI_MACHINE_CLI_CALIBRATE_SPLIT_H

#include "cli/machine/cli_runs.h"

enum { CALIBRATION_HELD_MAX = 16, CALIBRATION_FOLDS_MAX = 64, CALIBRATION_LABEL_BYTES = 64 };

/* Runs by a column's value. */
struct calibration_group {
    enum run_column column;
    uint32_t value;
};

/* Fitted runs are in the half, not in the fold and in no group. */
struct calibration_split {
    enum {
        CALIBRATION_HALF_ALL,
        CALIBRATION_HALF_EVEN,
        CALIBRATION_HALF_ODD,
        CALIBRATION_HALF_BY_SEED,
        CALIBRATION_HALF_NONE
    } half; /* by index in the file, from 0 */
    uint64_t seed;
    uint32_t fold, folds; /* i mod folds = fold; folds 0: none */
    struct calibration_group held[CALIBRATION_HELD_MAX];
    uint32_t held_count;
};
bool calibration_is_fitted(const struct calibration_split *split, const struct measured_run *run, uint32_t index);

/* Read "none", "all", "even", "odd" or a seed; "COLUMN=VALUE", added to the groups. Errors: STATUS_BAD_INPUT. */
MUST_CHECK enum status calibration_half_parse(const char *text, struct calibration_split *out, struct error *err);
MUST_CHECK enum status calibration_held_parse(const char *text, struct calibration_split *out, struct error *err);

/* Each run is held out once: by index, or by a column's values, smallest first. */
struct calibration_folds {
    uint32_t count; /* 0: none */
    bool by_column;
    enum run_column column;
    uint32_t values[CALIBRATION_FOLDS_MAX];
};

/* Reads a number from 2, or a column with several values. Errors: STATUS_BAD_INPUT. */
MUST_CHECK enum status calibration_folds_parse(const char *text, const struct measured_runs *sets, uint32_t set_count,
                                               struct calibration_folds *out, struct error *err);
struct calibration_split calibration_fold(const struct calibration_folds *folds, uint32_t index);

/* Returns "fold 2 of 5" or "micro batch 4". */
void calibration_fold_label(const struct calibration_folds *folds, uint32_t index, char label[CALIBRATION_LABEL_BYTES]);

#endif
