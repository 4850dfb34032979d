/* Turns the spans of a trace into boxes in rows, few enough to draw. */
#ifndef SPILLWAY_PLOTS_PLOT_BOXES_H
#define SPILLWAY_PLOTS_PLOT_BOXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "plots/plot_color.h"

struct trace;
struct trace_span;

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

/*
 * Boxes that are made from spans, in plan order. With bin_count 0 a span is a box; neighbours of one colour in a row
 * that could not be told apart become one box. Otherwise the window is divided into bin_count parts. Each part of a
 * row has a stack of boxes, whose heights are the jobs' shares of the time; the rest is idle. Rows of copies have one
 * box for all jobs.
 *
 *     plot_boxes_begin -> for each trace: plot_boxes_add for each of its spans, plot_boxes_end -> plot_boxes_release
 */
struct plot_boxes {
    /* The caller sets these and zeroes the rest. */
    struct plot_window window;
    uint32_t row_count, job_count, bin_count;
    size_t limit; /* number of boxes that are kept */

    struct plot_box *items; /* the first `limit` of them */
    size_t count;           /* of all boxes */
    size_t capacity;
    struct plot_box *open;  /* by row */
    double *busy_px;        /* by row and job: sums of the open bin; NULL without bins */
};

/* The caller releases the boxes also after an error. Errors of all functions: STATUS_NO_MEMORY. */
MUST_CHECK enum status plot_boxes_begin(struct plot_boxes *boxes, struct error *err);

/* Adds a span to a row; does nothing for PLOT_ROW_NONE. */
MUST_CHECK enum status plot_boxes_add(struct plot_boxes *boxes, const struct trace_span *span, uint32_t row,
                                      struct error *err);

/* Closes the rows of a trace: row_of_stream[s] is the row of its stream s, or PLOT_ROW_NONE. */
MUST_CHECK enum status plot_boxes_end(struct plot_boxes *boxes, const struct trace *trace,
                                      const uint32_t *row_of_stream, struct error *err);
void plot_boxes_release(struct plot_boxes *boxes);

#endif
