/* Tables, JSON and pictures of a sweep. */
#ifndef SPILLWAY_CLI_SWEEP_CLI_SWEEP_REPORT_H
#define SPILLWAY_CLI_SWEEP_CLI_SWEEP_REPORT_H

#include "cli/sweep/cli_sweep_command.h"
#include "cli/sweep/results.h"

struct cli_sweep_pictures {
    const char *curves, *heat, *front; /* may be NULL */
    bool keep_scripts;
};

/* Checks before the sweep. Errors: STATUS_BAD_INPUT. */
MUST_CHECK enum status cli_sweep_pictures_check(const struct cli_sweep_pictures *pictures,
                                                const struct sweep_grid *grid,
                                                uint32_t figure_count, struct error *err);

/*
 * Draws pictures. Curves: the first figure over the first axis, one for each value of the others. Heat: over the first
 * two axes (best over others). Front: the first and second figure. Errors: as in plots/plot.h.
 */
MUST_CHECK enum status cli_sweep_pictures_draw(const struct cli_sweep_pictures *pictures,
                                               const struct sweep_results *results, struct error *err);

/* Prints the tables. outputs: written files, ends with NULL. */
MUST_CHECK enum status cli_sweep_text(FILE *out, const struct sweep_results *results, const char *const *outputs,
                                      struct error *err);
MUST_CHECK enum status cli_sweep_json(struct cli *cli, const struct cli_sweep_command *command,
                                      const struct sweep_results *results, const char *const *outputs,
                                      struct error *err);

#endif
