/*
 * Draws the operations of devices over time.
 *
 *     title                                                                      alpha
 *     makespan: predicted 1.38 s, measured 1.46 s (error -5.5 %)                 beta
 *                                                predicted | measured            forward
 *       gpu0  predicted         [ 0 ][   1   ][    0    ]  '    |                loss
 *                         h2d   ====  ==                   '    |                ...
 *                         d2h             ====             '    |
 *             measured            [ 0 ][    1   ][   0     ]    |
 *       gpu1  ...
 *                         |--------|--------|--------|--------|
 *                                                        time (s)
 *
 * Rows are in device order, with a device's prediction above its measurement for comparison. Idle time is the light
 * track between boxes. Wide boxes carry the number of their shard; colour shows everything else (plots/plot_color.h).
 *
 * The layout is complete before gnuplot starts (plots/plot_script.c); the boxes are one data block in the units of
 * the time axis. Copies are thin, since a row of copies is either full or empty, and readers follow computations. The
 * host's cpu has a row below the devices if it computes; the stream that reads batches is left out.
 */
#include "plots/plot.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "base/text/quantity.h"
#include "base/try.h"
#include "planner/plan.h"
#include "plots/plot_boxes.h"
#include "plots/plot_color.h"
#include "plots/plot_gnuplot.h"
#include "plots/plot_script.h"
#include "plots/plot_view.h"
#include "traces/trace.h"

enum { LEGEND_JOBS_MAX = 24 };

/* Rows grow up to twice when the legend is taller than they are. */
static const double compute_px = 24, cpu_px = 14, copy_px = 8, row_gap_px = 2, side_gap_px = 9,
                    device_gap_px = 20, growth_max = 2;
static const double swatch_px = 13, legend_line_px = 18, legend_gap_px = 10;

/* Bins of shares are from six pixels wide to a sixteenth of the window. */
enum { BIN_WIDTH_PX = 6, BINS_MIN = 16 };

struct plot_timeline_row {
    double top_px, bottom_px; /* from the top of the area */
    uint32_t kind;            /* enum plan_stream_kind */
    uint32_t side;
    uint32_t device;          /* or the host, of a host's streams */
};

struct timeline {
    struct plot_view view;
    struct plot_script script;
    struct arena arena;
    struct plot_timeline_row *rows;
    uint32_t row_count;
    uint32_t device_kinds[STREAM_HOST], device_kind_count; /* rows of a device and side */
    const char *middle_shade; /* meaning of the middle shade; NULL: not drawn */
    bool joins;               /* there are collectives */
    uint32_t host_kinds[4], host_kind_count; /* the last rows are hosts' streams, side by side */
    double rows_height_px;
    uint32_t *row_of_stream[PLOT_SIDES]; /* per side; NULL without that trace */
    struct plot_boxes made;
    struct plot_box *boxes; /* of `made` */
    size_t box_count;
    bool *drawn_jobs; /* job_count entries */
    bool numbered;      /* shard numbers in the boxes */
    uint32_t bin_count; /* 0: boxes are spans, else shares of this many parts of the window */
};

/* --- rows ----------------------------------------------------------------------------------- */

/* Returns the number of a row. Rows are numbered by (device, side, kind), followed by the active streams of hosts in
 * the same order. Sides without a trace have no rows. */
static uint32_t row_index(const struct timeline *t, uint32_t side,
                          const struct trace_stream *stream)
{
    const struct plot_view *view = &t->view;
    uint32_t before = side > 0 && view->traces[0] ? 1 : 0;
    for (uint32_t k = 0; k < t->host_kind_count; k++)
        if (stream->kind == t->host_kinds[k] && stream->host < view->host_count)
            return view->device_count * view->trace_count * t->device_kind_count +
                   (stream->host * view->trace_count + before) * t->host_kind_count + k;
    uint32_t kind = 0;
    while (kind < t->device_kind_count && t->device_kinds[kind] != stream->kind) kind++;
    if (kind == t->device_kind_count || stream->device >= view->device_count) return PLOT_ROW_NONE;
    return (stream->device * view->trace_count + before) * t->device_kind_count + kind;
}

