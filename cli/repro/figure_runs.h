/* The runs of a figure, row by row, made from its templates. */
#ifndef SPILLWAY_CLI_REPRO_FIGURE_RUNS_H
#define SPILLWAY_CLI_REPRO_FIGURE_RUNS_H

#include "cli/repro/figure.h"
#include "cli/repro/run_set.h"

/*
 * Adds all runs of all rows to `set`. *indexes, in `arena`: for row r and run k of the figure, entry r *
 * figure->run_count + k is the run's index in the set. A run gets only the files that its arguments name, and the files
 * that these name in turn; so rows that differ elsewhere share runs. Errors: as template_expand() and
 * run_set_add(); STATUS_IO for a file that is named by its path.
 */
MUST_CHECK enum status figure_add_runs(const struct figure *figure, struct run_set *set, struct arena *arena,
                                       const uint32_t **indexes, struct error *err);

#endif
