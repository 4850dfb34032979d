/* The report of a sweep: tables, JSON and pictures. */
#ifndef SPILLWAY_CLI_SWEEP_CLI_SWEEP_REPORT_H
#define SPILLWAY_CLI_SWEEP_CLI_SWEEP_REPORT_H

#include "cli/sweep/cli_sweep_command.h"
#include "cli/sweep/results.h"

struct cli_sweep_pictures {
    const char *curves, *heat, *front; /* paths; NULL: not asked for */
    bool keep_scripts;
};

/* Checks before the sweep that the pictures can be drawn. Errors: STATUS_BAD_INPUT. */
MUST_CHECK enum status cli_sweep_pictures_check(const struct cli_sweep_pictures *pictures, const struct sweep_grid *grid,
                                                uint32_t figure_count, struct error *err);

/*
 * Draws the pictures. Curves: the first figure over the first axis, one curve for each value of the other axes. Heat:
 * the first figure over the first two axes (the best value over further axes). Front: the first and the second figure.
 * Errors: as in plots/plot.h.
 */
MUST_CHECK enum status cli_sweep_pictures_draw(const struct cli_sweep_pictures *pictures,
                                               const struct sweep_results *results, struct error *err);

/* Prints the tables. outputs: names of written files, ends with NULL. */
MUST_CHECK enum status cli_sweep_text(FILE *out, const struct sweep_results *results, const char *const *outputs,
                                      struct error *err);
MUST_CHECK enum status cli_sweep_json(struct cli *cli, const struct cli_sweep_command *command,
                                      const struct sweep_results *results, const char *const *outputs, struct error *err);

#endif
