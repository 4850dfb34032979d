/*
 * Pictures of a result at many points: curves, a heat map, the Pareto front of two results.
 *
 * As in plot.h, gnuplot draws, and a picture is written whole or not at all. Errors and `options` are as in plot.h;
 * the window is unused, and keep_script leaves NAME.gp. Names are borrowed.
 */
#ifndef SPILLWAY_PLOTS_PLOT_SWEEP_H
#define SPILLWAY_PLOTS_PLOT_SWEEP_H

#include "plots/plot.h"

enum { PLOT_CURVES_MAX = 16, PLOT_CELLS_MAX = 250000 };

/* An axis: its title and labels. */
struct plot_ticks {
    const char *title;         /* "link-rate (GB/s)" */
    const char *const *labels; /* if not NULL, values are 0, 1, 2, ... and have these labels */
    uint32_t label_count;
};

struct plot_curve {
    const char *name; /* NULL if there is only one curve */
    const double *x, *y;
    uint32_t count;   /* points; points whose y is NAN are left out */
};

/* Draws one line per curve, with its points. Errors: STATUS_LIMIT beyond PLOT_CURVES_MAX. */
MUST_CHECK enum status plot_curves(const struct plot_curve *curves, uint32_t count, const struct plot_ticks *x,
                                   const struct plot_ticks *y, const char *path, const struct plot_options *options,
                                   struct error *err);

/* Draws values[y * x->label_count + x] as cells, larger values darker; NAN: an empty cell. */
MUST_CHECK enum status plot_heat(const double *values, const struct plot_ticks *x, const struct plot_ticks *y,
                                 const char *figure, const char *path, const struct plot_options *options,
                                 struct error *err);

/* Draws all points in a faint colour, and marks the points on the front, joined in order of x. */
MUST_CHECK enum status plot_front(const double *x, const double *y, const bool *on_front, uint64_t count,
                                  const char *x_title, const char *y_title, const char *path,
                                  const struct plot_options *options, struct error *err);

#endif