/* What the spans of both traces use. */
struct timeline_use {
    uint64_t span_count;
    bool kinds[STREAM_KIND_COUNT]; /* of streams */
    bool loss, weights, parallel;  /* passes, for the legend */
};

static const uint32_t all_host_kinds[] = {STREAM_CPU, STREAM_FILE, STREAM_READ, STREAM_WRITE};

static void find_host_kinds(struct timeline *t, const bool *used)
{
    t->host_kind_count = 0;
    for (size_t k = 0; k < ARRAY_COUNT(all_host_kinds); k++)
        if (used[all_host_kinds[k]]) t->host_kinds[t->host_kind_count++] = all_host_kinds[k];
}

/* Computing always; copies from and to the host unless only other streams copy; the rest if it was used. */
static void find_device_kinds(struct timeline *t, const bool *used)
{
    bool others = false;
    t->device_kind_count = 0;
    for (uint32_t k = STREAM_P2P; k < STREAM_HOST; k++) others |= used[k];
    bool host = used[STREAM_H2D] || used[STREAM_D2H] || !others;
    for (uint32_t k = STREAM_COMPUTE; k < STREAM_HOST; k++) {
        bool of_host = k == STREAM_H2D || k == STREAM_D2H;
        if (k == STREAM_COMPUTE || (of_host ? host : used[k])) t->device_kinds[t->device_kind_count++] = k;
    }
}

static void note_use(struct timeline *t, struct timeline_use *use, uint32_t kind, const struct trace_span *span)
{
    use->span_count++;
    use->kinds[kind] = true;
    use->loss |= span->pass == PLAN_LOSS;
    use->weights |= span->kind == OP_COMPUTE && span->pass == PLAN_BACKWARD_WEIGHT;
    use->parallel |= span->pass == PLAN_UPDATE && kind == STREAM_COMPUTE;
    t->joins |= span->kind == OP_COLLECTIVE;
}

/* `growth` is 1 at first: a height is needed to know it. */
static void place_rows(struct timeline *t, double growth)
{
    double y_px = 0;
    uint32_t row = 0;
    for (uint32_t d = 0; d < t->view.device_count; d++) {
        if (d > 0) y_px += device_gap_px;
        for (uint32_t side = 0; side < t->view.trace_count; side++) {
            if (side > 0) y_px += side_gap_px;
            for (uint32_t k = 0; k < t->device_kind_count; k++) {
                double height_px = growth * (k == 0 ? compute_px : copy_px);
                if (k > 0) y_px += row_gap_px;
                t->rows[row++] = (struct plot_timeline_row){y_px, y_px + height_px, t->device_kinds[k], side, d};
                y_px += height_px;
            }
        }
    }
    for (uint32_t i = 0; t->host_kind_count > 0 && i < t->view.host_count * t->view.trace_count; i++) {
        uint32_t side = i % t->view.trace_count, host = i / t->view.trace_count;
        y_px += side > 0 ? side_gap_px : device_gap_px;
        for (uint32_t k = 0; k < t->host_kind_count; k++) {
            uint32_t kind = t->host_kinds[k];
            double height_px = growth * (kind == STREAM_CPU ? cpu_px : copy_px);
            if (k > 0) y_px += row_gap_px;
            t->rows[row++] = (struct plot_timeline_row){y_px, y_px + height_px, kind, side, host};
            y_px += height_px;
        }
    }
    assert(row == t->row_count);
    t->rows_height_px = y_px;
}

/* Makes rows for streams of the kinds that are used. */
static enum status make_rows(struct timeline *t, const bool *used, struct error *err)
{
    const struct plot_view *view = &t->view;
    find_host_kinds(t, used);
    find_device_kinds(t, used);
    t->row_count =
        view->trace_count * (view->device_count * t->device_kind_count + view->host_count * t->host_kind_count);
    TRY(ARENA_NEW(&t->arena, t->row_count, t->rows, err));
    for (uint32_t side = 0; side < PLOT_SIDES; side++) {
        const struct trace *trace = view->traces[side];
        if (!trace) continue;
        TRY(ARENA_NEW(&t->arena, trace->stream_count, t->row_of_stream[side], err));
        for (uint32_t s = 0; s < trace->stream_count; s++)
            t->row_of_stream[side][s] = row_index(t, side, &trace->streams[s]);
    }
    return STATUS_OK;
}

