/*
 * Memory in use over time, a panel for each place.
 *
 *            - - - - - - - - - - - - - - - - - -   capacity 11.0 GiB
 *     gpu0       ____      _______                 predicted peak 9.6 GiB
 *            ___/    \____/       \____            measured peak 9.9 GiB
 *
 * A level holds until the next one: the curves are steps. A panel extends to the capacity, because the free memory
 * matters most. If less than a fifth is ever used (mostly host memory) the curve would be a line at the bottom, so
 * the panel ends above the peak and the capacity is only named.
 *
 * Levels that fall into the same half pixel become one vertical stroke from their lowest to their
 * highest, so that a peak of a microsecond in a run of a day is drawn and the number of points is
 * bounded by the width of the picture, not by the length of the run.
 */
#include "plots/plot.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/text/quantity.h"
#include "base/try.h"
#include "plots/plot_color.h"
#include "plots/plot_gnuplot.h"
#include "plots/plot_script.h"
#include "plots/plot_view.h"
#include "traces/trace_reader.h"

static const double panel_px = 104, panel_gap_px = 26, line_px = 17, stroke_px = 0.5,
                    least_use = 0.2; /* of the capacity, for a panel that reaches up to it */

struct memory_point {
    double time_s, bytes;
};

/* Levels of one place that share a half pixel. */
struct stroke {
    double time_s;
    double low, high, last; /* bytes */
    uint64_t count; /* 0: the beginning of the window */
};

/* Memory at a place over the window, while the levels are read and afterwards. */
struct memory_curve {
    struct stroke stroke;
    double before; /* bytes before the stroke */
    struct memory_point *points;
    size_t count, capacity;
};

struct panel {
    uint32_t place;
    double top_px, bottom_px; /* from the top of the area */
    double top_bytes;
    bool shows_capacity;
    struct memory_curve curves[PLOT_SIDES];
};

struct memory_plot {
    struct plot_view view;
    struct plot_script script;
    struct arena arena;
    struct panel *panels;
    uint32_t panel_count;
    uint32_t *panel_of_place; /* UINT32_MAX: none */
    double unit_s;
};

/* --- panels --------------------------------------------------------------------------------- */

static const struct trace_place *place_of(const struct memory_plot *m, uint32_t side,
                                          uint32_t place)
{
    const struct trace *trace = m->view.traces[side];
    return trace ? &trace->places[place] : NULL;
}

static enum status map_places(struct memory_plot *m, struct error *err)
{
    const struct trace *trace = m->view.traces[0] ? m->view.traces[0] : m->view.traces[1];
    TRY(ARENA_NEW(&m->arena, trace->place_count, m->panel_of_place, err));
    for (uint32_t p = 0; p < trace->place_count; p++) m->panel_of_place[p] = UINT32_MAX;
    for (uint32_t i = 0; i < m->panel_count; i++) m->panel_of_place[m->panels[i].place] = i;
    return STATUS_OK;
}

/* Makes the panels: devices in order, then hosts, for places with capacity. */
static enum status make_panels(struct memory_plot *m, struct error *err)
{
    m->panel_count = m->view.device_count + m->view.host_count;
    TRY(ARENA_NEW(&m->arena, m->panel_count, m->panels, err));
    for (uint32_t i = 0; i < m->panel_count; i++) {
        struct panel *panel = &m->panels[i];
        panel->place = i < m->view.device_count ? i + 1 : plot_view_host_place(&m->view, i - m->view.device_count);
        panel->top_px = i * (panel_px + panel_gap_px);
        panel->bottom_px = panel->top_px + panel_px;
        double capacity = 0, peak = 0;
        for (uint32_t side = 0; side < PLOT_SIDES; side++) {
            const struct trace_place *place = place_of(m, side, panel->place);
            if (!place) continue;
            capacity = fmax(capacity, (double)place->capacity_bytes);
            peak = fmax(peak, (double)place->peak_bytes);
        }
        panel->shows_capacity = peak >= least_use * capacity;
        panel->top_bytes = fmax(1, panel->shows_capacity ? fmax(capacity, peak) : peak * 1.4);
    }
    return map_places(m, err);
}

/* --- curves --------------------------------------------------------------------------------- */

static enum status add_point(struct memory_curve *curve, double time_s, double bytes, struct error *err)
{
    TRY(array_reserve(&curve->points, &curve->capacity, curve->count, sizeof *curve->points, SIZE_MAX, "points", err));
    curve->points[curve->count++] = (struct memory_point){.time_s = time_s, .bytes = bytes};
    return STATUS_OK;
}

/* Adds the step from `before` to the end of the stroke; the first stroke of a curve has no step before it. */
static enum status add_stroke(struct memory_curve *curve, struct error *err)
{
    const struct stroke *stroke = &curve->stroke;
    if (stroke->count > 0) TRY(add_point(curve, stroke->time_s, curve->before, err));
    if (stroke->count > 1) {
        TRY(add_point(curve, stroke->time_s, stroke->low, err));
        TRY(add_point(curve, stroke->time_s, stroke->high, err));
    }
    return add_point(curve, stroke->time_s, stroke->last, err);
}

