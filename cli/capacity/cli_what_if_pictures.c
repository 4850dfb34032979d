/* `whatif --report`: a tornado plot for each machine. */
#include <stdio.h>

#include "base/extreme.h"
#include "cli/capacity/cli_what_if_sensitivity.h"
#include "cli/document/cli_document.h"
#include "plots/plot.h"

/* Takes effects on the time, which a price lacks. */
static uint32_t collect_effects(const struct what_if_answer *a, struct plot_effect out[WHAT_IF_BARS_MAX])
{
    static const struct what_if_wanted wanted = {.all = true};
    struct what_if_bar bars[WHAT_IF_BARS_MAX];
    uint32_t count = 0, all = what_if_bars(&wanted, a, bars);
    for (uint32_t b = 0; b < all; b++)
        if (!bars[b].cost_only)
            out[count++] = (struct plot_effect){bars[b].name, min_s(bars[b].better, bars[b].worse),
                                                max_s(bars[b].better, bars[b].worse)};
    return count;
}

static enum status draw(const void *context, const char *path, struct error *err)
{
    const struct what_if_answer *a = context;
    struct plot_effect effects[WHAT_IF_BARS_MAX];
    char title[WHAT_IF_TEXT_BYTES];
    uint32_t count = collect_effects(a, effects);
    snprintf(title, sizeof title, "Figures that move the time on %.200s", a->name);
    return plot_tornado(effects, count, path, &(struct plot_options){.title = title}, err);
}

void what_if_pictures(struct cli *cli, const struct what_if_report *report)
{
    for (uint32_t i = 0; i < report->count && !report->search; i++) {
        struct plot_effect effects[WHAT_IF_BARS_MAX];
        const struct what_if_answer *a = &report->answers[i];
        if (a->fits && collect_effects(a, effects) > 0)
            cli_document_draw(cli, "Each property of the machine at 5 % and at 95 % of its error", draw, a);
    }
}