/* --- boxes ---------------------------------------------------------------------------------- */

/* Reads a trace to its end, which checks all of it, into boxes of spans. */
static enum status read_spans(struct timeline *t, uint32_t side, struct timeline_use *use, struct error *err)
{
    struct trace_reader *reader = t->view.readers[side];
    const struct trace *trace = t->view.traces[side];
    const uint32_t *rows = t->row_of_stream[side];
    uint64_t count;
    TRY(trace_reader_rewind(reader, err));
    for (;;) {
        struct trace_span span;
        bool more;
        TRY(trace_reader_span(reader, &span, &more, err));
        if (!more) break;
        note_use(t, use, trace->streams[span.stream].kind, &span);
        TRY(plot_boxes_add(&t->made, &span, rows[span.stream], err));
    }
    TRY(plot_boxes_end(&t->made, trace, rows, err));
    return trace_reader_finish(reader, &count, err);
}

/* Gives the rows of the used kinds new numbers, in the same order. */
static enum status renumber_rows(struct timeline *t, const bool *used, struct error *err)
{
    uint32_t *const before[PLOT_SIDES] = {t->row_of_stream[0], t->row_of_stream[1]}, *now;
    TRY(ARENA_NEW(&t->arena, t->row_count, now, err));
    TRY(make_rows(t, used, err));
    for (uint32_t side = 0; side < PLOT_SIDES; side++)
        for (uint32_t s = 0; t->view.traces[side] && s < t->view.traces[side]->stream_count; s++)
            if (before[side][s] != PLOT_ROW_NONE) now[before[side][s]] = t->row_of_stream[side][s];
    for (size_t i = 0; i < t->made.count && i < t->made.limit; i++) t->made.items[i].row = now[t->made.items[i].row];
    return STATUS_OK;
}

/* Makes rows, and boxes of spans. Keeps the first boxes if there are too many. */
static enum status read_traces(struct timeline *t, struct error *err)
{
    struct timeline_use use = {0};
    bool all[STREAM_KIND_COUNT];
    for (uint32_t k = 0; k < STREAM_KIND_COUNT; k++) all[k] = true;
    TRY(make_rows(t, all, err));
    t->made = (struct plot_boxes){.window = t->view.window,
                                  .row_count = t->row_count,
                                  .job_count = t->view.job_count,
                                  .limit = PLOT_BOXES_MAX};
    TRY(plot_boxes_begin(&t->made, err));
    for (uint32_t side = 0; side < PLOT_SIDES; side++)
        if (t->view.traces[side]) TRY(read_spans(t, side, &use, err));
    TRY(plot_view_check_spans(&t->view, use.span_count, err));
    t->middle_shade = use.loss || !use.parallel ? "loss (last shard)" : use.weights ? "gradients of weights" : NULL;
    return renumber_rows(t, use.kinds, err);
}

/* Numbers of bins to try, the finest first. */
enum { BINS_TRIED_MAX = 32 };
struct timeline_bins {
    struct plot_boxes tried[BINS_TRIED_MAX];
    uint32_t count;
};

/* Reads the spans of both traces once, into boxes of shares for each number of bins. */
static enum status read_shares(struct timeline *t, struct timeline_bins *bins, struct error *err)
{
    for (uint32_t b = 0; b < bins->count; b++) TRY(plot_boxes_begin(&bins->tried[b], err));
    for (uint32_t side = 0; side < PLOT_SIDES; side++) {
        const uint32_t *rows = t->row_of_stream[side];
        bool more = t->view.traces[side] != NULL;
        if (more) TRY(trace_reader_rewind(t->view.readers[side], err));
        while (more) {
            struct trace_span span;
            TRY(trace_reader_span(t->view.readers[side], &span, &more, err));
            for (uint32_t b = 0; b < bins->count && more; b++)
                TRY(plot_boxes_add(&bins->tried[b], &span, rows[span.stream], err));
        }
        for (uint32_t b = 0; b < bins->count && t->view.traces[side]; b++)
            TRY(plot_boxes_end(&bins->tried[b], t->view.traces[side], rows, err));
    }
    return STATUS_OK;
}

