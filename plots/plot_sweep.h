/*
 * Pictures of a figure that was asked for at many points: curves, a heat map, the front of two figures.
 *
 * As in plot.h: drawn by gnuplot, there whole or not at all; errors and `options` are those of plot.h (the window means
 * nothing here; keep_script leaves NAME.gp). Names are borrowed.
 */
#ifndef SPILLWAY_PLOTS_PLOT_SWEEP_H
#define SPILLWAY_PLOTS_PLOT_SWEEP_H

#include "plots/plot.h"

enum { PLOT_CURVES_MAX = 16, PLOT_CELLS_MAX = 250000 };

/* What an axis of a picture counts. */
struct plot_ticks {
    const char *title;         /* "link-rate (GB/s)" */
    const char *const *labels; /* not NULL: values are 0, 1, 2, ..., which are called so */
    uint32_t label_count;
};

struct plot_curve {
    const char *name; /* NULL when it is the only one */
    const double *x, *y;
    uint32_t count;   /* points; those whose y is NAN are left out */
};

/* One line each, with its points. STATUS_LIMIT past PLOT_CURVES_MAX. */
MUST_CHECK enum status plot_curves(const struct plot_curve *curves, uint32_t count, const struct plot_ticks *x,
                                   const struct plot_ticks *y, const char *path, const struct plot_options *options,
                                   struct error *err);

/* values[y * x->label_count + x], one cell each, darker where there is more; NAN: an empty cell. */
MUST_CHECK enum status plot_heat(const double *values, const struct plot_ticks *x, const struct plot_ticks *y,
                                 const char *figure, const char *path, const struct plot_options *options,
                                 struct error *err);

/* All points, faint; those on the front joined in order of x and marked. */
MUST_CHECK enum status plot_front(const double *x, const double *y, const bool *on_front, uint64_t count,
                                  const char *x_title, const char *y_title, const char *path,
                                  const struct plot_options *options, struct error *err);

#endif
