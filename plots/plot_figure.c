/*
 * Bars are horizontal, because names of systems and models are long. Lines have a colour for each pair of series and
 * label; published (or measured) lines are dashed with open circles, simulated lines are solid with dots:
 *
 *     GPipe   ########  3.79             |     o - - o          o published
 *             =======   3.5              |   *-----*--o         * simulated
 */
#include "plots/plot_figure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/try.h"
#include "plots/plot_color.h"
#include "plots/plot_gnuplot.h"
#include "plots/plot_script.h"

static const double width_px = 1000, bar_px = 9, pair_gap_px = 5, row_gap_px = 8, legend_row_px = 18;

struct plot_figure_drawing {
    const struct plot_figure *figure;
    struct plot_script script;
    struct plot_area area;
};

static struct plot_font small_font(uint32_t color)
{
    return (struct plot_font){PLOT_SMALL_PX, false, color};
}

static void draw_title(struct plot_figure_drawing *d)
{
    plot_script_text(&d->script, 16, 24, PLOT_LEFT, (struct plot_font){PLOT_TITLE_PX, true, PLOT_INK},
                     d->figure->title);
}

static const struct plot_figure_value *reference_at(const struct plot_figure *f, uint32_t row, uint32_t series)
{
    return &f->reference[(size_t)row * f->series_count + series];
}

static const struct plot_figure_value *simulated_at(const struct plot_figure *f, uint32_t row, uint32_t series)
{
    return &f->simulated[(size_t)row * f->series_count + series];
}

/* --- bars ---------------------------------------------------------------------------------------- */

static bool has_bar(const struct plot_figure *f, uint32_t row, uint32_t series)
{
    return reference_at(f, row, series)->known || simulated_at(f, row, series)->known;
}

static void bar_name(const struct plot_figure *f, uint32_t row, uint32_t series, char *name, size_t size)
{
    if (f->series_count == 1)
        snprintf(name, size, "%s", f->labels[row]);
    else
        snprintf(name, size, "%s: %s", f->labels[row], f->series[series]);
}

static void lay_out_bars(struct plot_figure_drawing *d, double *most, uint32_t *bar_count)
{
    const struct plot_figure *f = d->figure;
    double names_px = 0, height_px = row_gap_px;
    *most = 0;
    *bar_count = 0;
    for (uint32_t r = 0; r < f->row_count; r++) {
        for (uint32_t s = 0; s < f->series_count; s++) {
            char name[256];
            if (!has_bar(f, r, s) || ++*bar_count > PLOT_FIGURE_BARS_MAX) continue;
            bar_name(f, r, s, name, sizeof name);
            names_px = fmax(names_px, plot_text_width_px(name, PLOT_SMALL_PX));
            height_px += 2 * bar_px + pair_gap_px;
            if (reference_at(f, r, s)->known) *most = fmax(*most, reference_at(f, r, s)->value);
            if (simulated_at(f, r, s)->known) *most = fmax(*most, simulated_at(f, r, s)->value);
        }
        if (*bar_count <= PLOT_FIGURE_BARS_MAX) height_px += row_gap_px;
    }
    d->area = (struct plot_area){.left_px = 16 + fmin(names_px, 420) + 10, .right_px = width_px - 70, .top_px = 64};
    d->area.bottom_px = d->area.top_px + height_px;
    d->script.height_px = ceil(d->area.bottom_px + 54);
    if (*most <= 0) *most = 1;
}

static void draw_bar(struct plot_figure_drawing *d, double y_px, const struct plot_figure_value *value, double most,
                     uint32_t color)
{
    char text[32];
    if (!value->known) return;
    double scale = (d->area.right_px - d->area.left_px) / most;
    double right_px = d->area.left_px + fmax(value->value, 0) * scale;
    snprintf(text, sizeof text, fabs(value->value) >= 1000 && fabs(value->value) < 1e6 ? "%.0f" : "%.3g", value->value);
    plot_script_box(&d->script, d->area.left_px, y_px, right_px, y_px + bar_px - 1, color);
    plot_script_text(&d->script, right_px + 5, y_px + bar_px / 2, PLOT_LEFT,
                     (struct plot_font){PLOT_TINY_PX, false, PLOT_FAINT_INK}, text);
}