/* Fills in the numbers of bins to try next, from *bin_count on, which moves on. Takes one if its boxes surely fit, else
 * all whose sums have room. */
static void choose_bins(const struct timeline *t, uint32_t *bin_count, struct timeline_bins *bins)
{
    const uint64_t sums_max = 1 << 22, sums = (uint64_t)t->row_count * t->view.job_count;
    bins->count = 0;
    while (*bin_count > 0 && bins->count < BINS_TRIED_MAX &&
           (bins->count == 0 || sums * (bins->count + 1) <= sums_max)) {
        bool last = *bin_count <= BINS_MIN;
        bins->tried[bins->count++] = (struct plot_boxes){.window = t->view.window,
                                                         .row_count = t->row_count,
                                                         .job_count = t->view.job_count,
                                                         .bin_count = *bin_count,
                                                         .limit = last ? SIZE_MAX : PLOT_BOXES_MAX};
        bool fits = sums * *bin_count <= PLOT_BOXES_MAX;
        *bin_count = last ? 0 : *bin_count * 3 / 4;
        if (fits) break;
    }
}

/* Takes over the boxes of the finest bins that are few enough; *found is false without any. */
static void take_boxes(struct timeline *t, struct timeline_bins *bins, bool *found)
{
    *found = false;
    for (uint32_t b = 0; b < bins->count; b++) {
        struct plot_boxes *tried = &bins->tried[b];
        if (!*found && tried->count <= tried->limit) {
            plot_boxes_release(&t->made);
            t->made = *tried;
            t->bin_count = tried->bin_count;
            *tried = (struct plot_boxes){0};
            *found = true;
        }
        plot_boxes_release(tried);
    }
}

/* Makes boxes of shares, in bins as fine as the limit allows. */
static enum status make_shares(struct timeline *t, struct error *err)
{
    uint32_t bin_count = (uint32_t)t->view.window.width_px / BIN_WIDTH_PX;
    bool found = false;
    while (!found) {
        struct timeline_bins bins;
        choose_bins(t, &bin_count, &bins);
        enum status status = read_shares(t, &bins, err);
        if (status == STATUS_OK) take_boxes(t, &bins, &found);
        for (uint32_t b = 0; b < bins.count && status != STATUS_OK; b++) plot_boxes_release(&bins.tried[b]);
        if (status != STATUS_OK) return status;
    }
    return STATUS_OK;
}

static bool holds_number(const struct plot_box *box, char text[16])
{
    snprintf(text, 16, "%" PRIu32, box->shard);
    return !box->merged &&
           box->to_px - box->from_px >= plot_text_width_px(text, PLOT_SMALL_PX) + 4;
}

/* Numbers help where most boxes have one; a few among many are clutter. */
static bool most_hold_numbers(const struct timeline *t)
{
    size_t computations = 0, numbers = 0;
    for (size_t i = 0; i < t->box_count; i++) {
        char text[16];
        if (t->rows[t->boxes[i].row].kind != STREAM_COMPUTE) continue;
        computations++;
        numbers += holds_number(&t->boxes[i], text);
    }
    return numbers > computations / 2;
}

static enum status make_boxes(struct timeline *t, struct error *err)
{
    TRY(read_traces(t, err));
    if (t->made.count > PLOT_BOXES_MAX) TRY(make_shares(t, err));
    t->boxes = t->made.items;
    t->box_count = t->made.count;
    if (t->box_count == 0)
        return error_set(err, STATUS_BAD_INPUT, "nothing runs on a device between %g s and %g s",
                         t->view.window.from_s, t->view.window.to_s);
    TRY(ARENA_NEW(&t->arena, t->view.job_count, t->drawn_jobs, err));
    for (size_t i = 0; i < t->box_count; i++)
        if (t->boxes[i].job != UINT32_MAX) t->drawn_jobs[t->boxes[i].job] = true;
    t->numbered = t->bin_count == 0 && most_hold_numbers(t);
    return STATUS_OK;
}