static enum status add_level(struct memory_curve *curve, const struct plot_window *window,
                             const struct trace_level *level, struct error *err)
{
    struct stroke *stroke = &curve->stroke;
    const double stroke_s = stroke_px * (window->to_s - window->from_s) / window->width_px;
    const double bytes = (double)level->bytes;
    if (level->time_s <= window->from_s) {
        stroke->last = bytes; /* what holds when the window begins */
    } else if (stroke->count > 0 && level->time_s - stroke->time_s < stroke_s) {
        stroke->low = fmin(stroke->low, bytes);
        stroke->high = fmax(stroke->high, bytes);
        stroke->last = bytes;
        stroke->count++;
    } else {
        TRY(add_stroke(curve, err));
        curve->before = stroke->last;
        *stroke = (struct stroke){level->time_s, bytes, bytes, bytes, 1};
    }
    return STATUS_OK;
}

/* Ends a curve at the end of the window, or goes down to zero at the end of the trace. */
static enum status end_curve(struct memory_curve *curve, const struct plot_window *window, double trace_end_s,
                             struct error *err)
{
    double end_s = fmax(trace_end_s, curve->stroke.time_s);
    TRY(add_stroke(curve, err));
    TRY(add_point(curve, fmin(window->to_s, end_s), curve->stroke.last, err));
    return end_s < window->to_s ? add_point(curve, end_s, 0, err) : STATUS_OK;
}

/* Adds to the curves of a trace all of its levels. */
static enum status read_levels(struct memory_plot *m, uint32_t side, uint64_t *level_count, struct error *err)
{
    const struct plot_window *window = &m->view.window;
    *level_count = 0;
    for (;;) {
        struct trace_level level;
        bool more;
        TRY(trace_reader_level(m->view.readers[side], &level, &more, err));
        if (!more) return STATUS_OK;
        ++*level_count;
        uint32_t panel = m->panel_of_place[level.place];
        if (panel == UINT32_MAX || !(level.time_s < window->to_s)) continue;
        TRY(add_level(&m->panels[panel].curves[side], window, &level, err));
    }
}

static enum status read_trace(struct memory_plot *m, uint32_t side, uint64_t *span_count, uint64_t *level_count,
                              struct error *err)
{
    struct trace_reader *reader = m->view.readers[side];
    struct trace_span span;
    bool more = true;
    TRY(trace_reader_rewind(reader, err));
    while (more) {
        TRY(trace_reader_span(reader, &span, &more, err));
        *span_count += more;
    }
    for (uint32_t i = 0; i < m->panel_count; i++) m->panels[i].curves[side].stroke.time_s = m->view.window.from_s;
    TRY(read_levels(m, side, level_count, err));
    for (uint32_t i = 0; i < m->panel_count; i++)
        TRY(end_curve(&m->panels[i].curves[side], &m->view.window, m->view.end_s[side], err));
    return STATUS_OK;
}

/* Makes the curves of all panels. */
static enum status read_traces(struct memory_plot *m, struct error *err)
{
    uint64_t span_count = 0, level_counts[PLOT_SIDES] = {0};
    for (uint32_t side = 0; side < PLOT_SIDES; side++)
        if (m->view.traces[side]) TRY(read_trace(m, side, &span_count, &level_counts[side], err));
    TRY(plot_view_check_spans(&m->view, span_count, err));
    for (uint32_t side = 0; side < PLOT_SIDES; side++)
        if (m->view.traces[side] && level_counts[side] == 0)
            return error_set(err, STATUS_BAD_INPUT, "the %s trace has no memory levels", trace_source_names[side]);
    return STATUS_OK;
}

static void add_curve(struct memory_plot *m, const struct panel *panel, uint32_t side)
{
    const struct memory_curve *curve = &panel->curves[side];
    for (size_t i = 0; i < curve->count; i++) {
        plot_script_number(&m->script, curve->points[i].time_s / m->unit_s);
        plot_script_column(&m->script, panel->bottom_px - curve->points[i].bytes / panel->top_bytes *
                                                              (panel->bottom_px - panel->top_px));
        plot_script_add(&m->script, "\n");
    }
}

static void add_curves(struct memory_plot *m)
{
    for (uint32_t i = 0; i < m->panel_count; i++)
        for (uint32_t side = 0; side < PLOT_SIDES; side++) {
            if (!m->view.traces[side]) continue;
            plot_script_add(&m->script, "# time, pixels\n$%s%" PRIu32 " << END\n",
                            trace_source_names[side], i);
            add_curve(m, &m->panels[i], side);
            plot_script_add(&m->script, "END\n");
        }
    const char *separator = "plot ";
    for (uint32_t i = 0; i < m->panel_count; i++) {
        if (m->view.traces[0]) {
            plot_script_add(&m->script, "%s$predicted%" PRIu32 " with filledcurves y=", separator, i);
            plot_script_number(&m->script, m->panels[i].bottom_px);
            plot_script_add(&m->script,
                            " fs solid noborder fc rgb '#%06x', $predicted%" PRIu32
                            " with lines lw 1.3 lc rgb '#%06x'",
                            PLOT_PREDICTED_FILL, i, PLOT_PREDICTED);
        }
        if (m->view.traces[1])
            plot_script_add(&m->script, "%s$measured%" PRIu32 " with lines lw 1.3 lc rgb '#%06x'",
                            m->view.traces[0] ? ", " : separator, i, PLOT_MEASURED);
        separator = ", ";
    }
    plot_script_add(&m->script, "\n");
}

