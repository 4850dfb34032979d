/* Runs gnuplot to turn a script into a picture. */
#ifndef SPILLWAY_PLOTS_PLOT_GNUPLOT_H
#define SPILLWAY_PLOTS_PLOT_GNUPLOT_H

#include <stdbool.h>

#include "base/error.h"
#include "plots/plot_script.h"

/* Checks that `path` has the ending of a picture that can be drawn. Callers check before they start
 * to work. */
MUST_CHECK enum status plot_check_path(const char *path, struct error *err);

/*
 * Lets gnuplot draw `script`, whose width and height are set, to `path`. With `keep`, first writes
 * the script next to the picture, so that it exists even without gnuplot.
 */
MUST_CHECK enum status plot_draw(const struct plot_script *script, const char *path, bool keep,
                                 struct error *err);

#endif