static uint32_t box_color(const struct timeline *t, const struct plot_box *box)
{
    if (box->job == UINT32_MAX) return plot_gray(PLOT_SHADE_BACKWARD);
    if (box->shade == PLOT_SHADE_COUNT) return PLOT_JOINING;
    return t->bin_count > 0 ? plot_share_color(box->job) : plot_job_color(box->job, box->shade);
}

/* --- legend --------------------------------------------------------------------------------- */

static uint32_t drawn_job_count(const struct timeline *t)
{
    uint32_t count = 0;
    for (uint32_t j = 0; j < t->view.job_count; j++) count += t->drawn_jobs[j];
    return count;
}

static double legend_height_px(const struct timeline *t)
{
    uint32_t jobs = drawn_job_count(t);
    uint32_t lines = jobs > LEGEND_JOBS_MAX ? LEGEND_JOBS_MAX + 1 : jobs;
    lines += t->bin_count > 0 ? 3 : PLOT_SHADE_COUNT - (t->middle_shade ? 0u : 1u) + 1 + t->joins + t->numbered;
    return lines * legend_line_px + legend_gap_px;
}

static void draw_swatch(struct timeline *t, double x_px, double y_px, double height_px,
                        uint32_t color)
{
    plot_script_box(&t->script, x_px, y_px - height_px / 2, x_px + swatch_px,
                    y_px + height_px / 2, color);
}

static double draw_job_legend(struct timeline *t, double x_px, double y_px)
{
    const struct plot_font font = {PLOT_TEXT_PX, false, PLOT_INK};
    uint32_t shown = 0, jobs = drawn_job_count(t);
    uint32_t swatches = t->bin_count > 0 ? 1 : PLOT_SHADE_COUNT;
    double text_px = x_px + swatches * (swatch_px + 1) + 6;
    for (uint32_t j = 0; j < t->view.job_count && shown < LEGEND_JOBS_MAX; j++) {
        char name[PLOT_NAME_BYTES];
        if (!t->drawn_jobs[j]) continue;
        for (uint32_t s = 0; s < swatches; s++)
            draw_swatch(t, x_px + s * (swatch_px + 1), y_px, swatch_px,
                        t->bin_count > 0 ? plot_share_color(j) : plot_job_color(j, s));
        plot_script_text(&t->script, text_px, y_px, PLOT_LEFT, font,
                         plot_short_name(plot_view_jobs(&t->view)[j].name, name));
        y_px += legend_line_px;
        shown++;
    }
    if (shown == jobs) return y_px;
    char text[48];
    snprintf(text, sizeof text, "and %" PRIu32 " more jobs", jobs - shown);
    plot_script_text(&t->script, text_px, y_px, PLOT_LEFT, font, text);
    return y_px + legend_line_px;
}

static void draw_legend(struct timeline *t, double x_px, double y_px)
{
    const char *const names[] = {"forward", t->middle_shade, "backward"};
    const struct plot_font font = {PLOT_SMALL_PX, false, PLOT_FAINT_INK};
    double text_px = x_px + swatch_px + 7;
    y_px = draw_job_legend(t, x_px, y_px + legend_line_px / 2) + legend_gap_px;
    for (uint32_t s = 0; t->bin_count == 0 && s < PLOT_SHADE_COUNT; s++) {
        if (!names[s]) continue;
        draw_swatch(t, x_px, y_px, swatch_px, plot_gray(s));
        plot_script_text(&t->script, text_px, y_px, PLOT_LEFT, font, names[s]);
        y_px += legend_line_px;
    }
    if (t->joins && t->bin_count == 0) {
        draw_swatch(t, x_px, y_px, swatch_px, PLOT_JOINING);
        plot_script_text(&t->script, text_px, y_px, PLOT_LEFT, font, "collective");
        y_px += legend_line_px;
    }
    draw_swatch(t, x_px, y_px, copy_px, plot_gray(PLOT_SHADE_BACKWARD));
    plot_script_text(&t->script, text_px, y_px, PLOT_LEFT, font,
                     t->bin_count > 0 ? "copies" : "copy");
    y_px += legend_line_px;
    if (t->numbered) {
        plot_script_text(&t->script, x_px + 3, y_px, PLOT_LEFT, font, "3");
        plot_script_text(&t->script, text_px, y_px, PLOT_LEFT, font, "number of the shard");
    } else if (t->bin_count > 0) {
        plot_script_text(&t->script, x_px, y_px, PLOT_LEFT, font, "height: share of the time");
    }
}

