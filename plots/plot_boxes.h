/* Turns the spans of a trace into boxes in rows, few enough to draw. */
#ifndef SPILLWAY_PLOTS_PLOT_BOXES_H
#define SPILLWAY_PLOTS_PLOT_BOXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plots/plot_color.h"

struct trace;

/* Horizontal positions count pixels from the left end of the time axis; vertical positions are
 * fractions of the row. */
struct plot_box {
    double from_px, to_px;
    double from_part, to_part; /* 0 at the bottom of the row, 1 at its top */
    uint32_t row;
    uint32_t job;         /* UINT32_MAX: several jobs */
    uint32_t shard;       /* shard of the first span; 0 for boxes of shares */
    enum plot_shade shade; /* PLOT_SHADE_COUNT: a collective */
    bool merged;          /* holds more than one span */
    double last_px;       /* width of the last span added */
};

struct plot_window {
    double from_s, to_s;
    double width_px;
};

#define PLOT_ROW_NONE UINT32_MAX
struct plot_rows {
    const uint32_t *of_stream; /* row of each stream, or PLOT_ROW_NONE */
    uint32_t count;
};

/*
 * Makes one box per span. Neighbours of one colour in a row that could not be told apart become one
 * box. Returns the number of boxes, and stores them if `boxes`, which must have room, is not NULL.
 * `open` is scratch of rows->count entries.
 */
size_t plot_boxes_of_spans(const struct trace *trace, const struct plot_window *window,
                           const struct plot_rows *rows, struct plot_box *open,
                           struct plot_box *boxes);

/*
 * Divides the window into bin_count parts. Each part of a row has a stack of boxes, whose heights
 * are the jobs' shares of the time; the rest is idle. Rows of copies have one box for all jobs.
 * Otherwise works as plot_boxes_of_spans(). `busy_px` is scratch of rows->count * job_count
 * entries.
 */
size_t plot_boxes_of_shares(const struct trace *trace, const struct plot_window *window,
                            const struct plot_rows *rows, uint32_t bin_count, double *busy_px,
                            struct plot_box *open, struct plot_box *boxes);

#endif
