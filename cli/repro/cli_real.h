/*
 * `repro run --real`: runs a figure's real set-up on this machine by its commands ("plan", "simulate --trace", "run
 * --trace"). Only one run is active at a time, so that runs do not disturb each other's measurements.
 */
#ifndef SPILLWAY_CLI_REPRO_CLI_REAL_H
#define SPILLWAY_CLI_REPRO_CLI_REAL_H

#include "cli/common/cli.h"
#include "cli/repro/figure_result.h"

/* Names of the traces in the folder of a run. */
#define CLI_REAL_PREDICTED "predicted.json.gz"
#define CLI_REAL_MEASURED "measured.json.gz"

/*
 * Checks, before any run, that the machine has the memory that the figure asks for. With `output` (may be NULL) the
 * files of all runs are kept in output/runs, which is made; `kept` holds that path and must live as long as the
 * options. Errors: STATUS_DEVICE for too little memory, STATUS_IO, STATUS_LIMIT.
 */
MUST_CHECK enum status cli_real_begin(const struct figure *figure, const char *output, char kept[CLI_PATH_BYTES],
                                      struct run_set_options *options, struct error *err);

/* Warns if other programs or machines took part of the processors during the runs, according to their answers. */
void cli_real_warn_load(struct cli *cli, const struct run_set *set);

/* Suggests the command that compares the traces of the worst point, if its run kept them. */
void cli_real_next(struct cli *cli, const struct figure_result *result, const struct run_set *set,
                   const uint32_t *indexes, const char *output);

#endif
