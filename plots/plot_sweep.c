/*
 * Three pictures in one frame: a title, axes of gnuplot's own on both sides, a legend on the right.
 *
 * See plot_sweep.h.
 */
#include "plots/plot_sweep.h"

#include <math.h>

#include "base/try.h"
#include "plots/plot_color.h"
#include "plots/plot_gnuplot.h"
#include "plots/plot_script.h"

enum { WIDTH_DEFAULT_PX = 1000, LABELS_SHOWN_MAX = 24 };
static const double legend_row_px = 20, left_px = 96, top_px = 66, bottom_px = 64;

struct frame {
    struct plot_script script;
    struct plot_area area;
};

static enum status begin(struct frame *frame, const char *path, const struct plot_options *options,
                         double legend_px, struct error *err)
{
    *frame = (struct frame){0};
    TRY(plot_check_path(path, err));
    uint32_t width_px;
    TRY(plot_width(options, WIDTH_DEFAULT_PX, &width_px, err));
    frame->script.width_px = width_px;
    frame->script.height_px = round(0.56 * width_px);
    frame->area = (struct plot_area){.left_px = left_px, .right_px = width_px - 24 - legend_px, .top_px = top_px,
                                     .bottom_px = frame->script.height_px - bottom_px};
    return STATUS_OK;
}

static void add_titles(struct frame *frame, const char *title, const char *x_title, const char *y_title)
{
    const struct plot_font small = {PLOT_SMALL_PX, false, PLOT_FAINT_INK};
    plot_script_text(&frame->script, 16, 22, PLOT_LEFT, (struct plot_font){PLOT_TITLE_PX, true, PLOT_INK}, title);
    plot_script_text(&frame->script, 16, 42, PLOT_LEFT, small, y_title);
    plot_script_text(&frame->script, frame->area.right_px, frame->area.bottom_px + 44, PLOT_RIGHT, small, x_title);
}

/* Adds labels to one of gnuplot's axes ("x" or "y"); if there are many, only every n-th is shown. */
static void add_ticks(struct plot_script *script, const char *axis, const struct plot_ticks *ticks)
{
    plot_script_add(script, "set %stics out nomirror scale 0.5 font ',%d' tc rgb '#%06x'\n", axis, PLOT_SMALL_PX,
                    PLOT_FAINT_INK);
    if (!ticks || !ticks->labels) {
        plot_script_add(script, "set format %s '%%.10g'\n", axis);
        return;
    }
    plot_script_add(script, "set %stics noenhanced (", axis);
    uint32_t step = (ticks->label_count + LABELS_SHOWN_MAX - 1) / LABELS_SHOWN_MAX;
    for (uint32_t l = 0; l < ticks->label_count; l += step > 0 ? step : 1) {
        if (l > 0) plot_script_add(script, ", ");
        plot_script_quoted(script, ticks->labels[l]);
        plot_script_add(script, " %u", (unsigned)l);
    }
    plot_script_add(script, ")\n");
}

static void add_frame(struct frame *frame, const struct plot_ticks *x, const struct plot_ticks *y)
{
    plot_script_area(&frame->script, &frame->area);
    plot_script_add(&frame->script, "set border 3 lc rgb '#%06x'\nset autoscale y\nunset key\n", PLOT_AXIS);
    add_ticks(&frame->script, "x", x);
    add_ticks(&frame->script, "y", y);
}

static void add_grid(struct plot_script *script)
{
    plot_script_add(script, "set grid xtics ytics lt 1 lw 1 lc rgb '#%06x' back\n", PLOT_GRID);
}

static enum status end(struct frame *frame, const char *path, const struct plot_options *options, struct error *err)
{
    enum status status = plot_draw(&frame->script, path, options->keep_script, err);
    plot_script_release(&frame->script);
    return status;
}

/* --- curves ---------------------------------------------------------------------------------- */

static double legend_width_px(const struct plot_curve *curves, uint32_t count)
{
    double width_px = 0;
    for (uint32_t c = 0; c < count; c++)
        if (curves[c].name) width_px = fmax(width_px, 40 + plot_text_width_px(curves[c].name, PLOT_SMALL_PX));
    return fmin(width_px, 320);
}

static void add_legend(struct frame *frame, const struct plot_curve *curves, uint32_t count)
{
    double x_px = frame->area.right_px + 16;
    for (uint32_t c = 0; c < count; c++) {
        double y_px = frame->area.top_px + (c + 0.5) * legend_row_px;
        if (!curves[c].name) continue;
        plot_script_box(&frame->script, x_px, y_px - 2, x_px + 18, y_px + 2, plot_share_color(c));
        plot_script_text(&frame->script, x_px + 24, y_px, PLOT_LEFT,
                         (struct plot_font){PLOT_SMALL_PX, false, PLOT_INK}, curves[c].name);
    }
}

static uint64_t add_points(struct plot_script *script, const char *name, uint32_t number, const double *x,
                           const double *y, const bool *wanted, uint64_t count)
{
    uint64_t known = 0;
    plot_script_add(script, "$%s%u << END\n", name, (unsigned)number);
    for (uint64_t p = 0; p < count; p++) {
        if (!isfinite(x[p]) || !isfinite(y[p]) || (wanted && !wanted[p])) continue;
        plot_script_number(script, x[p]);
        plot_script_column(script, y[p]);
        plot_script_add(script, "\n");
        known++;
    }
    plot_script_add(script, "END\n");
    return known;
}