static void draw_bars(struct plot_figure_drawing *d, double most)
{
    const struct plot_figure *f = d->figure;
    double y_px = d->area.top_px + row_gap_px;
    uint32_t count = 0;
    for (uint32_t r = 0; r < f->row_count; r++) {
        for (uint32_t s = 0; s < f->series_count; s++) {
            char name[256];
            if (!has_bar(f, r, s)) continue;
            if (++count > PLOT_FIGURE_BARS_MAX) return;
            bar_name(f, r, s, name, sizeof name);
            plot_script_text(&d->script, d->area.left_px - 8, y_px + bar_px, PLOT_RIGHT, small_font(PLOT_INK), name);
            draw_bar(d, y_px, reference_at(f, r, s), most, PLOT_MEASURED);
            draw_bar(d, y_px + bar_px, simulated_at(f, r, s), most, PLOT_PREDICTED);
            y_px += 2 * bar_px + pair_gap_px;
        }
        y_px += row_gap_px;
    }
}

static void draw_bar_legend(struct plot_figure_drawing *d, uint32_t bar_count)
{
    char more[64] = "";
    if (bar_count > PLOT_FIGURE_BARS_MAX)
        snprintf(more, sizeof more, "the first %d of %u", PLOT_FIGURE_BARS_MAX, (unsigned)bar_count);
    plot_script_box(&d->script, 16, 42, 28, 52, PLOT_MEASURED);
    plot_script_text(&d->script, 34, 47, PLOT_LEFT, small_font(PLOT_FAINT_INK), d->figure->reference_name);
    plot_script_box(&d->script, 110, 42, 122, 52, PLOT_PREDICTED);
    plot_script_text(&d->script, 128, 47, PLOT_LEFT, small_font(PLOT_FAINT_INK), "simulated");
    if (*more) plot_script_text(&d->script, 220, 47, PLOT_LEFT, small_font(PLOT_FAINT_INK), more);
}

static void make_bars(struct plot_figure_drawing *d)
{
    double most;
    uint32_t bar_count;
    lay_out_bars(d, &most, &bar_count);
    draw_title(d);
    draw_bar_legend(d, bar_count);
    plot_script_area(&d->script, &d->area);
    plot_script_axis(&d->script, &d->area, 0, most, d->figure->y_name);
    draw_bars(d, most);
    plot_script_add(&d->script, "plot -1 notitle with lines lc rgb '#ffffff'\n");
}

/* --- lines --------------------------------------------------------------------------------------- */

struct line {
    uint32_t series;
    const char *label;
};

/* Pairs of series and label that have a point, in the order of their first rows. */
static uint32_t find_lines(const struct plot_figure *f, struct line lines[PLOT_FIGURE_LINES_MAX])
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < f->series_count; s++)
        for (uint32_t r = 0; r < f->row_count && count < PLOT_FIGURE_LINES_MAX; r++) {
            bool known = !has_bar(f, r, s);
            for (uint32_t i = 0; i < count && !known; i++)
                known = lines[i].series == s && strcmp(lines[i].label, f->labels[r]) == 0;
            if (!known) lines[count++] = (struct line){s, f->labels[r]};
        }
    return count;
}

static bool is_drawn(const struct plot_figure *f, uint32_t row, const struct plot_figure_value *value)
{
    return value->known && !(f->y_log && value->value <= 0) && !(f->x_log && f->x[row] <= 0);
}

static bool add_line(struct plot_figure_drawing *d, const struct line *line, bool published, uint32_t index)
{
    const struct plot_figure *f = d->figure;
    bool any = false;
    plot_script_add(&d->script, "$%s%u << END\n", published ? "published" : "simulated", (unsigned)index);
    for (uint32_t r = 0; r < f->row_count; r++) {
        const struct plot_figure_value *value =
            published ? reference_at(f, r, line->series) : simulated_at(f, r, line->series);
        if (strcmp(f->labels[r], line->label) != 0 || !is_drawn(f, r, value)) continue;
        plot_script_number(&d->script, f->x[r]);
        plot_script_column(&d->script, value->value);
        plot_script_add(&d->script, "\n");
        any = true;
    }
    plot_script_add(&d->script, "END\n");
    return any;
}

