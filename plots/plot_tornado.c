/*
 * Draws the effect of each figure on a result, as bars to both sides of the result.
 *
 *     matmul_efficiency   [==========|============]        the widest on top
 *     memory_efficiency      [=======|=========]
 *     dispatch_latency            [==|==]
 *
 * The ends of each bar are labelled. A bar on only one side means that the figure works in one direction: less of it
 * hurts, and more does not help.
 */
#include "base/try.h"
#include "plots/plot.h"

#include <math.h>
#include <stdio.h>

#include "plots/plot_color.h"
#include "plots/plot_gnuplot.h"
#include "plots/plot_script.h"

static const double bar_px = 18, gap_px = 8, text_px = 64; /* room for "+10.5 %" on either side */
enum { WIDTH_DEFAULT_PX = 900 };

struct tornado {
    const struct plot_effect *effects;
    uint32_t count;
    double least, most; /* ends of the axis, in per cent */
    struct plot_script script;
    struct plot_area area;
};

static enum status check_effects(const struct plot_effect *effects, uint32_t count, struct error *err)
{
    if (count == 0) return error_set(err, STATUS_BAD_INPUT, "there is no figure to draw");
    if (count > PLOT_EFFECTS_MAX)
        return error_set(err, STATUS_LIMIT, "too many figures (limit is %d)", PLOT_EFFECTS_MAX);
    for (uint32_t i = 0; i < count; i++)
        if (!isfinite(effects[i].low) || !isfinite(effects[i].high) || effects[i].low > effects[i].high)
            return error_set(err, STATUS_BAD_INPUT, "figure '%s' has no range", effects[i].name);
    return STATUS_OK;
}

static void lay_out(struct tornado *t)
{
    double names_px = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        names_px = fmax(names_px, plot_text_width_px(t->effects[i].name, PLOT_TEXT_PX));
        t->least = fmin(t->least, 100 * t->effects[i].low);
        t->most = fmax(t->most, 100 * t->effects[i].high);
    }
    if (!(t->most > t->least)) t->most = t->least + 1;
    double room = text_px / (t->script.width_px - names_px - 3 * text_px) * (t->most - t->least);
    t->least -= room;
    t->most += room;
    t->area = (struct plot_area){.left_px = 16 + fmin(names_px, 260) + 12, .right_px = t->script.width_px - 24,
                                 .top_px = 48};
    t->area.bottom_px = t->area.top_px + gap_px + t->count * (bar_px + gap_px);
    t->script.height_px = ceil(t->area.bottom_px + 54);
}

static double x_of(const struct tornado *t, double percent)
{
    return t->area.left_px + (percent - t->least) / (t->most - t->least) * (t->area.right_px - t->area.left_px);
}

static double top_of(const struct tornado *t, uint32_t i)
{
    return t->area.top_px + gap_px + i * (bar_px + gap_px);
}

static void say_end(struct tornado *t, double percent, double y_px, enum plot_align align)
{
    char text[32];
    snprintf(text, sizeof text, "%+.1f %%", percent);
    plot_script_text(&t->script, x_of(t, percent) + (align == PLOT_LEFT ? 6 : -6), y_px, align,
                     (struct plot_font){PLOT_SMALL_PX, false, PLOT_FAINT_INK}, text);
}

static void draw_names(struct tornado *t)
{
    for (uint32_t i = 0; i < t->count; i++) {
        double y_px = top_of(t, i) + bar_px / 2;
        plot_script_text(&t->script, t->area.left_px - 10, y_px, PLOT_RIGHT,
                         (struct plot_font){PLOT_TEXT_PX, false, PLOT_INK}, t->effects[i].name);
        say_end(t, 100 * t->effects[i].low, y_px, PLOT_RIGHT);
        say_end(t, 100 * t->effects[i].high, y_px, PLOT_LEFT);
    }
    double zero_px = x_of(t, 0);
    plot_script_line(&t->script, zero_px, t->area.top_px, zero_px, t->area.bottom_px,
                     (struct plot_pen){1.2, PLOT_INK, false});
}

static void add_bar(struct tornado *t, uint32_t i, double from, double to, uint32_t color)
{
    plot_script_number(&t->script, 100 * from);
    plot_script_column(&t->script, 100 * to);
    plot_script_column(&t->script, top_of(t, i) - t->area.top_px);
    plot_script_column(&t->script, top_of(t, i) + bar_px - t->area.top_px);
    plot_script_add(&t->script, " 0x%06x\n", (unsigned)color);
}

/* Adds each bar's parts on the two sides of the result. */
static void add_data(struct tornado *t)
{
    plot_script_add(&t->script, "# from, to (per cent), top, bottom, color\n$bars << END\n");
    for (uint32_t i = 0; i < t->count; i++) {
        const struct plot_effect *e = &t->effects[i];
        if (e->low < 0) add_bar(t, i, e->low, fmin(e->high, 0), PLOT_PREDICTED);
        if (e->high > 0) add_bar(t, i, fmax(e->low, 0), e->high, PLOT_MEASURED);
    }
    plot_script_add(&t->script, "END\nplot $bars using (($1+$2)/2):(($3+$4)/2):1:2:3:4:5 "
                                "with boxxyerror fs solid noborder lc rgb variable\n");
}

enum status plot_tornado(const struct plot_effect *effects, uint32_t count, const char *path,
                         const struct plot_options *options, struct error *err)
{
    struct tornado t = {.effects = effects, .count = count};
    TRY(plot_check_path(path, err));
    TRY(check_effects(effects, count, err));
    uint32_t width_px;
    TRY(plot_width(options, WIDTH_DEFAULT_PX, &width_px, err));
    t.script.width_px = width_px;
    lay_out(&t);
    plot_script_text(&t.script, 16, 24, PLOT_LEFT, (struct plot_font){PLOT_TITLE_PX, true, PLOT_INK},
                     options->title ? options->title : "What moves the time");
    plot_script_area(&t.script, &t.area);
    plot_script_axis(&t.script, &t.area, t.least, t.most, "change, %");
    draw_names(&t);
    add_data(&t);
    enum status status = plot_draw(&t.script, path, options->keep_script, err);
    plot_script_release(&t.script);
    return status;
}