/* --- rows and their names ------------------------------------------------------------------- */

static void draw_rows(struct timeline *t, const struct plot_area *area)
{
    const struct plot_view *view = &t->view;
    const struct plot_font device_font = {PLOT_TEXT_PX, true, PLOT_INK};
    const struct plot_font side_font = {PLOT_SMALL_PX, false, PLOT_FAINT_INK};
    const struct plot_font copy_font = {PLOT_TINY_PX, false, PLOT_FAINT_INK};
    for (uint32_t r = 0; r < t->row_count; r++) {
        const struct plot_timeline_row *row = &t->rows[r];
        double top_px = area->top_px + row->top_px, bottom_px = area->top_px + row->bottom_px;
        double middle_px = (top_px + bottom_px) / 2;
        uint32_t kind = row->kind, side = row->side;
        bool several = view->host_count > 1;
        plot_script_box(&t->script, area->left_px, top_px, area->right_px, bottom_px, PLOT_TRACK);
        if (side == 0 && kind == STREAM_READ)
            plot_script_text(&t->script, 16, middle_px, PLOT_LEFT, device_font, "storage");
        if (kind == STREAM_FILE) {
            plot_script_text(&t->script, area->left_px - 5, middle_px, PLOT_RIGHT, copy_font, "files");
            continue;
        }
        if (plan_stream_copies(kind) || kind == STREAM_GROUP || kind == STREAM_DATA) {
            plot_script_text(&t->script, area->left_px - 5, middle_px, PLOT_RIGHT, copy_font,
                             plan_stream_names[kind]);
            continue;
        }
        if (side == 0)
            plot_script_text(&t->script, 16, middle_px, PLOT_LEFT, device_font,
                             kind == STREAM_CPU ? several ? plot_view_host_name(view, row->device) : "cpu"
                                                : plot_view_device_name(view, row->device));
        if (view->trace_count > 1)
            plot_script_text(&t->script, area->left_px - 5, middle_px, PLOT_RIGHT, side_font,
                             trace_source_names[side]);
    }
}

/* --- data ----------------------------------------------------------------------------------- */

static double axis_value(const struct timeline *t, double x_px, double unit_s)
{
    const struct plot_window *window = &t->view.window;
    return (window->from_s + x_px / window->width_px * (window->to_s - window->from_s)) / unit_s;
}

static void add_boxes(struct timeline *t, double unit_s)
{
    plot_script_add(&t->script, "# from, to, top, bottom, color\n$boxes << END\n");
    for (size_t i = 0; i < t->box_count; i++) {
        const struct plot_box *box = &t->boxes[i];
        const struct plot_timeline_row *row = &t->rows[box->row];
        double height_px = row->bottom_px - row->top_px;
        /* Leaves a thin line of the track between boxes that are wide enough, and makes no box invisible. */
        double width_px = box->to_px - box->from_px;
        double to_px = width_px > 3 ? box->to_px - 0.75 : box->from_px + fmax(width_px, 0.5);
        plot_script_number(&t->script, axis_value(t, box->from_px, unit_s));
        plot_script_column(&t->script, axis_value(t, to_px, unit_s));
        plot_script_column(&t->script, row->bottom_px - box->to_part * height_px);
        plot_script_column(&t->script, row->bottom_px - box->from_part * height_px);
        plot_script_add(&t->script, " 0x%06x\n", (unsigned)box_color(t, box));
    }
    plot_script_add(&t->script, "END\n");
}