/* --- around the curves ---------------------------------------------------------------------- */

static void name_peaks(struct memory_plot *m, const struct panel *panel, double x_px, double y_px)
{
    static const uint32_t inks[PLOT_SIDES] = {PLOT_PREDICTED, PLOT_MEASURED};
    for (uint32_t side = 0; side < PLOT_SIDES; side++) {
        const struct trace_place *place = place_of(m, side, panel->place);
        char bytes[QUANTITY_TEXT_BYTES], text[96];
        if (!place) continue;
        snprintf(text, sizeof text, "%s peak %s", trace_source_names[side],
                 quantity_text((double)place->peak_bytes, DIMENSION_BYTES, bytes));
        plot_script_text(&m->script, x_px, y_px, PLOT_LEFT,
                         (struct plot_font){PLOT_SMALL_PX, false, inks[side]}, text);
        y_px += line_px;
    }
}

static void draw_panel(struct memory_plot *m, const struct plot_area *area,
                       const struct panel *panel)
{
    const struct trace_place *place = place_of(m, m->view.traces[0] ? 0 : 1, panel->place);
    const struct plot_font faint = {PLOT_SMALL_PX, false, PLOT_FAINT_INK};
    double top_px = area->top_px + panel->top_px, bottom_px = area->top_px + panel->bottom_px;
    char bytes[QUANTITY_TEXT_BYTES], text[96];
    plot_script_box(&m->script, area->left_px, top_px, area->right_px, bottom_px, PLOT_TRACK);
    plot_script_text(&m->script, 16, (top_px + bottom_px) / 2, PLOT_LEFT,
                     (struct plot_font){PLOT_TEXT_PX, true, PLOT_INK}, place->name);
    plot_script_text(&m->script, area->left_px - 6, bottom_px, PLOT_RIGHT, faint, "0");
    plot_script_text(&m->script, area->left_px - 6, top_px, PLOT_RIGHT, faint,
                     quantity_text(panel->top_bytes, DIMENSION_BYTES, bytes));
    snprintf(text, sizeof text, "capacity %s%s",
             quantity_text((double)place->capacity_bytes, DIMENSION_BYTES, bytes),
             panel->shows_capacity ? "" : ", far above");
    plot_script_text(&m->script, area->right_px + 10, top_px + line_px / 2, PLOT_LEFT,
                     (struct plot_font){PLOT_SMALL_PX, false, PLOT_INK}, text);
    if (panel->shows_capacity)
        plot_script_line(&m->script, area->left_px, top_px, area->right_px, top_px,
                         (struct plot_pen){1.2, PLOT_LIMIT, true});
    name_peaks(m, panel, area->right_px + 10, top_px + 1.8 * line_px);
}

static void draw(struct memory_plot *m, struct plot_area *area)
{
    char text[512];
    area->bottom_px = area->top_px + m->panels[m->panel_count - 1].bottom_px + 10;
    m->script.height_px = ceil(area->bottom_px + 54);
    size_t length = plot_view_describe(&m->view, text, sizeof text);
    assert(length < sizeof text);
    plot_view_heading(&m->view, &m->script, text);
    plot_script_area(&m->script, area);
    m->unit_s = plot_script_time_axis(&m->script, area, m->view.window.from_s,
                                      m->view.window.to_s);
    for (uint32_t i = 0; i < m->panel_count; i++) draw_panel(m, area, &m->panels[i]);
    plot_view_makespans(&m->view, &m->script, area);
    add_curves(m);
}

/* --- public --------------------------------------------------------------------------------- */

static void release(struct memory_plot *m)
{
    for (uint32_t i = 0; m->panels && i < m->panel_count; i++)
        for (uint32_t side = 0; side < PLOT_SIDES; side++) free(m->panels[i].curves[side].points);
    plot_script_release(&m->script);
    arena_release(&m->arena);
}

enum status plot_memory_readers(struct trace_reader *predicted, struct trace_reader *measured,
                                const char *path, const struct plot_options *options, struct error *err)
{
    struct memory_plot m = {0};
    struct plot_area area = {.left_px = 130, .top_px = 96};
    enum status status = plot_check_path(path, err);
    if (status == STATUS_OK) status = plot_view_init(&m.view, predicted, measured, options, err);
    if (status == STATUS_OK) status = make_panels(&m, err);
    if (status == STATUS_OK) {
        m.script.width_px = m.view.canvas_width_px;
        area.right_px = m.view.canvas_width_px - 190;
        m.view.window.width_px = area.right_px - area.left_px;
        status = read_traces(&m, err);
    }
    if (status == STATUS_OK) {
        draw(&m, &area);
        status = plot_draw(&m.script, path, options->keep_script, err);
    }
    release(&m);
    return status;
}
