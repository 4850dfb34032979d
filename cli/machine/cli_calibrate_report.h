/* What `calibrate` found, as text and as JSON. */
#ifndef SPILLWAY_CLI_CALIBRATE_REPORT_H
#define SPILLWAY_CLI_CALIBRATE_REPORT_H

#include "cli/common/cli.h"
#include "cli/machine/cli_calibrate.h"
#include "cli/machine/cli_calibrate_split.h"

enum { CALIBRATION_SETS_MAX = 16 };

/* Of predicted over measured less 1. */
struct calibration_error {
    double mean_absolute, mean, largest; /* ratios; largest without its sign */
    uint32_t runs;
};

/* Of a file's runs; each one is fitted to or held out. */
struct calibration_judged {
    double *seconds; /* predicted; with folds, by the fit that did not see the run */
    struct calibration_error fitted, held;
};

struct calibration_outcome {
    struct arena arena; /* everything is in it */
    const char *machine, *output; /* output: NULL where nothing is written */
    struct measured_runs sets[CALIBRATION_SETS_MAX];
    struct calibration_judged of[CALIBRATION_SETS_MAX];
    uint32_t set_count;
    struct calibration_split split;
    struct calibration_folds folds;
    struct calibration_error (*fold_errors)[CALIBRATION_SETS_MAX]; /* (folds.count): of what each holds out */
    double start[FIT_FIGURES], end[FIT_FIGURES]; /* the same with folds: each ends elsewhere */
};

MUST_CHECK enum status calibration_report_text(struct cli *cli, const struct calibration_outcome *outcome, struct error *err);
MUST_CHECK enum status calibration_report_json(struct cli *cli, const struct calibration_outcome *outcome, struct error *err);

#endif
