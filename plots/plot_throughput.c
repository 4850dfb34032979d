/*
 * Throughput of policies as bars that start at zero.
 *
 *                                                      no plan exceeds 12 788 tokens/s
 *     sharded-lrtf   [==================== 12 034 tokens/s, 6 min 52 s]            '
 *                    [================== 11 488 tokens/s, 7 min 12 s]              '
 *     fifo           [============ 9 188 tokens/s, 9 min]                          '
 *
 * A lower bound on the makespan is an upper bound on the throughput of these jobs: their tokens over
 * the bound. The distance of a bar to that line is what any other policy could still gain, which is
 * why bars are compared with it and not only with each other.
 *
 * Bars are horizontal, because names of policies are longer than bars are wide. The value is
 * written at the end of each bar; the axis serves only for orientation.
 */
#include "base/try.h"
#include "plots/plot.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/text/quantity.h"
#include "plots/plot_color.h"
#include "plots/plot_gnuplot.h"
#include "plots/plot_script.h"

static const double bar_px = 18, bar_gap_px = 2, policy_gap_px = 14;
enum { WIDTH_DEFAULT_PX = 1000 };

struct throughput_plot {
    const struct plot_policy *policies;
    uint32_t count;
    double lower_bound_s;       /* 0: none */
    double limit_tokens_per_s;  /* 0: none */
    double most_tokens_per_s;   /* end of the axis */
    struct plot_script script;
    struct plot_area area;
};

static enum status check_policies(const struct plot_policy *policies, uint32_t count,
                                  struct error *err)
{
    if (count == 0) return error_set(err, STATUS_BAD_INPUT, "there is no policy to draw");
    if (count > PLOT_POLICIES_MAX)
        return error_set(err, STATUS_LIMIT, "too many policies (limit is %d)", PLOT_POLICIES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        const struct plot_policy *p = &policies[i];
        bool sound = isfinite(p->makespan_s) && p->makespan_s > 0 && isfinite(p->tokens_per_s) &&
                     p->tokens_per_s > 0;
        if (sound && p->measured)
            sound = isfinite(p->measured_makespan_s) && p->measured_makespan_s > 0 &&
                    isfinite(p->measured_tokens_per_s) && p->measured_tokens_per_s > 0;
        if (!sound)
            return error_set(err, STATUS_BAD_INPUT,
                             "policy '%s' has no makespan or no throughput above 0", p->name);
    }
    return STATUS_OK;
}

/* --- layout --------------------------------------------------------------------------------- */

static double bars_px(const struct plot_policy *policy)
{
    return policy->measured ? 2 * bar_px + bar_gap_px : bar_px;
}

static void lay_out(struct throughput_plot *t)
{
    double names_px = 0, height_px = policy_gap_px;
    for (uint32_t i = 0; i < t->count; i++) {
        const struct plot_policy *p = &t->policies[i];
        names_px = fmax(names_px, plot_text_width_px(p->name, PLOT_TEXT_PX));
        height_px += bars_px(p) + policy_gap_px;
        t->most_tokens_per_s = fmax(t->most_tokens_per_s, p->tokens_per_s);
        if (p->measured)
            t->most_tokens_per_s = fmax(t->most_tokens_per_s, p->measured_tokens_per_s);
    }
    if (t->lower_bound_s > 0)
        t->limit_tokens_per_s =
            t->policies[0].tokens_per_s * t->policies[0].makespan_s / t->lower_bound_s;
    t->most_tokens_per_s = fmax(t->most_tokens_per_s, t->limit_tokens_per_s);
    t->area = (struct plot_area){.left_px = 16 + fmin(names_px, 260) + 12,
                                 .right_px = t->script.width_px - 40,
                                 .top_px = t->limit_tokens_per_s > 0 ? 98 : 76};
    t->area.bottom_px = t->area.top_px + height_px;
    t->script.height_px = ceil(t->area.bottom_px + 54);
}

/* --- drawing -------------------------------------------------------------------------------- */

static double x_of(const struct throughput_plot *t, double tokens_per_s)
{
    return t->area.left_px +
           tokens_per_s / t->most_tokens_per_s * (t->area.right_px - t->area.left_px);
}

/* Places the label inside the bar at its end, where it cannot meet the line, or next to a bar that
 * is too short. */
static void describe_bar(struct throughput_plot *t, double y_px, double tokens_per_s,
                         double makespan_s)
{
    char rate[QUANTITY_TEXT_BYTES], time[QUANTITY_TEXT_BYTES], text[128];
    snprintf(text, sizeof text, "%s tokens/s, %s",
             quantity_text(tokens_per_s, DIMENSION_COUNT_OF, rate),
             quantity_text(makespan_s, DIMENSION_SECONDS, time));
    double x_px = x_of(t, tokens_per_s);
    bool inside = x_px - t->area.left_px > plot_text_width_px(text, PLOT_SMALL_PX) + 16;
    plot_script_text(&t->script, inside ? x_px - 8 : x_px + 8, y_px,
                     inside ? PLOT_RIGHT : PLOT_LEFT,
                     (struct plot_font){PLOT_SMALL_PX, false, inside ? 0xffffff : PLOT_INK}, text);
}

