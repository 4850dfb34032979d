/*
 * `repro run --real`: runs a figure's real set-up by commands ("plan", "simulate --trace", "run --trace"), one at a
 * time, so that measurements are not disturbed.
 */
#ifndef SPILLWAY_CLI_REPRO_CLI_REAL_H
#define SPILLWAY_CLI_REPRO_CLI_REAL_H

#include "cli/common/cli.h"
#include "cli/repro/figure_result.h"

/* In a run's folder. */
#define CLI_REAL_PREDICTED "predicted.json.gz"
#define CLI_REAL_MEASURED "measured.json.gz"

/*
 * Checks first that the machine has the memory. With `output` (may be NULL) files are kept in output/runs, which is
 * made; `kept` holds that path as long as the options live. Errors: STATUS_DEVICE for too little memory, STATUS_IO,
 * STATUS_LIMIT.
 */
MUST_CHECK enum status cli_real_begin(const struct figure *figure, const char *output, char kept[CLI_PATH_BYTES],
                                      struct run_set_options *options, struct error *err);

/* Warns if others took processor time during the runs. */
void cli_real_warn_load(struct cli *cli, const struct run_set *set);

/* Suggests the comparison of the worst point's traces, if kept. */
void cli_real_next(struct cli *cli, const struct figure_result *result, const struct run_set *set,
                   const uint32_t *indexes, const char *output);

#endif
