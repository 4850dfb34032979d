/*
 * Pictures of traces and of policies, drawn by gnuplot.
 *
 * The ending of the picture's name is its format: .svg or .png. gnuplot is found on PATH and runs as a child process.
 * Its output depends only on its script, so equal traces give equal SVGs. A picture is written whole or not at all.
 * With keep_script, NAME.gp is written next to NAME.svg: a complete script with data, for `gnuplot NAME.gp` after a
 * change by hand.
 *
 * Errors of all functions: STATUS_BAD_INPUT (another ending, an empty window, traces of different machines, nothing to
 * draw); STATUS_DEVICE when gnuplot is missing or fails; STATUS_IO.
 */
#ifndef SPILLWAY_PLOTS_PLOT_H
#define SPILLWAY_PLOTS_PLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct trace_reader;

/* A picture with more rows would not fit a screen; it shows this number and says how many rows there are. An SVG with
 * more boxes scrolls slowly in browsers; neighbouring boxes are merged until the number fits. */
enum { PLOT_DEVICES_MAX = 32, PLOT_HOSTS_MAX = 8, PLOT_BOXES_MAX = 4000, PLOT_POLICIES_MAX = 128 };

struct plot_options {
    const char *title;   /* NULL: derived from the traces */
    double from_s, to_s; /* the part of the run to draw; to_s 0: to its end */
    uint32_t width_px;   /* 0: 1200 (throughput: 1000); 600 to 20000 */
    bool keep_script;
};

/*
 * Draws the operations over time. Each device has a row of computations and thin rows of copies. Each job has a
 * colour, lighter for forward and darker for backward passes. A prediction is above its measurement, on one time
 * axis. Either trace may be NULL, not both.
 *
 * Traces are drawn while they are read, from the first span to the end, more than once. Memory does not grow with
 * their length. The readers have the window of `options`. Errors: also the errors of the readers.
 */
MUST_CHECK enum status plot_timeline_readers(struct trace_reader *predicted, struct trace_reader *measured,
                                             const char *path, const struct plot_options *options,
                                             struct error *err);

/* Draws the memory in use at each place over time, below its capacity. Traces as in plot_timeline_readers(). */
MUST_CHECK enum status plot_memory_readers(struct trace_reader *predicted, struct trace_reader *measured,
                                           const char *path, const struct plot_options *options,
                                           struct error *err);

struct plot_policy {
    const char *name;
    double makespan_s;             /* predicted, > 0 */
    double tokens_per_s;           /* all jobs together, over the makespan */
    bool measured;                 /* the next two fields are valid */
    double measured_makespan_s;
    double measured_tokens_per_s;
};

/*
 * Draws the throughput of policies for the same jobs as bars, in the given order. `lower_bound_s` > 0 is a proven
 * lower bound on the makespan; it is drawn as a line at the highest possible throughput. The window of `options` is
 * unused.
 */
MUST_CHECK enum status plot_throughput(const struct plot_policy *policies, uint32_t count,
                                       double lower_bound_s, const char *path,
                                       const struct plot_options *options, struct error *err);

/* The effect of a machine's figure on a result: the result for the figure's lower and upper end, relative to the
 * result. */
struct plot_effect {
    const char *name;
    double low, high;
};
enum { PLOT_EFFECTS_MAX = 64 };

/* Draws a tornado diagram: one bar per effect, in the given order. The window of `options` is unused. */
MUST_CHECK enum status plot_tornado(const struct plot_effect *effects, uint32_t count, const char *path,
                                    const struct plot_options *options, struct error *err);

struct plot_dot {
    bool known;
    double mean, half, worst; /* mean and worst of the values over a bound; half the width of the 95 % interval */
};
struct plot_ratio {
    const char *name;
    struct plot_dot dots[2];
};

/* Draws policies' results over the bound, with intervals. labels[1] NULL: only the first dots are drawn. The window
 * of `options` is unused. */
MUST_CHECK enum status plot_ratios(const struct plot_ratio *rows, uint32_t count,
                                   const char *const labels[2], const char *path,
                                   const struct plot_options *options, struct error *err);

#endif