static void add_shard_numbers(struct timeline *t, double unit_s)
{
    plot_script_add(&t->script, "# at, middle, shard, color\n$shards << END\n");
    for (size_t i = 0; i < t->box_count; i++) {
        const struct plot_box *box = &t->boxes[i];
        const struct plot_timeline_row *row = &t->rows[box->row];
        char text[16];
        if (t->rows[box->row].kind != STREAM_COMPUTE || !holds_number(box, text)) continue;
        plot_script_number(&t->script, axis_value(t, (box->from_px + box->to_px) / 2, unit_s));
        plot_script_column(&t->script, (row->top_px + row->bottom_px) / 2);
        plot_script_add(&t->script, " %s 0x%06x\n", text,
                        (unsigned)plot_ink_on(plot_job_color(box->job, box->shade)));
    }
    plot_script_add(&t->script, "END\n");
}

static void add_data(struct timeline *t, double unit_s)
{
    add_boxes(t, unit_s);
    if (t->numbered) add_shard_numbers(t, unit_s);
    plot_script_add(&t->script, "plot $boxes using (($1+$2)/2):(($3+$4)/2):1:2:3:4:5 "
                                "with boxxyerror fs solid noborder lc rgb variable");
    if (t->numbered)
        plot_script_add(&t->script, ", $shards using 1:2:(sprintf('%%d', $3)):4 "
                                    "with labels font ',%d' tc rgb variable", PLOT_SMALL_PX);
    plot_script_add(&t->script, "\n");
}

/* --- public --------------------------------------------------------------------------------- */

static void describe(const struct timeline *t, char *text, size_t size)
{
    const struct plot_window *window = &t->view.window;
    char bin[QUANTITY_TEXT_BYTES];
    size_t used = plot_view_describe(&t->view, text, size);
    if (t->bin_count > 0 && used < size)
        snprintf(text + used, size - used, "; shares of every %s",
                 quantity_text((window->to_s - window->from_s) / t->bin_count, DIMENSION_SECONDS,
                               bin));
}

/* Returns the factor of the rows' height: shares need height to be read, and a picture may be as high as its legend. */
static double row_growth(struct timeline *t)
{
    place_rows(t, 1);
    if (t->bin_count > 0) return growth_max;
    return fmin(fmax(legend_height_px(t) / t->rows_height_px, 1), growth_max);
}

static void draw(struct timeline *t, struct plot_area *area)
{
    char text[512];
    place_rows(t, row_growth(t));
    area->bottom_px = area->top_px + fmax(t->rows_height_px, legend_height_px(t)) + 8;
    t->script.height_px = ceil(area->bottom_px + 54);
    describe(t, text, sizeof text);
    plot_view_heading(&t->view, &t->script, text);
    plot_script_area(&t->script, area);
    double unit_s = plot_script_time_axis(&t->script, area, t->view.window.from_s,
                                          t->view.window.to_s);
    draw_rows(t, area);
    draw_legend(t, area->right_px + 20, area->top_px);
    plot_view_makespans(&t->view, &t->script, area);
    add_data(t, unit_s);
}

enum status plot_timeline_readers(struct trace_reader *predicted, struct trace_reader *measured,
                                  const char *path, const struct plot_options *options, struct error *err)
{
    struct timeline t = {0};
    struct plot_area area = {.top_px = 80};
    TRY(plot_check_path(path, err));
    TRY(plot_view_init(&t.view, predicted, measured, options, err));
    t.script.width_px = t.view.canvas_width_px;
    area.left_px = t.view.trace_count > 1 ? 130 : 84;
    area.right_px = t.view.canvas_width_px - 190;
    t.view.window.width_px = area.right_px - area.left_px;
    enum status status = make_boxes(&t, err);
    if (status == STATUS_OK) {
        draw(&t, &area);
        status = plot_draw(&t.script, path, options->keep_script, err);
    }
    plot_boxes_release(&t.made);
    plot_script_release(&t.script);
    arena_release(&t.arena);
    return status;
}
