/* Points are computed by child processes on all cores and ranks, and stored as they end. */
#ifndef SPILLWAY_CLI_SWEEP_CLI_SWEEP_RUN_H
#define SPILLWAY_CLI_SWEEP_CLI_SWEEP_RUN_H

#include "cli/sweep/cli_sweep_command.h"
#include "cli/sweep/kept.h"
#include "cli/sweep/ranks.h"

struct cli_sweep {
    const struct cli_sweep_command *command;
    const struct sweep_grid *grid;
    struct sweep_results *results;
    struct sweep_kept *kept;         /* NULL: not stored */
    const struct sweep_ranks *ranks;
    uint32_t processes;              /* of this rank at a time */
};

/*
 * Computes pending points. Afterwards rank 0 has all results, others their own. Errors: STATUS_DEVICE when a child
 * fails without an answer, STATUS_INTERRUPTED, STATUS_IO.
 */
MUST_CHECK enum status cli_sweep_run(const struct cli_sweep *sweep, struct error *err);

/* Returns "devices=4, link-rate=12GB/s". */
enum { CLI_SWEEP_POINT_BYTES = 512 };
const char *cli_sweep_point(const struct sweep_grid *grid, uint64_t point, char text[CLI_SWEEP_POINT_BYTES]);

#endif
