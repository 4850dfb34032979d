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

#include "base/arena.h"
#include "base/text/quantity.h"
#include "base/try.h"
#include "plots/plot_color.h"
#include "plots/plot_gnuplot.h"
#include "plots/plot_script.h"
#include "plots/plot_view.h"
#include "traces/trace.h"

static const double panel_px = 104, panel_gap_px = 26, line_px = 17, stroke_px = 0.5,
                    least_use = 0.2; /* of the capacity, for a panel that reaches up to it */

struct panel {
    uint32_t place;
    double top_px, bottom_px; /* from the top of the area */
    double top_bytes;
    bool shows_capacity;
};

struct memory_plot {
    struct plot_view view;
    struct plot_script script;
    struct arena arena;
    struct panel *panels;
    uint32_t panel_count;
    double unit_s;
};

/* --- panels --------------------------------------------------------------------------------- */

static const struct trace_place *place_of(const struct memory_plot *m, uint32_t side,
                                          uint32_t place)
{
    const struct trace *trace = m->view.traces[side];
    return trace ? &trace->places[place] : NULL;
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
    return STATUS_OK;
}

static enum status check_levels(const struct plot_view *view, struct error *err)
{
    for (uint32_t side = 0; side < PLOT_SIDES; side++)
        if (view->traces[side] && view->traces[side]->level_count == 0)
            return error_set(err, STATUS_BAD_INPUT, "the %s trace has no memory levels",
                             trace_source_names[side]);
    return STATUS_OK;
}

/* --- curves --------------------------------------------------------------------------------- */

/* Levels of one place that share a half pixel. */
struct stroke {
    double time_s;
    double low, high, last; /* bytes */
    uint64_t count; /* 0: the beginning of the window */
};

static void add_point(struct memory_plot *m, const struct panel *panel, double time_s, double bytes)
{
    plot_script_number(&m->script, time_s / m->unit_s);
    plot_script_column(&m->script, panel->bottom_px -
                                       bytes / panel->top_bytes * (panel->bottom_px - panel->top_px));
    plot_script_add(&m->script, "\n");
}

/* Adds the step from `before` to the end of the stroke; the first stroke of a curve has no step before it. */
static void add_stroke(struct memory_plot *m, const struct panel *panel,
                       const struct stroke *stroke, double before)
{
    if (stroke->count > 0) add_point(m, panel, stroke->time_s, before);
    if (stroke->count > 1) {
        add_point(m, panel, stroke->time_s, stroke->low);
        add_point(m, panel, stroke->time_s, stroke->high);
    }
    add_point(m, panel, stroke->time_s, stroke->last);
}

/* Adds a curve from the beginning of the window to its end, or down to zero at the end of the trace. */
static void add_curve(struct memory_plot *m, const struct panel *panel, uint32_t side)
{
    const struct trace *trace = m->view.traces[side];
    const struct plot_window *window = &m->view.window;
    double stroke_s = stroke_px * (window->to_s - window->from_s) / window->width_px;
    double before = 0; /* bytes before the stroke */
    struct stroke stroke = {.time_s = window->from_s};
    for (uint64_t i = 0; i < trace->level_count && trace->levels[i].time_s < window->to_s; i++) {
        const struct trace_level *level = &trace->levels[i];
        double bytes = (double)level->bytes;
        if (level->place != panel->place) continue;
        if (level->time_s <= window->from_s) {
            stroke.last = bytes; /* what holds when the window begins */
        } else if (stroke.count > 0 && level->time_s - stroke.time_s < stroke_s) {
            stroke.low = fmin(stroke.low, bytes);
            stroke.high = fmax(stroke.high, bytes);
            stroke.last = bytes;
            stroke.count++;
        } else {
            add_stroke(m, panel, &stroke, before);
            before = stroke.last;
            stroke = (struct stroke){level->time_s, bytes, bytes, bytes, 1};
        }
    }
    add_stroke(m, panel, &stroke, before);
    double end_s = fmax(m->view.end_s[side], stroke.time_s);
    add_point(m, panel, fmin(window->to_s, end_s), stroke.last);
    if (end_s < window->to_s) add_point(m, panel, end_s, 0);
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

enum status plot_memory(const struct trace *predicted, const struct trace *measured,
                        const char *path, const struct plot_options *options, struct error *err)
{
    struct memory_plot m = {0};
    struct plot_area area = {.left_px = 130, .top_px = 96};
    enum status status = plot_check_path(path, err);
    if (status == STATUS_OK) status = plot_view_init(&m.view, predicted, measured, options, err);
    if (status == STATUS_OK) status = check_levels(&m.view, err);
    if (status == STATUS_OK) status = make_panels(&m, err);
    if (status == STATUS_OK) {
        m.script.width_px = m.view.canvas_width_px;
        area.right_px = m.view.canvas_width_px - 190;
        m.view.window.width_px = area.right_px - area.left_px;
        draw(&m, &area);
        status = plot_draw(&m.script, path, options->keep_script, err);
    }
    plot_script_release(&m.script);
    arena_release(&m.arena);
    return status;
}
