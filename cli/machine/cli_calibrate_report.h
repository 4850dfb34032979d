/* The report of `calibrate`, as text and as JSON. */
#ifndef SPILLWAY_CLI_MACHINE_CLI_CALIBRATE_REPORT_H
#define SPILLWAY_CLI_MACHINE_CLI_CALIBRATE_REPORT_H

#include "cli/common/cli.h"
#include "cli/machine/cli_calibrate.h"
#include "cli/machine/cli_calibrate_split.h"

enum { CALIBRATION_SETS_MAX = 16 };

/* Statistics of predicted / measured - 1. */
struct calibration_error {
    double mean_absolute, mean, largest; /* ratios; largest: absolute */
    uint32_t runs;
};

/* A file's runs, fitted or held out. */
struct calibration_judged {
    double *seconds; /* predicted; with folds, by the fit that held the run out */
    struct calibration_error fitted, held;
};

struct calibration_outcome {
    struct arena arena; /* owns all arrays */
    const char *machine, *output; /* output: may be NULL */
    struct measured_runs sets[CALIBRATION_SETS_MAX];
    struct calibration_judged of[CALIBRATION_SETS_MAX];
    uint32_t set_count;
    struct calibration_split split;
    struct calibration_folds folds;
    struct calibration_error (*fold_errors)[CALIBRATION_SETS_MAX]; /* (folds.count): of held-out runs */
    double start[CALIBRATION_VALUES], end[CALIBRATION_VALUES]; /* equal with folds */
};

MUST_CHECK enum status calibration_report_text(struct cli *cli, const struct calibration_outcome *outcome,
                                               struct error *err);
MUST_CHECK enum status calibration_report_json(struct cli *cli, const struct calibration_outcome *outcome,
                                               struct error *err);

#endif