static void draw_line_legend(struct plot_figure_drawing *d, const struct line *lines, uint32_t count)
{
    const struct plot_figure *f = d->figure;
    double left_px = d->area.right_px + 24;
    for (uint32_t i = 0; i < count; i++) {
        char name[200];
        const char *part = f->series_count > 1 ? f->series[lines[i].series] : "";
        double y_px = d->area.top_px + 10 + i * legend_row_px;
        snprintf(name, sizeof name, "%s%s%s", part, *part && *lines[i].label ? ": " : "", lines[i].label);
        plot_script_box(&d->script, left_px, y_px - 5, left_px + 10, y_px + 5, plot_share_color(i));
        plot_script_text(&d->script, left_px + 16, y_px, PLOT_LEFT, small_font(PLOT_INK), *name ? name : f->series[0]);
    }
    char kinds[96];
    snprintf(kinds, sizeof kinds, "open circles, dashed: %s    dots, solid: simulated", f->reference_name);
    plot_script_text(&d->script, 16, 46, PLOT_LEFT, small_font(PLOT_FAINT_INK), kinds);
}

static void begin_axes(struct plot_figure_drawing *d)
{
    const struct plot_figure *f = d->figure;
    plot_script_add(&d->script,
                    "set xrange [*:*]\nset yrange [%s:*]\n%s%sset offsets graph 0.03, graph 0.03, graph 0.05, 0\n"
                    "set border 3 lc rgb '#%06x'\n",
                    f->y_log ? "*" : "0", f->x_log ? "set logscale x 2\n" : "", f->y_log ? "set logscale y\n" : "",
                    PLOT_AXIS);
    plot_script_add(&d->script,
                    "set xtics out nomirror scale 0.5 font ',%d' tc rgb '#%06x'\n"
                    "set ytics out nomirror scale 0.5 font ',%d' tc rgb '#%06x'\n"
                    "set format '%%.10g'\nset grid lt 1 lw 1 lc rgb '#%06x' back\n",
                    PLOT_SMALL_PX, PLOT_FAINT_INK, PLOT_SMALL_PX, PLOT_FAINT_INK, PLOT_GRID);
    plot_script_text(&d->script, d->area.right_px, d->area.bottom_px + 40, PLOT_RIGHT, small_font(PLOT_FAINT_INK),
                     f->x_name);
    plot_script_text(&d->script, 16, 66, PLOT_LEFT, small_font(PLOT_FAINT_INK), f->y_name);
}

static void make_lines(struct plot_figure_drawing *d)
{
    struct line lines[PLOT_FIGURE_LINES_MAX];
    bool drawn[PLOT_FIGURE_LINES_MAX][2];
    uint32_t count = find_lines(d->figure, lines);
    const char *comma = "";
    d->area = (struct plot_area){.left_px = 70, .right_px = width_px - 260, .top_px = 84};
    d->area.bottom_px = d->area.top_px + fmax(360, count * legend_row_px);
    d->script.height_px = ceil(d->area.bottom_px + 54);
    draw_title(d);
    draw_line_legend(d, lines, count);
    plot_script_area(&d->script, &d->area);
    begin_axes(d);
    for (uint32_t i = 0; i < count; i++)
        for (int p = 0; p < 2; p++) drawn[i][p] = add_line(d, &lines[i], p == 0, i);
    plot_script_add(&d->script, "plot ");
    for (uint32_t i = 0; i < count; i++)
        for (int p = 0; p < 2; p++) {
            if (!drawn[i][p]) continue;
            plot_script_add(&d->script, "%s$%s%u using 1:2 with linespoints pt %d ps 0.9 lw 1.5 dt %s lc rgb '#%06x'",
                            comma, p == 0 ? "published" : "simulated", (unsigned)i, p == 0 ? 6 : 7,
                            p == 0 ? "(6,4)" : "solid", (unsigned)plot_share_color(i));
            comma = ", ";
        }
    plot_script_add(&d->script, "%s\n", *comma ? "" : "0 with lines");
}

/* --- public --------------------------------------------------------------------------------------- */

enum status plot_figure_draw(const struct plot_figure *figure, const char *path, struct error *err)
{
    struct plot_figure_drawing d = {.figure = figure, .script = {.width_px = width_px}};
    TRY(plot_check_path(path, err));
    if (figure->row_count == 0 || figure->series_count == 0)
        return error_set(err, STATUS_BAD_INPUT, "there is nothing to draw");
    if (figure->lines)
        make_lines(&d);
    else
        make_bars(&d);
    enum status status = plot_draw(&d.script, path, false, err);
    plot_script_release(&d.script);
    return status;
}
