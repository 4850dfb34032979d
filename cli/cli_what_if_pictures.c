/* What `whatif --report` shows beside the tables: a tornado for each machine that was named. */
#include <stdio.h>
#include <stdlib.h>

#include "base/extreme.h"
#include "cli/cli_document.h"
#include "cli/cli_what_if.h"
#include "plots/plot.h"

/* Bars that are narrower are no more than a line. */
static const double drawn_least = 0.001;

static double width_of(const struct plot_effect *effect)
{
    return effect->high - effect->low;
}

static int by_width(const void *left, const void *right)
{
    double a = width_of(left), b = width_of(right);
    return (a < b) - (a > b);
}

static uint32_t take_effects(const struct what_if_answer *a, struct plot_effect out[MACHINE_FIGURES])
{
    uint32_t count = 0;
    for (uint32_t f = 0; f < MACHINE_FIGURES; f++) {
        const struct what_if_effect *effect = &a->effects[f];
        if (!(effect->spread > 0)) continue;
        double better = effect->better_s / a->run_s - 1, worse = effect->worse_s / a->run_s - 1;
        out[count] = (struct plot_effect){machine_figure_names[f], min_s(better, worse), max_s(better, worse)};
        if (width_of(&out[count]) >= drawn_least) count++;
    }
    qsort(out, count, sizeof *out, by_width);
    return count;
}

static enum status draw(const void *context, const char *path, struct error *err)
{
    const struct what_if_answer *a = context;
    struct plot_effect effects[MACHINE_FIGURES];
    char title[WHAT_IF_TEXT_BYTES];
    uint32_t count = take_effects(a, effects);
    snprintf(title, sizeof title, "What moves the time on %.200s", a->name);
    return plot_tornado(effects, count, path, &(struct plot_options){.title = title}, err);
}

void what_if_pictures(struct cli *cli, const struct what_if_report *report)
{
    for (uint32_t i = 0; i < report->count && !report->search; i++) {
        struct plot_effect effects[MACHINE_FIGURES];
        const struct what_if_answer *a = &report->answers[i];
        if (a->fits && take_effects(a, effects) > 0)
            cli_document_draw(cli, "Each figure of the machine at 5 % and at 95 % of what it may be", draw, a);
    }
}
