/* The spans of a trace as boxes in rows, few enough to be drawn. */
#ifndef SPILLWAY_PLOTS_PLOT_BOXES_H
#define SPILLWAY_PLOTS_PLOT_BOXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plots/plot_color.h"

struct trace;

/* Across, a box is placed in pixels from the left end of the time axis; up, in parts of its row. */
struct plot_box {
    double from_px, to_px;
    double from_part, to_part; /* 0 at the bottom of the row, 1 at its top */
    uint32_t row;
    uint32_t job;         /* UINT32_MAX: of any */
    uint32_t shard;       /* of its first span; boxes of shares: 0 */
    enum plot_shade shade; /* PLOT_SHADE_COUNT: a collective */
    bool merged;          /* more than one span */
    double last_px;       /* width of the last span that went in */
};

struct plot_window {
    double from_s, to_s;
    double width_px;
};

#define PLOT_ROW_NONE UINT32_MAX
struct plot_rows {
    const uint32_t *of_stream; /* which row a stream is drawn in, or PLOT_ROW_NONE */
    uint32_t count;
};

/*
 * A box per span, but that neighbours in a row of one colour are one box when they could not be told
 * apart. Returns how many there are; with `boxes` (room for them), they are stored.
 * `open` is scratch: rows->count entries.
 */
size_t plot_boxes_of_spans(const struct trace *trace, const struct plot_window *window,
                           const struct plot_rows *rows, struct plot_box *open,
                           struct plot_box *boxes);

/*
 * The window in bin_count parts; in each part and row, a stack of boxes whose heights are the share
 * of the part's time that each job took; what is left is idle. Rows of copies have one box for all
 * jobs. As above otherwise; `busy_px` is scratch: rows->count * job_count of the trace.
 */
size_t plot_boxes_of_shares(const struct trace *trace, const struct plot_window *window,
                            const struct plot_rows *rows, uint32_t bin_count, double *busy_px,
                            struct plot_box *open, struct plot_box *boxes);

#endif
