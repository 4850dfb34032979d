/*
 * Policies over the bound: a dot for the mean, a bar for its 95 % interval, a tick for the worst case.
 *
 *     sharded-lrtf   |      ---o---            '
 *     ./mine.so      |  -o-       '
 *                    1.0      1.1       1.2     value over bound
 *
 * The axis begins at 1, the bound: the distance between the bound and a dot is the largest possible gain. If
 * durations were perturbed, a second dot below shows the result of live decisions.
 */
#include "base/try.h"
#include "plots/plot.h"

#include <math.h>

#include "plots/plot_color.h"
#include "plots/plot_gnuplot.h"
#include "plots/plot_script.h"

static const double row_px = 22, policy_gap_px = 10;
enum { WIDTH_DEFAULT_PX = 1000 };

struct ratios_plot {
    const struct plot_ratio *rows;
    uint32_t count;
    const char *labels[2]; /* of first and second dots; [1] NULL: there are none */
    double most;
    struct plot_script script;
    struct plot_area area;
};

static enum status check_rows(const struct plot_ratio *rows, uint32_t count, struct error *err)
{
    if (count == 0) return error_set(err, STATUS_BAD_INPUT, "there is no policy to draw");
    if (count > PLOT_POLICIES_MAX)
        return error_set(err, STATUS_LIMIT, "too many policies (limit is %d)", PLOT_POLICIES_MAX);
    for (uint32_t i = 0; i < count; i++)
        for (int d = 0; d < 2; d++) {
            const struct plot_dot *dot = &rows[i].dots[d];
            if (dot->known && !(isfinite(dot->mean) && isfinite(dot->half) && isfinite(dot->worst)))
                return error_set(err, STATUS_BAD_INPUT, "policy '%s' has a ratio that is not finite",
                                 rows[i].name);
        }
    return STATUS_OK;
}

static double height_of(const struct ratios_plot *r)
{
    return policy_gap_px + (r->labels[1] ? 2 : 1) * row_px;
}

static void lay_out(struct ratios_plot *r)
{
    double names_px = 0;
    r->most = 1.01;
    for (uint32_t i = 0; i < r->count; i++) {
        names_px = fmax(names_px, plot_text_width_px(r->rows[i].name, PLOT_TEXT_PX));
        for (int d = 0; d < 2; d++) {
            const struct plot_dot *dot = &r->rows[i].dots[d];
            if (dot->known) r->most = fmax(r->most, fmax(dot->worst, dot->mean + dot->half));
        }
    }
    r->most += 0.02 * (r->most - 1);
    r->area = (struct plot_area){.left_px = 16 + fmin(names_px, 300) + 12,
                                 .right_px = r->script.width_px - 40, .top_px = 76};
    r->area.bottom_px = r->area.top_px + r->count * height_of(r) + policy_gap_px;
    r->script.height_px = ceil(r->area.bottom_px + 54);
}

static void draw_heading(struct ratios_plot *r, const char *title)
{
    static const uint32_t colors[] = {PLOT_PREDICTED, PLOT_MEASURED};
    double x_px = 16;
    plot_script_text(&r->script, 16, 24, PLOT_LEFT, (struct plot_font){PLOT_TITLE_PX, true, PLOT_INK},
                     title ? title : "Policies over the lower bound");
    for (int d = 0; d < 2 && r->labels[d]; d++) {
        plot_script_box(&r->script, x_px, 40, x_px + 12, 52, colors[d]);
        plot_script_text(&r->script, x_px + 18, 46, PLOT_LEFT,
                         (struct plot_font){PLOT_TEXT_PX, false, PLOT_FAINT_INK}, r->labels[d]);
        x_px += 18 + plot_text_width_px(r->labels[d], PLOT_TEXT_PX) + 16;
    }
}

static double middle_of(const struct ratios_plot *r, uint32_t row, int dot)
{
    return policy_gap_px + row * height_of(r) + (dot + 0.5) * row_px;
}

static void draw_names(struct ratios_plot *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        double y_px = r->area.top_px + (middle_of(r, i, 0) + middle_of(r, i, r->labels[1] ? 1 : 0)) / 2;
        plot_script_text(&r->script, r->area.left_px - 10, y_px, PLOT_RIGHT,
                         (struct plot_font){PLOT_TEXT_PX, false, PLOT_INK}, r->rows[i].name);
    }
}

static void add_data(struct ratios_plot *r)
{
    plot_script_add(&r->script, "# mean, half of the 95 %% interval, worst, pixels from the top, color\n"
                                "$dots << END\n");
    for (uint32_t i = 0; i < r->count; i++)
        for (int d = 0; d < 2; d++) {
            const struct plot_dot *dot = &r->rows[i].dots[d];
            if (!dot->known || !r->labels[d]) continue;
            plot_script_number(&r->script, dot->mean);
            plot_script_column(&r->script, dot->half);
            plot_script_column(&r->script, dot->worst);
            plot_script_column(&r->script, middle_of(r, i, d));
            plot_script_add(&r->script, " 0x%06x\n", (unsigned)(d == 0 ? PLOT_PREDICTED : PLOT_MEASURED));
        }
    plot_script_add(&r->script,
                    "END\n"
                    "plot $dots using 3:4:5 with points pt 2 ps 1.2 lc rgb variable, "
                    "$dots using 1:4:2:5 with xerrorbars pt 7 ps 0.9 lw 2 lc rgb variable\n");
}

enum status plot_ratios(const struct plot_ratio *rows, uint32_t count, const char *const labels[2],
                        const char *path, const struct plot_options *options, struct error *err)
{
    struct ratios_plot r = {.rows = rows, .count = count, .labels = {labels[0], labels[1]}};
    TRY(plot_check_path(path, err));
    TRY(check_rows(rows, count, err));
    uint32_t width_px;
    TRY(plot_width(options, WIDTH_DEFAULT_PX, &width_px, err));
    r.script.width_px = width_px;
    lay_out(&r);
    draw_heading(&r, options->title);
    plot_script_area(&r.script, &r.area);
    plot_script_axis(&r.script, &r.area, 1, r.most, "value over bound (dot: mean, bar: 95 %, cross: worst)");
    draw_names(&r);
    add_data(&r);
    enum status status = plot_draw(&r.script, path, options->keep_script, err);
    plot_script_release(&r.script);
    return status;
}