static void add_bar(struct throughput_plot *t, double y_px, double tokens_per_s, uint32_t color)
{
    plot_script_number(&t->script, tokens_per_s);
    plot_script_column(&t->script, y_px - t->area.top_px);
    plot_script_column(&t->script, y_px + bar_px - t->area.top_px);
    plot_script_add(&t->script, " 0x%06x\n", (unsigned)color);
}

static void draw_names(struct throughput_plot *t)
{
    double y_px = t->area.top_px + policy_gap_px;
    for (uint32_t i = 0; i < t->count; i++) {
        const struct plot_policy *p = &t->policies[i];
        plot_script_text(&t->script, t->area.left_px - 10, y_px + bars_px(p) / 2, PLOT_RIGHT,
                         (struct plot_font){PLOT_TEXT_PX, false, PLOT_INK}, p->name);
        describe_bar(t, y_px + bar_px / 2, p->tokens_per_s, p->makespan_s);
        if (p->measured)
            describe_bar(t, y_px + 1.5 * bar_px + bar_gap_px, p->measured_tokens_per_s,
                         p->measured_makespan_s);
        y_px += bars_px(p) + policy_gap_px;
    }
}

static void draw_limit(struct throughput_plot *t)
{
    if (t->limit_tokens_per_s <= 0) return;
    char rate[QUANTITY_TEXT_BYTES], time[QUANTITY_TEXT_BYTES], text[160];
    double x_px = x_of(t, t->limit_tokens_per_s);
    snprintf(text, sizeof text, "no plan exceeds %s tokens/s (lower bound on the makespan: %s)",
             quantity_text(t->limit_tokens_per_s, DIMENSION_COUNT_OF, rate),
             quantity_text(t->lower_bound_s, DIMENSION_SECONDS, time));
    plot_script_line(&t->script, x_px, t->area.top_px - 8, x_px, t->area.bottom_px,
                     (struct plot_pen){1.2, PLOT_LIMIT, true});
    plot_script_text(&t->script, x_px + 4, t->area.top_px - 17, PLOT_RIGHT,
                     (struct plot_font){PLOT_SMALL_PX, false, PLOT_INK}, text);
}

static void draw_heading(struct throughput_plot *t, const char *title)
{
    bool measured = false;
    for (uint32_t i = 0; i < t->count; i++) measured = measured || t->policies[i].measured;
    plot_script_text(&t->script, 16, 24, PLOT_LEFT,
                     (struct plot_font){PLOT_TITLE_PX, true, PLOT_INK},
                     title ? title : "Throughput by policy");
    double x_px = 16;
    const char *const names[] = {"predicted", "measured"};
    const uint32_t colors[] = {PLOT_PREDICTED, PLOT_MEASURED};
    for (int side = 0; side < (measured ? 2 : 1); side++) {
        plot_script_box(&t->script, x_px, 40, x_px + 12, 52, colors[side]);
        plot_script_text(&t->script, x_px + 18, 46, PLOT_LEFT,
                         (struct plot_font){PLOT_TEXT_PX, false, PLOT_FAINT_INK}, names[side]);
        x_px += 18 + plot_text_width_px(names[side], PLOT_TEXT_PX) + 16;
    }
}

static void add_data(struct throughput_plot *t)
{
    double y_px = t->area.top_px + policy_gap_px;
    plot_script_add(&t->script, "# tokens per second, top, bottom, color\n$bars << END\n");
    for (uint32_t i = 0; i < t->count; i++) {
        const struct plot_policy *p = &t->policies[i];
        add_bar(t, y_px, p->tokens_per_s, PLOT_PREDICTED);
        if (p->measured)
            add_bar(t, y_px + bar_px + bar_gap_px, p->measured_tokens_per_s, PLOT_MEASURED);
        y_px += bars_px(p) + policy_gap_px;
    }
    plot_script_add(&t->script, "END\nplot $bars using ($1/2):(($2+$3)/2):(0):1:2:3:4 "
                                "with boxxyerror fs solid noborder lc rgb variable\n");
}

/* --- public --------------------------------------------------------------------------------- */

enum status plot_throughput(const struct plot_policy *policies, uint32_t count,
                            double lower_bound_s, const char *path,
                            const struct plot_options *options, struct error *err)
{
    struct throughput_plot t = {
        .policies = policies, .count = count, .lower_bound_s = lower_bound_s};
    assert(isfinite(lower_bound_s));
    TRY(plot_check_path(path, err));
    TRY(check_policies(policies, count, err));
    uint32_t width_px;
    TRY(plot_width(options, WIDTH_DEFAULT_PX, &width_px, err));
    t.script.width_px = width_px;
    lay_out(&t);
    draw_heading(&t, options->title);
    plot_script_area(&t.script, &t.area);
    plot_script_axis(&t.script, &t.area, 0, t.most_tokens_per_s, "tokens per second");
    draw_names(&t);
    draw_limit(&t);
    add_data(&t);
    enum status status = plot_draw(&t.script, path, options->keep_script, err);
    plot_script_release(&t.script);
    return status;
}
