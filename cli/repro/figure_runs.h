/* A figure's runs, made from templates. */
#ifndef SPILLWAY_CLI_REPRO_FIGURE_RUNS_H
#define SPILLWAY_CLI_REPRO_FIGURE_RUNS_H

#include "cli/repro/figure.h"
#include "cli/repro/run_set.h"

/*
 * Adds all runs to `set`. *indexes, in `arena`: entry r * figure->run_count + k for row r and run k. A run gets only
 * files that its arguments name, directly or not, so that rows share runs. Errors: as template_expand() and
 * run_set_add(); STATUS_IO for a file that is named by its path.
 */
MUST_CHECK enum status figure_add_runs(const struct figure *figure, struct run_set *set, struct arena *arena,
                                       const uint32_t **indexes, struct error *err);

#endif
