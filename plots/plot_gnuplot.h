/* From a script to a picture. */
#ifndef SPILLWAY_PLOTS_PLOT_GNUPLOT_H
#define SPILLWAY_PLOTS_PLOT_GNUPLOT_H

#include <stdbool.h>

#include "base/error.h"
#include "plots/plot_script.h"

/* Does `path` end as a picture that can be drawn does? Asked before the work is done. */
MUST_CHECK enum status plot_check_path(const char *path, struct error *err);

/*
 * Let gnuplot draw `script` (its width and height set) to `path`; with `keep`, write the script
 * beside it first, so that it is there even where gnuplot is not.
 */
MUST_CHECK enum status plot_draw(const struct plot_script *script, const char *path, bool keep,
                                 struct error *err);

#endif