enum status plot_curves(const struct plot_curve *curves, uint32_t count, const struct plot_ticks *x,
                        const struct plot_ticks *y, const char *path, const struct plot_options *options,
                        struct error *err)
{
    struct frame frame;
    if (count > PLOT_CURVES_MAX)
        return error_set(err, STATUS_LIMIT, "too many curves for one picture (limit is %d)", PLOT_CURVES_MAX);
    TRY(begin(&frame, path, options, legend_width_px(curves, count), err));
    add_titles(&frame, options->title ? options->title : y->title, x->title, y->title);
    add_frame(&frame, x, y);
    add_grid(&frame.script);
    add_legend(&frame, curves, count);
    uint64_t known = 0;
    for (uint32_t c = 0; c < count; c++)
        known += add_points(&frame.script, "curve", c, curves[c].x, curves[c].y, NULL, curves[c].count);
    plot_script_add(&frame.script, "set offsets graph 0.02, graph 0.02, graph 0.05, 0\nplot ");
    bool first = true;
    for (uint32_t c = 0; c < count; c++) {
        plot_script_add(&frame.script, "%s$curve%u with linespoints lw 2 pt 7 ps 0.9 lc rgb '#%06x'",
                        first ? "" : ", \\\n", (unsigned)c, (unsigned)plot_share_color(c));
        first = false;
    }
    plot_script_add(&frame.script, "\n");
    if (known > 0) return end(&frame, path, options, err);
    plot_script_release(&frame.script);
    return error_set(err, STATUS_BAD_INPUT, "'%s' is missing at every point: there is nothing to draw", y->title);
}

/* --- heat map -------------------------------------------------------------------------------- */

enum status plot_heat(const double *values, const struct plot_ticks *x, const struct plot_ticks *y, const char *figure,
                      const char *path, const struct plot_options *options, struct error *err)
{
    struct frame frame;
    uint64_t cells = (uint64_t)x->label_count * y->label_count, known = 0;
    if (cells > PLOT_CELLS_MAX)
        return error_set(err, STATUS_LIMIT, "too many cells for one picture (limit is %d)", PLOT_CELLS_MAX);
    TRY(begin(&frame, path, options, 96, err));
    struct plot_script *script = &frame.script;
    add_titles(&frame, options->title ? options->title : figure, x->title, y->title);
    add_frame(&frame, x, y);
    plot_script_add(script, "set xrange [-0.5:%u.5]\nset yrange [-0.5:%u.5]\n", (unsigned)x->label_count - 1,
                    (unsigned)y->label_count - 1);
    /* one hue from light to dark: equally readable in every kind of sight, and in print */
    plot_script_add(script, "set palette defined (0 '#eaf3fc', 0.5 '#4c9be8', 1 '#053b75')\n"
                            "set colorbox user origin screen %.4f, screen 0.2 size screen 0.018, screen 0.6\n"
                            "set cbtics scale 0.3 font ',%d' tc rgb '#%06x'\nset format cb '%%.4g'\n",
                    (frame.area.right_px + 20) / script->width_px, PLOT_SMALL_PX, PLOT_FAINT_INK);
    plot_script_add(script, "$cells << END\n");
    for (uint64_t c = 0; c < cells; c++) {
        if (!isfinite(values[c])) continue;
        plot_script_add(script, "%u %u", (unsigned)(c % x->label_count), (unsigned)(c / x->label_count));
        plot_script_column(script, values[c]);
        plot_script_add(script, "\n");
        known++;
    }
    plot_script_add(script,
                    "END\nplot $cells using 1:2:(0.5):(0.5):3 with boxxyerror fs solid 1 noborder lc palette\n");
    if (known > 0) return end(&frame, path, options, err);
    plot_script_release(script);
    return error_set(err, STATUS_BAD_INPUT, "'%s' is missing at every point: there is nothing to draw", figure);
}

/* --- front ----------------------------------------------------------------------------------- */

enum status plot_front(const double *x, const double *y, const bool *on_front, uint64_t count, const char *x_title,
                       const char *y_title, const char *path, const struct plot_options *options, struct error *err)
{
    struct frame frame;
    TRY(begin(&frame, path, options, 0, err));
    struct plot_script *script = &frame.script;
    add_titles(&frame, options->title ? options->title : "Points that no other point beats in both", x_title, y_title);
    add_frame(&frame, NULL, NULL);
    add_grid(script);
    uint64_t known = add_points(script, "all", 0, x, y, NULL, count);
    add_points(script, "front", 0, x, y, on_front, count);
    plot_script_add(script, "set offsets graph 0.03, graph 0.03, graph 0.05, graph 0.03\n"
                            "plot $all0 with points pt 7 ps 0.8 lc rgb '#%06x', \\\n"
                            "$front0 smooth unique with lines lw 2 lc rgb '#%06x', \\\n"
                            "$front0 with points pt 7 ps 1.3 lc rgb '#%06x'\n",
                    PLOT_AXIS, PLOT_PREDICTED, PLOT_PREDICTED);
    if (known > 0) return end(&frame, path, options, err);
    plot_script_release(script);
    return error_set(err, STATUS_BAD_INPUT, "no point has both figures: there is nothing to draw");
}
