/*
 * A run of a million spans cannot show a million boxes: a screen is a thousand pixels wide.
 *
 * If there are few spans, each is a box. A quarter of a pixel of idle time is invisible, so
 * neighbours of one colour that are nearer become one box if one of them is narrow (below three
 * pixels). Wide boxes of one job keep the line between their shards.
 *
 * If there are many spans, the order of single spans is lost in any case. Drawing the span that
 * happens to fill most of a pixel would show noise as if it were order. The shares of time in each
 * interval are still correct, so these are drawn:
 *
 *     | idle  |                one bin of one row; a job's height is its share of the time
 *     | beta  |
 *     | alpha |
 *
 * Both ways read the spans once, in plan order, which is time order within a row. A row has one
 * open box (or one open bin with a sum per job), which is closed when the next one begins. The
 * caller first asks for the count and then for the boxes, so memory is needed only for boxes that
 * are drawn.
 */
#include "plots/plot_boxes.h"

#include <math.h>

#include "planner/plan.h"
#include "traces/trace.h"

static const double gap_px = 0.25, narrow_px = 3, least_part = 0.004;

/* --- spans ---------------------------------------------------------------------------------- */

static enum plot_shade shade_of(const struct trace_span *span)
{
    if (span->kind == OP_COPY) return PLOT_SHADE_BACKWARD; /* thin rows need strong colours */
    if (span->kind == OP_COLLECTIVE) return PLOT_SHADE_COUNT;
    switch (span->pass) {
    case PLAN_FORWARD: return PLOT_SHADE_FORWARD;
    case PLAN_LOSS:
    case PLAN_BACKWARD_WEIGHT: return PLOT_SHADE_LOSS;
    default: return PLOT_SHADE_BACKWARD;
    }
}

/* Returns false if nothing of the span is in the window. */
static bool make_box(const struct trace_span *span, const struct plot_window *window, uint32_t row,
                     struct plot_box *out)
{
    double from_s = fmax(span->start_s, window->from_s), to_s = fmin(span->end_s, window->to_s);
    if (row == PLOT_ROW_NONE || to_s <= from_s) return false;
    double px_per_s = window->width_px / (window->to_s - window->from_s);
    double from_px = (from_s - window->from_s) * px_per_s;
    double to_px = (to_s - window->from_s) * px_per_s;
    *out = (struct plot_box){.from_px = from_px,
                             .to_px = to_px,
                             .to_part = 1,
                             .row = row,
                             .job = span->job,
                             .shard = span->shard,
                             .shade = shade_of(span),
                             .last_px = to_px - from_px};
    return true;
}

static bool joins(const struct plot_box *open, const struct plot_box *next)
{
    return open->job == next->job && open->shade == next->shade &&
           next->from_px - open->to_px <= gap_px &&
           fmin(open->last_px, next->to_px - next->from_px) < narrow_px;
}

static void store(const struct plot_box *box, struct plot_box *boxes, size_t *count)
{
    if (boxes) boxes[*count] = *box;
    ++*count;
}

size_t plot_boxes_of_spans(const struct trace *trace, const struct plot_window *window,
                           const struct plot_rows *rows, struct plot_box *open,
                           struct plot_box *boxes)
{
    size_t count = 0;
    for (uint32_t r = 0; r < rows->count; r++) open[r].row = PLOT_ROW_NONE;
    for (uint64_t i = 0; i < trace->span_count; i++) {
        struct plot_box next;
        uint32_t row = rows->of_stream[trace->spans[i].stream];
        if (!make_box(&trace->spans[i], window, row, &next)) continue;
        struct plot_box *box = &open[row];
        if (box->row != PLOT_ROW_NONE && joins(box, &next)) {
            box->to_px = next.to_px;
            box->last_px = next.last_px;
            box->merged = true;
            continue;
        }
        if (box->row != PLOT_ROW_NONE) store(box, boxes, &count);
        *box = next;
    }
    for (uint32_t r = 0; r < rows->count; r++)
        if (open[r].row != PLOT_ROW_NONE) store(&open[r], boxes, &count);
    return count;
}

/* --- shares --------------------------------------------------------------------------------- */

/* Adds the stack of an open bin; its sums are zeroed for the next one. */
static void close_bin(const struct plot_box *bin, bool copies, double *busy_px, uint32_t job_count,
                      struct plot_box *boxes, size_t *count)
{
    struct plot_box box = *bin;
    double width_px = bin->to_px - bin->from_px;
    box.from_part = box.to_part = 0;
    for (uint32_t j = 0; j < job_count; j++) {
        box.to_part = fmin(box.to_part + busy_px[j] / width_px, 1);
        busy_px[j] = 0;
        if (copies || box.to_part - box.from_part < least_part) continue;
        box.job = j;
        store(&box, boxes, count);
        box.from_part = box.to_part;
    }
    box.job = UINT32_MAX;
    if (copies && box.to_part >= least_part) store(&box, boxes, count);
}

/* Adds `span` to the bins that it touches, from left to right. */
static void fill_bins(const struct plot_box *span, bool copies, double bin_px, double *busy_px,
                      uint32_t job_count, struct plot_box *open, struct plot_box *boxes,
                      size_t *count)
{
    uint32_t bin = (uint32_t)(span->from_px / bin_px);
    for (; bin * bin_px < span->to_px; bin++) {
        double from_px = bin * bin_px, to_px = (bin + 1) * bin_px;
        if (open->row == PLOT_ROW_NONE || open->from_px < from_px) {
            if (open->row != PLOT_ROW_NONE)
                close_bin(open, copies, busy_px, job_count, boxes, count);
            *open = (struct plot_box){.from_px = from_px,
                                      .to_px = to_px,
                                      .row = span->row,
                                      .shade = PLOT_SHADE_BACKWARD,
                                      .merged = true};
        }
        busy_px[span->job] += fmax(0, fmin(span->to_px, to_px) - fmax(span->from_px, from_px));
    }
}

size_t plot_boxes_of_shares(const struct trace *trace, const struct plot_window *window,
                            const struct plot_rows *rows, uint32_t bin_count, double *busy_px,
                            struct plot_box *open, struct plot_box *boxes)
{
    size_t count = 0;
    uint32_t jobs = trace->job_count;
    for (uint32_t r = 0; r < rows->count; r++) open[r].row = PLOT_ROW_NONE;
    for (size_t i = 0; i < (size_t)rows->count * jobs; i++) busy_px[i] = 0;
    for (uint64_t i = 0; i < trace->span_count; i++) {
        const struct trace_span *span = &trace->spans[i];
        struct plot_box box;
        uint32_t row = rows->of_stream[span->stream];
        if (make_box(span, window, row, &box))
            fill_bins(&box, span->kind == OP_COPY, window->width_px / bin_count,
                      busy_px + (size_t)row * jobs, jobs, &open[row], boxes, &count);
    }
    for (uint32_t s = 0; s < trace->stream_count; s++) {
        uint32_t row = rows->of_stream[s];
        if (row == PLOT_ROW_NONE || open[row].row == PLOT_ROW_NONE) continue;
        close_bin(&open[row], trace->streams[s].kind != STREAM_COMPUTE,
                  busy_px + (size_t)row * jobs, jobs, boxes, &count);
    }
    return count;
}
