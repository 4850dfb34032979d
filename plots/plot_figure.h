/* Draws a paper's figure: published (or measured) and simulated points, as bars or as lines over an axis. */
#ifndef SPILLWAY_PLOTS_PLOT_FIGURE_H
#define SPILLWAY_PLOTS_PLOT_FIGURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct plot_figure_value {
    bool known;
    double value; /* finite */
};

/* Most bars and lines that a picture shows; beyond that it says how many there are. */
enum { PLOT_FIGURE_BARS_MAX = 240, PLOT_FIGURE_LINES_MAX = 24 };

struct plot_figure {
    const char *title, *x_name, *y_name;
    bool lines;        /* lines; false: bars from 0 */
    bool x_log, y_log; /* logarithmic axes of lines; non-positive values are then left out */
    uint32_t row_count, series_count;
    const char *const *labels; /* (row_count) labels of bars; rows with equal labels form one line */
    const double *x;           /* (row_count) only for lines */
    const char *const *series; /* series_count */
    const struct plot_figure_value *reference, *simulated; /* (row_count, series_count) */
    const char *reference_name; /* "published", "measured" */
};

/* Draws the figure to `path` (.svg or .png). Errors as in plots/plot.h. */
MUST_CHECK enum status plot_figure_draw(const struct plot_figure *figure, const char *path, struct error *err);

#endif
