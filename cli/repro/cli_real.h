/*
 * `repro run --real`: a figure's real set-up is carried out on this machine, as its commands say ("plan", "simulate
 * --trace", "run --trace"), one run at a time, so that nothing is measured beside anything else.
 */
#ifndef SPILLWAY_CLI_REAL_H
#define SPILLWAY_CLI_REAL_H

#include "cli/common/cli.h"
#include "cli/repro/figure_result.h"

/* What traces are called in the folder of a run. */
#define CLI_REAL_PREDICTED "predicted.json.gz"
#define CLI_REAL_MEASURED "measured.json.gz"

/*
 * Before anything runs: is there the memory that the figure asks for? With `output` (which may be NULL) what runs leave
 * is kept in output/runs, which is made; `kept` is its path while the options are used. Errors: STATUS_DEVICE for too
 * little memory, STATUS_IO, STATUS_LIMIT.
 */
MUST_CHECK enum status cli_real_begin(const struct figure *figure, const char *output, char kept[CLI_PATH_BYTES],
                                      struct run_set_options *options, struct error *err);

/* Warns when other programs or machines took part of the processors during the runs, as their answers say. */
void cli_real_warn_load(struct cli *cli, const struct run_set *set);

/* The command that lays the traces of the worst point side by side, if its run has left them. */
void cli_real_next(struct cli *cli, const struct figure_result *result, const struct run_set *set,
                   const uint32_t *indexes, const char *output);

#endif
