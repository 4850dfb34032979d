/* Runs gnuplot to turn a script into a picture. */
#ifndef SPILLWAY_PLOTS_PLOT_GNUPLOT_H
#define SPILLWAY_PLOTS_PLOT_GNUPLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "plots/plot_script.h"

struct plot_options;

/* Checks that `path` has the ending of a picture that can be drawn. Callers check before they start
 * to work. */
MUST_CHECK enum status plot_check_path(const char *path, struct error *err);

/* Finds the width of a picture from the options. Errors: STATUS_BAD_INPUT when it is out of range. */
MUST_CHECK enum status plot_width(const struct plot_options *options, uint32_t default_px, uint32_t *width_px,
                                  struct error *err);

/*
 * Lets gnuplot draw `script`, whose width and height are set, to `path`. With `keep`, first writes
 * the script next to the picture, so that it exists even without gnuplot.
 */
MUST_CHECK enum status plot_draw(const struct plot_script *script, const char *path, bool keep,
                                 struct error *err);

#endif
