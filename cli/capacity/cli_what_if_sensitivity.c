#include "cli/capacity/cli_what_if_sensitivity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/extreme.h"
#include "base/text/suggest.h"
#include "base/try.h"
#include "cli/common/cli_table.h"
#include "plots/plot.h"

enum { NAME_BYTES = 64, LABEL_BYTES = 128 };

/* "all" leaves out smaller relative effects on the time. */
static const double shown_least = 0.001;
static const double price_spread = 0.1;

static const char *const group_names[WHAT_IF_GROUPS] = {[WHAT_IF_BANDWIDTH] = "bw", [WHAT_IF_MFU] = "mfu"};
static const char all_name[] = "all", price_name[] = "price";

static bool is_bandwidth(uint32_t what)
{
    switch (what) {
    case MACHINE_MEMORY_BANDWIDTH:
    case MACHINE_MEMORY_EFFICIENCY:
    case MACHINE_H2D:
    case MACHINE_D2H:
    case MACHINE_P2P:
    case MACHINE_RING:
    case MACHINE_COLLECTIVES:
    case MACHINE_LINK:
    case MACHINE_HOST_BANDWIDTH:
    case MACHINE_STORAGE_READ:
    case MACHINE_STORAGE_WRITE:
    case MACHINE_STORAGE_BOTH: return true;
    default: return false;
    }
}

static bool is_compute(uint32_t what)
{
    switch (what) {
    case MACHINE_PEAK_FP32:
    case MACHINE_PEAK_TF32:
    case MACHINE_PEAK_BF16:
    case MACHINE_MATMUL_EFFICIENCY:
    case MACHINE_FP32_EFFICIENCY:
    case MACHINE_MATMUL_SUSTAINED:
    case MACHINE_MISALIGNED_RATE:
    case MACHINE_MATMUL_DEPTH:
    case MACHINE_ATTENTION_EFFICIENCY:
    case MACHINE_KERNELS: return true;
    default: return false;
    }
}

static bool in_group(uint32_t group, uint32_t what)
{
    return group == WHAT_IF_BANDWIDTH ? is_bandwidth(what) : is_compute(what);
}

/* --- the option ------------------------------------------------------------------------------------ */

static enum status unknown(const char *name, struct error *err)
{
    const char *names[2 + WHAT_IF_GROUPS + MACHINE_VALUES];
    size_t count = 0;
    char ending[SUGGEST_BYTES];
    names[count++] = all_name;
    names[count++] = price_name;
    for (uint32_t g = 0; g < WHAT_IF_GROUPS; g++) names[count++] = group_names[g];
    for (uint32_t f = 0; f < MACHINE_VALUES; f++) names[count++] = machine_value_names[f];
    return error_set(err, STATUS_BAD_INPUT, "option '--sensitivity': unknown property '%.40s'%s", name,
                     suggest_ending_or(name, names, count,
                                       " (expected all, price, bw, mfu, "
                                       "or properties such as link or matmul_efficiency)", ending));
}

static enum status parse_name(const char *name, struct what_if_wanted *out, struct error *err)
{
    bool *found = NULL;
    if (strcmp(name, all_name) == 0) found = &out->all;
    if (strcmp(name, price_name) == 0) found = &out->price;
    for (uint32_t g = 0; g < WHAT_IF_GROUPS; g++)
        if (strcmp(name, group_names[g]) == 0) found = &out->groups[g];
    for (uint32_t f = 0; f < MACHINE_VALUES; f++)
        if (strcmp(name, machine_value_names[f]) == 0) found = &out->values[f];
    if (!found) return unknown(name, err);
    *found = true;
    return STATUS_OK;
}

enum status what_if_wanted_read(const char *list, struct what_if_wanted *out, struct error *err)
{
    *out = (struct what_if_wanted){0};
    for (;; list++) {
        char name[NAME_BYTES];
        size_t length = strcspn(list, ",");
        snprintf(name, sizeof name, "%.*s", (int)(length < INT32_MAX ? length : INT32_MAX), list);
        TRY(parse_name(name, out, err));
        list += length;
        if (!*list) return STATUS_OK;
    }
}

/* --- bars ----------------------------------------------------------------------------------------- */

/* Returns 0 without a spread or if the effect is negative. */
static double gain_of(const struct what_if_answer *a, uint32_t what)
{
    const struct what_if_effect *effect = &a->effects[what];
    return effect->spread > 0 ? fmin(0, log(effect->better_s / a->run_s)) : 0;
}

static double loss_of(const struct what_if_answer *a, uint32_t what)
{
    const struct what_if_effect *effect = &a->effects[what];
    return effect->spread > 0 ? fmax(0, log(effect->worse_s / a->run_s)) : 0;
}

