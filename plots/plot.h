/*
 * Pictures of traces and of policies, drawn by gnuplot.
 *
 * The name of the picture says its form: .svg or .png. gnuplot runs as a child process and is found
 * on PATH; what it draws depends on its script alone, so that equal traces give equal SVGs. The
 * picture is there whole or not at all. With keep_script, NAME.gp stands beside NAME.svg: complete,
 * data included, for `gnuplot NAME.gp` after a change by hand.
 *
 * Errors of all: STATUS_BAD_INPUT (another ending, an empty window, traces of different
 * machines, nothing to draw); STATUS_DEVICE when gnuplot is missing or fails; STATUS_IO,
 * STATUS_NO_MEMORY.
 */
#ifndef SPILLWAY_PLOTS_PLOT_H
#define SPILLWAY_PLOTS_PLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct trace;

/* More rows than these make a picture that no screen shows; the picture then says how many there
 * are. More boxes make an SVG that browsers scroll slowly; neighbours are merged until they fit. */
enum { PLOT_DEVICES_MAX = 32, PLOT_HOSTS_MAX = 8, PLOT_BOXES_MAX = 4000, PLOT_POLICIES_MAX = 128 };

struct plot_options {
    const char *title;   /* NULL: made from the traces */
    double from_s, to_s; /* the part of the run to draw; to_s 0: up to its end */
    uint32_t width_px;   /* 0: 1200 (throughput: 1000); 600 to 20000 */
    bool keep_script;
};

/*
 * Who ran what, when: for each device its computations and, in thin rows, its copies; a colour per
 * job, lighter forward and darker backward; a prediction above its measurement on one time axis.
 * Either trace may be NULL, not both.
 */
MUST_CHECK enum status plot_timeline(const struct trace *predicted, const struct trace *measured,
                                     const char *path, const struct plot_options *options,
                                     struct error *err);

/* Memory in use at each place over time, below its capacity. Either trace may be NULL, not both. */
MUST_CHECK enum status plot_memory(const struct trace *predicted, const struct trace *measured,
                                   const char *path, const struct plot_options *options,
                                   struct error *err);

struct plot_policy {
    const char *name;
    double makespan_s;             /* predicted, > 0 */
    double tokens_per_s;           /* of all jobs over the makespan */
    bool measured;                 /* the next two are there */
    double measured_makespan_s;
    double measured_tokens_per_s;
};

/*
 * Throughput of policies for the same jobs as bars, in the order given. `lower_bound_s` > 0 is a
 * proven lower bound on the makespan: a line at the throughput that nothing can exceed.
 * The window of `options` means nothing here.
 */
MUST_CHECK enum status plot_throughput(const struct plot_policy *policies, uint32_t count,
                                       double lower_bound_s, const char *path,
                                       const struct plot_options *options, struct error *err);

/* What moving a figure from one end of what it may be to the other does to a result: `low` to `high`, each relative to it. */
struct plot_effect {
    const char *name;
    double low, high;
};
enum { PLOT_EFFECTS_MAX = 64 };

/* A tornado: a bar for each, in the order given. The window of `options` means nothing here. */
MUST_CHECK enum status plot_tornado(const struct plot_effect *effects, uint32_t count, const char *path,
                                    const struct plot_options *options, struct error *err);

struct plot_dot {
    bool known;
    double mean, half, worst; /* of values over a bound; half the width of the 95 % interval */
};
struct plot_ratio {
    const char *name;
    struct plot_dot dots[2];
};

/* Policies over the bound, with intervals. labels[1] NULL: only the first dots are drawn. The window of
 * `options` means nothing here. */
MUST_CHECK enum status plot_ratios(const struct plot_ratio *rows, uint32_t count,
                                   const char *const labels[2], const char *path,
                                   const struct plot_options *options, struct error *err);

#endif
