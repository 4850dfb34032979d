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
 * Both ways take the spans once, in plan order, which is time order within a row. A row has one
 * open box (or one open bin with a sum per job), which is closed when the next one begins. Boxes
 * past the caller's limit are only counted.
 */
#include "plots/plot_boxes.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/try.h"
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

static enum status store(struct plot_boxes *boxes, const struct plot_box *box, struct error *err)
{
    if (boxes->count < boxes->limit) {
        TRY(array_reserve(&boxes->items, &boxes->capacity, boxes->count, sizeof *box, SIZE_MAX, "boxes", err));
        boxes->items[boxes->count] = *box;
    }
    boxes->count++;
    return STATUS_OK;
}

static enum status add_box(struct plot_boxes *boxes, const struct plot_box *next, struct error *err)
{
    struct plot_box *box = &boxes->open[next->row];
    if (box->row != PLOT_ROW_NONE && joins(box, next)) {
        box->to_px = next->to_px;
        box->last_px = next->last_px;
        box->merged = true;
        return STATUS_OK;
    }
    if (box->row != PLOT_ROW_NONE) TRY(store(boxes, box, err));
    *box = *next;
    return STATUS_OK;
}

/* --- shares --------------------------------------------------------------------------------- */

static double *busy_of(const struct plot_boxes *boxes, uint32_t row)
{
    return boxes->busy_px + (size_t)row * boxes->job_count;
}

/* Adds the stack of an open bin; its sums are zeroed for the next one. */
static enum status close_bin(struct plot_boxes *boxes, const struct plot_box *bin, bool copies, struct error *err)
{
    struct plot_box box = *bin;
    double width_px = bin->to_px - bin->from_px, *busy_px = busy_of(boxes, bin->row);
    box.from_part = box.to_part = 0;
    for (uint32_t j = 0; j < boxes->job_count; j++) {
        box.to_part = fmin(box.to_part + busy_px[j] / width_px, 1);
        busy_px[j] = 0;
        if (copies || box.to_part - box.from_part < least_part) continue;
        box.job = j;
        TRY(store(boxes, &box, err));
        box.from_part = box.to_part;
    }
    box.job = UINT32_MAX;
    return copies && box.to_part >= least_part ? store(boxes, &box, err) : STATUS_OK;
}

/* Adds `span` to the bins that it touches, from left to right. */
static enum status fill_bins(struct plot_boxes *boxes, const struct plot_box *span, bool copies, struct error *err)
{
    struct plot_box *open = &boxes->open[span->row];
    double bin_px = boxes->window.width_px / boxes->bin_count;
    uint32_t bin = (uint32_t)(span->from_px / bin_px);
    for (; bin * bin_px < span->to_px; bin++) {
        double from_px = bin * bin_px, to_px = (bin + 1) * bin_px;
        if (open->row == PLOT_ROW_NONE || open->from_px < from_px) {
            if (open->row != PLOT_ROW_NONE) TRY(close_bin(boxes, open, copies, err));
            *open = (struct plot_box){.from_px = from_px,
                                      .to_px = to_px,
                                      .row = span->row,
                                      .shade = PLOT_SHADE_BACKWARD,
                                      .merged = true};
        }
        busy_of(boxes, span->row)[span->job] += fmax(0, fmin(span->to_px, to_px) - fmax(span->from_px, from_px));
    }
    return STATUS_OK;
}

/* --- public --------------------------------------------------------------------------------- */

enum status plot_boxes_begin(struct plot_boxes *boxes, struct error *err)
{
    boxes->open = alloc_zeroed(boxes->row_count, sizeof *boxes->open);
    if (!boxes->open) return error_memory(err, "boxes", boxes->row_count * sizeof *boxes->open);
    for (uint32_t r = 0; r < boxes->row_count; r++) boxes->open[r].row = PLOT_ROW_NONE;
    if (boxes->bin_count == 0) return STATUS_OK;
    size_t sums = (size_t)boxes->row_count * boxes->job_count;
    boxes->busy_px = alloc_zeroed(sums, sizeof *boxes->busy_px);
    return boxes->busy_px ? STATUS_OK : error_memory(err, "boxes", sums * sizeof *boxes->busy_px);
}

enum status plot_boxes_add(struct plot_boxes *boxes, const struct trace_span *span, uint32_t row, struct error *err)
{
    struct plot_box box;
    if (!make_box(span, &boxes->window, row, &box)) return STATUS_OK;
    assert(row < boxes->row_count && span->job < boxes->job_count);
    return boxes->bin_count == 0 ? add_box(boxes, &box, err) : fill_bins(boxes, &box, span->kind == OP_COPY, err);
}

/* Bins are closed in the order of the streams, boxes in the order of the rows. */
static enum status close_all(struct plot_boxes *boxes, const struct trace *trace, const uint32_t *row_of_stream,
                             struct error *err)
{
    for (uint32_t s = 0; boxes->bin_count > 0 && s < trace->stream_count; s++) {
        uint32_t row = row_of_stream[s];
        if (row == PLOT_ROW_NONE || boxes->open[row].row == PLOT_ROW_NONE) continue;
        TRY(close_bin(boxes, &boxes->open[row], trace->streams[s].kind != STREAM_COMPUTE, err));
    }
    for (uint32_t r = 0; boxes->bin_count == 0 && r < boxes->row_count; r++)
        if (boxes->open[r].row != PLOT_ROW_NONE) TRY(store(boxes, &boxes->open[r], err));
    return STATUS_OK;
}

enum status plot_boxes_end(struct plot_boxes *boxes, const struct trace *trace, const uint32_t *row_of_stream,
                           struct error *err)
{
    enum status status = close_all(boxes, trace, row_of_stream, err);
    for (uint32_t r = 0; r < boxes->row_count; r++) boxes->open[r].row = PLOT_ROW_NONE;
    return status;
}

void plot_boxes_release(struct plot_boxes *boxes)
{
    free(boxes->open);
    free(boxes->busy_px);
    free(boxes->items);
    *boxes = (struct plot_boxes){0};
}