static struct what_if_bar value_bar(const struct what_if_answer *a, uint32_t f)
{
    const struct what_if_effect *effect = &a->effects[f];
    return (struct what_if_bar){.name = machine_value_names[f], .kind = source_kind_names[effect->kind],
                                .spread = effect->spread, .better = effect->better_s / a->run_s - 1,
                                .worse = effect->worse_s / a->run_s - 1};
}

/* Makes a group's bar; the member with the largest spread gives the kind. */
static struct what_if_bar group_bar(const struct what_if_answer *a, uint32_t group)
{
    struct what_if_bar bar = {.name = group_names[group]};
    double gain = 0, loss = 0; /* squares of logarithms */
    for (uint32_t f = 0; f < MACHINE_VALUES; f++) {
        if (!in_group(group, f) || !(a->effects[f].spread > 0)) continue;
        gain += gain_of(a, f) * gain_of(a, f);
        loss += loss_of(a, f) * loss_of(a, f);
        if (a->effects[f].spread <= bar.spread) continue;
        bar.spread = a->effects[f].spread;
        bar.kind = source_kind_names[a->effects[f].kind];
    }
    bar.better = expm1(-sqrt(gain));
    bar.worse = expm1(sqrt(loss));
    return bar;
}

static struct what_if_bar price_bar(void)
{
    return (struct what_if_bar){.name = price_name, .kind = source_kind_names[SOURCE_ASSUMED], .spread = price_spread,
                                .better = -price_spread, .worse = price_spread, .cost_only = true};
}

static double width_of(const struct what_if_bar *bar)
{
    return fabs(bar->worse - bar->better);
}

/* Orders by width, then by name. */
static int by_width(const void *left, const void *right)
{
    const struct what_if_bar *a = left, *b = right;
    double x = width_of(a), y = width_of(b);
    return x < y ? 1 : x > y ? -1 : strcmp(a->name, b->name);
}

static bool matters(const struct what_if_bar *bar)
{
    return max_s(fabs(bar->better), fabs(bar->worse)) >= shown_least;
}

uint32_t what_if_bars(const struct what_if_wanted *wanted, const struct what_if_answer *a,
                      struct what_if_bar out[WHAT_IF_BARS_MAX])
{
    uint32_t count = 0;
    for (uint32_t f = 0; f < MACHINE_VALUES; f++) {
        if (!(a->effects[f].spread > 0)) continue;
        out[count] = value_bar(a, f);
        if (wanted->values[f] || (wanted->all && matters(&out[count]))) count++;
    }
    for (uint32_t g = 0; g < WHAT_IF_GROUPS; g++) {
        out[count] = group_bar(a, g);
        if (wanted->groups[g] && out[count].spread > 0) count++;
    }
    if ((wanted->all || wanted->price) && a->price.usd_per_h > 0) out[count++] = price_bar();
    qsort(out, count, sizeof *out, by_width);
    return count;
}

/* --- the table ------------------------------------------------------------------------------------ */

static bool any_price(const struct what_if_report *report)
{
    for (uint32_t i = 0; i < report->count; i++)
        if (report->answers[i].fits && report->answers[i].price.usd_per_h > 0) return true;
    return false;
}

static void add_row(struct cli_table *table, const struct what_if_report *report, const struct what_if_answer *a,
                    const struct what_if_bar *bar, bool priced)
{
    char percent[CLI_PERCENT_BYTES];
    double usd = what_if_cost_usd(report, a, a->run_s);
    cli_table_cell(table, "%s", bar->name);
    cli_table_cell(table, "%s", a->name);
    cli_table_cell(table, "%s", bar->kind);
    cli_table_cell(table, "%.0f %%", 100 * bar->spread);
    cli_table_cell(table, "%s", bar->cost_only ? "-" : cli_signed_percent(bar->better, percent));
    cli_table_cell(table, "%s", bar->cost_only ? "-" : cli_signed_percent(bar->worse, percent));
    if (!priced) return;
    for (int side = 0; side < 2; side++)
        if (usd > 0) cli_table_cell(table, "%.4g", usd * (1 + (side ? bar->worse : bar->better)));
        else cli_table_cell(table, "-");
}

static void print_missing(FILE *out, const struct what_if_wanted *wanted, const struct what_if_answer *a)
{
    for (uint32_t f = 0; f < MACHINE_VALUES; f++)
        if (wanted->values[f] && !(a->effects[f].spread > 0))
            fprintf(out, "%s of %s: no spread is known\n", machine_value_names[f], a->name);
    for (uint32_t g = 0; g < WHAT_IF_GROUPS; g++)
        if (wanted->groups[g] && !(group_bar(a, g).spread > 0))
            fprintf(out, "%s of %s: no spread is known\n", group_names[g], a->name);
    if (wanted->price && !(a->price.usd_per_h > 0)) fprintf(out, "price of %s: unknown\n", a->name);
}

enum status what_if_bars_text(FILE *out, const struct what_if_wanted *wanted, const struct what_if_report *report,
                              struct error *err)
{
    bool priced = any_price(report), some = false;
    const char *headings[] = {"PROPERTY", "OF", "KIND", ">SPREAD", ">TIME AT BEST", ">AT WORST",
                              priced ? ">USD AT BEST" : NULL, ">AT WORST", NULL};
    struct cli_table table;
    cli_table_begin(&table, headings);
    for (uint32_t i = 0; i < report->count; i++) {
        struct what_if_bar bars[WHAT_IF_BARS_MAX];
        const struct what_if_answer *a = &report->answers[i];
        uint32_t count = a->fits ? what_if_bars(wanted, a, bars) : 0;
        for (uint32_t b = 0; b < count; b++) add_row(&table, report, a, &bars[b], priced);
        some |= count > 0;
    }
    TRY(cli_table_end(&table, out, err));
    for (uint32_t i = 0; i < report->count; i++)
        if (report->answers[i].fits) print_missing(out, wanted, &report->answers[i]);
    if (some && priced && (wanted->all || wanted->price))
        fprintf(out, "price moves only the cost; an error of %.0f %% is assumed\n", 100 * price_spread);
    fputc('\n', out);
    return STATUS_OK;
}

/* --- CSV and JSON ----------------------------------------------------------------------------------- */

void what_if_bars_json(struct json_out *json, const struct what_if_wanted *wanted, const struct what_if_report *report,
                       const struct what_if_answer *a)
{
    struct what_if_bar bars[WHAT_IF_BARS_MAX];
    uint32_t count = what_if_bars(wanted, a, bars);
    double usd = what_if_cost_usd(report, a, a->run_s);
    json_out_array_begin(json, "sensitivity", false);
    for (uint32_t b = 0; b < count; b++) {
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "name", bars[b].name);
        json_out_string(json, "kind", bars[b].kind);
        json_out_double(json, "spread", bars[b].spread);
        if (!bars[b].cost_only) {
            json_out_double(json, "better", bars[b].better);
            json_out_double(json, "worse", bars[b].worse);
        }
        if (usd > 0) {
            json_out_double(json, "usd_better", usd * (1 + bars[b].better));
            json_out_double(json, "usd_worse", usd * (1 + bars[b].worse));
        }
        json_out_object_end(json);
    }
    json_out_array_end(json);
}

/* --- the picture ------------------------------------------------------------------------------------ */

struct labelled {
    struct what_if_bar bar;
    char label[LABEL_BYTES];
};

static int by_bar(const void *left, const void *right)
{
    return by_width(&((const struct labelled *)left)->bar, &((const struct labelled *)right)->bar);
}

static uint32_t collect_bars(const struct what_if_wanted *wanted, const struct what_if_report *report,
                             struct labelled *all, uint32_t room)
{
    uint32_t count = 0, machines = 0;
    for (uint32_t i = 0; i < report->count; i++) machines += report->answers[i].fits;
    for (uint32_t i = 0; i < report->count; i++) {
        struct what_if_bar bars[WHAT_IF_BARS_MAX];
        const struct what_if_answer *a = &report->answers[i];
        uint32_t own = a->fits ? what_if_bars(wanted, a, bars) : 0;
        for (uint32_t b = 0; b < own && count < room; b++, count++) {
            all[count].bar = bars[b];
            snprintf(all[count].label, LABEL_BYTES, machines > 1 ? "%s, %.80s" : "%s", bars[b].name, a->name);
        }
    }
    qsort(all, count, sizeof *all, by_bar);
    return min_u32(count, PLOT_EFFECTS_MAX);
}

enum status what_if_bars_plot(const char *path, const struct what_if_wanted *wanted,
                              const struct what_if_report *report, struct error *err)
{
    struct labelled all[8 * WHAT_IF_BARS_MAX];
    struct plot_effect effects[PLOT_EFFECTS_MAX];
    uint32_t count = collect_bars(wanted, report, all, sizeof all / sizeof *all);
    if (count == 0)
        return error_set(err, STATUS_INFEASIBLE,
                         "nothing that moves time or cost has a known spread: '%s' is not drawn", path);
    for (uint32_t b = 0; b < count; b++)
        effects[b] = (struct plot_effect){all[b].label, min_s(all[b].bar.better, all[b].bar.worse),
                                          max_s(all[b].bar.better, all[b].bar.worse)};
    return plot_tornado(effects, count, path,
                        &(struct plot_options){.title = "Figures that move the time, and prices that move the cost"},
                        err);
}
