/*
 * The report of `whatif`: machines as columns or, after a search, as rows. All cells of text come from what_if_cell(),
 * for text and Markdown; CSV and JSON have the numbers.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/files/csv.h"
#include "base/size.h"
#include "base/text/quantity.h"
#include "base/try.h"
#include "cli/capacity/cli_what_if_sensitivity.h"
#include "cli/common/cli_table.h"
#include "cli/ways/cli_predict.h"

/* Smaller relative effects on the time are not shown. */
static const double shown_least = 0.001;

/* --- derived ---------------------------------------------------------------------------------- */

static bool misses_deadline(const struct what_if_report *report, const struct what_if_answer *a)
{
    return report->deadline_s >= 0 && what_if_time_s(report, a, a->run_s) > report->deadline_s;
}

/* Returns true also for a machine without a price. */
static bool misses_cost(const struct what_if_report *report, const struct what_if_answer *a)
{
    if (report->cost_max_usd < 0) return false;
    return !(a->price.usd_per_h > 0) || what_if_cost_usd(report, a, a->run_s) > report->cost_max_usd;
}

/* Returns true if the jobs fit within the limits of time and cost. */
static bool what_if_meets(const struct what_if_report *report, const struct what_if_answer *a)
{
    return a->fits && !misses_deadline(report, a) && !misses_cost(report, a);
}

/* Returns 0 without a known peak. It is above 1 for filtered 3 x 3 convolutions (models/cost/convolution_model.h),
 * and then not shown. */
static double mfu(const struct what_if_answer *a)
{
    return a->peak_flops_per_s > 0 ? a->model_flops / a->run_s / a->peak_flops_per_s : 0;
}

static double energy_kwh(const struct what_if_report *report, const struct what_if_answer *a)
{
    return what_if_time_s(report, a, a->run_s) / 3600 * a->watts / 1000;
}

uint32_t what_if_best(const struct what_if_report *report)
{
    uint32_t best = report->count;
    for (uint32_t i = 0; i < report->count; i++) {
        const struct what_if_answer *a = &report->answers[i], *b = &report->answers[best < report->count ? best : i];
        if (!what_if_meets(report, a)) continue;
        bool priced = a->price.usd_per_h > 0 && b->price.usd_per_h > 0;
        bool better = priced ? what_if_cost_usd(report, a, a->run_s) < what_if_cost_usd(report, b, b->run_s)
                      : (a->price.usd_per_h > 0) != (b->price.usd_per_h > 0)
                          ? a->price.usd_per_h > 0
                          : a->run_s < b->run_s;
        if (best == report->count || better) best = i;
    }
    return best;
}

/* --- cells ------------------------------------------------------------------------------------ */

enum row {
    ROW_PLAN, ROW_TOKENS, ROW_SAMPLES, ROW_MFU, ROW_TIME, ROW_DEADLINE, ROW_PRICE, ROW_COST, ROW_MILLION, ROW_BUDGET,
    ROW_ENERGY, ROW_BINDS, ROW_MEMORY, ROW_HOST, ROW_BREAK_EVEN, ROWS
};

/* Writes "523.7 (461 to 587)". */
static void range_text(double value, double low, double high, char *text, size_t bytes)
{
    snprintf(text, bytes, "%.4g (%.3g to %.3g)", value, low, high);
}

static void time_text(const struct what_if_report *report, const struct what_if_answer *a, char *text, size_t bytes)
{
    char value[QUANTITY_TEXT_BYTES], low[QUANTITY_TEXT_BYTES], high[QUANTITY_TEXT_BYTES];
    snprintf(text, bytes, "%s (%s to %s)",
             quantity_text(what_if_time_s(report, a, a->run_s), DIMENSION_SECONDS, value),
             quantity_text(what_if_time_s(report, a, a->low_s), DIMENSION_SECONDS, low),
             quantity_text(what_if_time_s(report, a, a->high_s), DIMENSION_SECONDS, high));
}

/* Writes the hourly price of equal cost with the cheapest other machine. */
static void break_even_text(const struct what_if_report *report, const struct what_if_answer *a, char *text,
                            size_t bytes)
{
    const struct what_if_answer *other = NULL;
    for (uint32_t i = 0; i < report->count; i++) {
        const struct what_if_answer *b = &report->answers[i];
        if (b == a || !b->fits || !(b->price.usd_per_h > 0)) continue;
        if (!other || what_if_cost_usd(report, b, b->run_s) < what_if_cost_usd(report, other, other->run_s)) other = b;
    }
    if (!other) {
        snprintf(text, bytes, "-");
        return;
    }
    double usd = what_if_cost_usd(report, other, other->run_s) / (what_if_time_s(report, a, a->run_s) / 3600);
    snprintf(text, bytes, "wins below %.2f USD/h", usd);
}

static void deadline_text(const struct what_if_report *report, const struct what_if_answer *a, char *text, size_t bytes)
{
    char limit[QUANTITY_TEXT_BYTES];
    quantity_text(report->deadline_s, DIMENSION_SECONDS, limit);
    bool misses = misses_deadline(report, a),
         sure = misses == (what_if_time_s(report, a, misses ? a->low_s : a->high_s) > report->deadline_s);
    snprintf(text, bytes, "%s %s%s", misses ? "MISSES" : "makes", limit, sure ? "" : ", not for sure");
}

static void price_text(const struct what_if_answer *a, char *text, size_t bytes)
{
    if (a->price.usd_per_h > 0)
        snprintf(text, bytes, "%.4g %s%s%s", a->price.usd_per_h, a->price.basis, a->price.as_of[0] ? " of " : "",
                 a->price.as_of);
    else snprintf(text, bytes, "unknown");
}

static void cost_cell(const struct what_if_report *report, const struct what_if_answer *a, enum row row, char *text,
                      size_t bytes)
{
    double cost = what_if_cost_usd(report, a, a->run_s);
    double tokens = report->tokens > 0 ? report->tokens : a->tokens;
    if (row == ROW_PRICE) price_text(a, text, bytes);
    else if (!(a->price.usd_per_h > 0) && row != ROW_BREAK_EVEN) snprintf(text, bytes, "-");
    else if (row == ROW_COST)
        range_text(cost, what_if_cost_usd(report, a, a->low_s), what_if_cost_usd(report, a, a->high_s), text, bytes);
    else if (row == ROW_MILLION) snprintf(text, bytes, "%.3g", cost / tokens * 1e6);
    else if (row == ROW_BUDGET)
        snprintf(text, bytes, "%s %.4g USD", misses_cost(report, a) ? "EXCEEDS" : "within", report->cost_max_usd);
    else break_even_text(report, a, text, bytes);
}

static bool any_bf16(const struct what_if_report *report)
{
    for (uint32_t j = 0; j < report->jobs->count; j++)
        if (report->jobs->jobs[j].precision != PRECISION_FP32) return true;
    return false;
}

/* Returns the peak of the first kind of device (cli_peak_flops_per_s()). */
static const char *peak_name(const struct what_if_report *report, const struct what_if_answer *a)
{
    const struct device_type *type = &a->hardware.types[0];
    if (any_bf16(report) && type->peak_bf16.value > 0) return "bf16";
    return type->peak_tf32.value > type->peak_fp32.value ? "tf32" : "fp32";
}

/* Writes "97.7 GiB of 128 GiB, 6 jobs at a time", or "16 GiB of 128 GiB, room for 8" in turn. */
static void host_text(const struct what_if_answer *a, char *text, size_t bytes)
{
    char one[QUANTITY_TEXT_BYTES], two[QUANTITY_TEXT_BYTES];
    if (a->host_jobs == 0) snprintf(text, bytes, "none");
    else
        snprintf(text, bytes, a->together ? "%s of %s, %" PRIu32 " jobs at a time" : "%s of %s, room for %" PRIu32,
                 quantity_text((double)a->host_bytes, DIMENSION_BYTES, one),
                 quantity_text((double)hardware_host_bytes(&a->hardware), DIMENSION_BYTES, two), a->host_jobs);
}

static void speed_cell(const struct what_if_report *report, const struct what_if_answer *a, enum row row, char *text,
                       size_t bytes)
{
    char one[QUANTITY_TEXT_BYTES], two[QUANTITY_TEXT_BYTES];
    switch (row) {
    case ROW_TOKENS: range_text(a->tokens / a->run_s, a->tokens / a->high_s, a->tokens / a->low_s, text, bytes); break;
    case ROW_SAMPLES:
        range_text(a->samples / a->run_s, a->samples / a->high_s, a->samples / a->low_s, text, bytes);
        break;
    case ROW_MFU:
        if (!(a->peak_flops_per_s > 0)) snprintf(text, bytes, "no peak is known");
        else if (mfu(a) > 1)
            snprintf(text, bytes, "above %s dense %s: filtered convolutions",
                     quantity_text(a->peak_flops_per_s, DIMENSION_FLOP_PER_S, one), peak_name(report, a));
        else
            snprintf(text, bytes, "%.1f %% of %s dense %s", 100 * mfu(a),
                     quantity_text(a->peak_flops_per_s, DIMENSION_FLOP_PER_S, one), peak_name(report, a));
        break;
    case ROW_TIME: time_text(report, a, text, bytes); break;
    case ROW_DEADLINE: deadline_text(report, a, text, bytes); break;
    case ROW_ENERGY:
        if (a->watts > 0) snprintf(text, bytes, "%.4g kWh", energy_kwh(report, a));
        else snprintf(text, bytes, "-");
        break;
    case ROW_BINDS: snprintf(text, bytes, "%s", a->binds); break;
    case ROW_HOST: host_text(a, text, bytes); break;
    default:
        snprintf(text, bytes, "%s left of %s",
                 quantity_text((double)(a->usable_bytes - a->device_bytes), DIMENSION_BYTES, one),
                 quantity_text((double)a->usable_bytes, DIMENSION_BYTES, two));
    }
}

static void what_if_cell(const struct what_if_report *report, const struct what_if_answer *a, enum row row,
                         char text[CLI_CELL_BYTES])
{
    bool costs = row == ROW_PRICE || row == ROW_COST || row == ROW_MILLION || row == ROW_BUDGET ||
                 row == ROW_BREAK_EVEN;
    if (row == ROW_PLAN) snprintf(text, CLI_CELL_BYTES, "%s", a->fits ? a->plan : "does not fit");
    else if (!a->fits && row != ROW_PRICE) snprintf(text, CLI_CELL_BYTES, "-");
    else if (costs) cost_cell(report, a, row, text, CLI_CELL_BYTES);
    else speed_cell(report, a, row, text, CLI_CELL_BYTES);
}

static void row_label(const struct what_if_report *report, enum row row, char text[64])
{
    static const char *const labels[ROWS] = {
        "best plan",  "tokens/s",        "samples/s",     "MFU",         "time of the jobs", "deadline", "USD/h",
        "USD in all", "USD / 1M tokens", "budget",        "energy",      "bound by",         "memory",   "host memory",
        "break-even",
    };
    enum job_unit unit = cli_unit_of(report->jobs);
    if (row == ROW_TIME && report->tokens > 0) snprintf(text, 64, "time for %.4g tokens", report->tokens);
    else if (row == ROW_SAMPLES && unit != JOB_TOKENS) snprintf(text, 64, "%s", cli_unit_rates[unit]);
    else snprintf(text, 64, "%s", labels[row]);
}

static bool row_is_shown(const struct what_if_report *report, enum row row)
{
    bool priced = false;
    for (uint32_t i = 0; i < report->count; i++) priced |= report->answers[i].price.usd_per_h > 0;
    if (cli_unit_of(report->jobs) != JOB_TOKENS && (row == ROW_TOKENS || row == ROW_MILLION)) return false;
    if (row == ROW_DEADLINE) return report->deadline_s >= 0;
    if (row == ROW_BUDGET) return report->cost_max_usd >= 0;
    if (row == ROW_BREAK_EVEN) return priced && report->count > 1;
    return priced || (row != ROW_PRICE && row != ROW_COST && row != ROW_MILLION);
}

/* --- tables ----------------------------------------------------------------------------------- */

static enum status print_columns(FILE *out, const struct what_if_report *report, struct error *err)
{
    const char *headings[CLI_COLUMNS_MAX + 1] = {" "};
    char cell[CLI_CELL_BYTES];
    struct cli_table table;
    for (uint32_t i = 0; i < report->count; i++) headings[1 + i] = report->answers[i].name;
    headings[1 + report->count] = NULL;
    cli_table_begin(&table, headings);
    for (enum row row = 0; row < ROWS; row++) {
        char label[64];
        if (!row_is_shown(report, row)) continue;
        row_label(report, row, label);
        cli_table_cell(&table, "%s", label);
        for (uint32_t i = 0; i < report->count; i++) {
            what_if_cell(report, &report->answers[i], row, cell);
            cli_table_cell(&table, "%s", cell);
        }
    }
    return cli_table_end(&table, out, err);
}

static void print_markdown(FILE *out, const struct what_if_report *report)
{
    char cell[CLI_CELL_BYTES];
    fputs("| |", out);
    for (uint32_t i = 0; i < report->count; i++) fprintf(out, " %s |", report->answers[i].name);
    fputs("\n|---|", out);
    for (uint32_t i = 0; i < report->count; i++) fputs("---|", out);
    fputc('\n', out);
    for (enum row row = 0; row < ROWS; row++) {
        char label[64];
        if (!row_is_shown(report, row)) continue;
        row_label(report, row, label);
        fprintf(out, "| %s |", label);
        for (uint32_t i = 0; i < report->count; i++) {
            what_if_cell(report, &report->answers[i], row, cell);
            fprintf(out, " %s |", cell);
        }
        fputc('\n', out);
    }
    fputc('\n', out);
}

/* Prints a row per machine of the catalogue. */
static enum status print_machines(FILE *out, const struct what_if_report *report, struct error *err)
{
    static const enum row shown[] = {ROW_PLAN, ROW_TIME, ROW_DEADLINE, ROW_PRICE, ROW_COST};
    char cell[CLI_CELL_BYTES];
    struct cli_table table;
    cli_table_begin(&table,
                    (const char *const[]){"MACHINE", "BEST PLAN", "TIME", "DEADLINE", "USD/H", "USD IN ALL", NULL});
    for (uint32_t i = 0; i < report->count; i++) {
        cli_table_cell(&table, "%s", report->answers[i].name);
        for (size_t c = 0; c < ARRAY_COUNT(shown); c++) {
            what_if_cell(report, &report->answers[i], shown[c], cell);
            cli_table_cell(&table, "%s", cell);
        }
    }
    return cli_table_end(&table, out, err);
}

/* --- the lines below --------------------------------------------------------------------------- */

static void print_refused(FILE *out, const struct what_if_report *report)
{
    for (uint32_t i = 0; i < report->count; i++)
        if (!report->answers[i].fits) fprintf(out, "%s: %s\n", report->answers[i].name, report->answers[i].reason);
}

/* Counts values with spreads by kind. */
static void print_kinds(FILE *out, const struct what_if_answer *a)
{
    uint32_t counts[SOURCE_KIND_COUNT] = {0};
    const char *separator = "";
    for (uint32_t f = 0; f < MACHINE_VALUES; f++) counts[a->effects[f].kind] += a->effects[f].spread > 0;
    fprintf(out, "confidence: %s, values with a known spread: ", a->name);
    for (uint32_t k = 0; k < SOURCE_KIND_COUNT; k++) {
        if (counts[k] == 0) continue;
        fprintf(out, "%s%" PRIu32 " %s", separator, counts[k], source_kind_names[k]);
        separator = ", ";
    }
    if (!*separator) fputs("none", out);
    if (counts[SOURCE_ASSUMED] > 0) fputs(": 'spillway measure' on that machine replaces assumed values", out);
    fputc('\n', out);
}

/* Returns true if the effect is large enough to be shown. */
static bool matters(const struct what_if_answer *a, const struct what_if_effect *e)
{
    return e->spread > 0 && fmax(fabs(e->better_s / a->run_s - 1), fabs(e->worse_s / a->run_s - 1)) >= shown_least;
}

static enum status print_effects(FILE *out, const struct what_if_report *report, struct error *err)
{
    struct cli_table table;
    char percent[CLI_PERCENT_BYTES];
    bool some = false;
    cli_table_begin(&table, (const char *const[]){"PROPERTY THAT MOVES THE TIME", "OF", "KIND", ">SPREAD", ">AT BEST",
                                                  ">AT WORST", NULL});
    for (uint32_t i = 0; i < report->count; i++) {
        const struct what_if_answer *a = &report->answers[i];
        for (uint32_t f = 0; f < MACHINE_VALUES; f++) {
            const struct what_if_effect *e = &a->effects[f];
            if (!a->fits || !matters(a, e)) continue;
            some = true;
            cli_table_cell(&table, "%s", machine_value_names[f]);
            cli_table_cell(&table, "%s", a->name);
            cli_table_cell(&table, "%s", source_kind_names[e->kind]);
            cli_table_cell(&table, "%.0f %%", 100 * e->spread);
            cli_table_cell(&table, "%s", cli_signed_percent(e->better_s / a->run_s - 1, percent));
            cli_table_cell(&table, "%s", cli_signed_percent(e->worse_s / a->run_s - 1, percent));
        }
    }
    if (some) fputc('\n', out);
    TRY(cli_table_end(&table, out, err));
    if (some) fputc('\n', out);
    return STATUS_OK;
}

static enum status print_confidence(FILE *out, const struct what_if_report *report, struct error *err)
{
    for (uint32_t i = 0; i < report->count; i++)
        if (report->answers[i].fits) print_kinds(out, &report->answers[i]);
    if (!report->wanted) return print_effects(out, report, err);
    fputc('\n', out);
    return what_if_bars_text(out, report->wanted, report, err);
}

/* Returns true if jobs use bf16 and a device computes them in fp32. */
static bool lacks_bf16(const struct what_if_report *report)
{
    for (uint32_t i = 0; i < report->count; i++)
        for (uint32_t t = 0; t < report->answers[i].hardware.type_count; t++)
            if (!(report->answers[i].hardware.types[t].peak_bf16.value > 0)) return any_bf16(report);
    return false;
}

static void print_ways(FILE *out, const struct what_if_report *report, const struct what_if_answer *a)
{
    for (uint32_t j = 0; j < a->job_count; j++) {
        const struct what_if *search = &a->searches[j];
        for (uint32_t i = 0; i < search->count; i++) {
            const struct what_if_try *t = &search->tries[i];
            char text[QUANTITY_TEXT_BYTES];
            fprintf(out, "%s, %s, %s: %s%s\n", a->name, report->jobs->jobs[j].name, t->way.fit.name,
                    t->slower ? "slower, at least " : "",
                    t->fits || t->slower ? quantity_text(t->run_s, DIMENSION_SECONDS, text) : t->reason);
        }
    }
}

static enum status print_lines(FILE *out, const struct what_if_report *report, struct error *err)
{
    print_refused(out, report);
    if (!report->search) TRY(print_confidence(out, report, err));
    fputs("assumptions: intervals cover 90 % of the values' spreads, "
          "with each value moved to 5 % and 95 % of its error,\n"
          "    independently; MFU is FLOPs of forward and backward passes over time and dense peaks of all devices, "
          "sums in fp32;\n"
          "    energy is the power of all boards at their limit times the time, without the host; "
          "minibatches are as in the jobs,\n"
          "    for any parallelism\n"
          "not modelled: data loaders, checkpoints, failures and restarts, start-up of machines, "
          "billed storage and traffic\n",
          out);
    if (lacks_bf16(report))
        fputs("not modelled: fp16 on the tensor cores of devices without bf16: their products run at fp32's rate\n",
              out);
    if (report->verbose)
        for (uint32_t i = 0; i < report->count; i++) print_ways(out, report, &report->answers[i]);
    return STATUS_OK;
}

static void print_answer(FILE *out, const struct what_if_report *report)
{
    uint32_t best = what_if_best(report);
    if (best == report->count) return;
    const struct what_if_answer *a = &report->answers[best];
    char time[QUANTITY_TEXT_BYTES];
    fprintf(out, "answer: %s, by %s, in %s", a->name, a->plan,
            quantity_text(what_if_time_s(report, a, a->run_s), DIMENSION_SECONDS, time));
    if (a->price.usd_per_h > 0) fprintf(out, " for %.4g USD", what_if_cost_usd(report, a, a->run_s));
    fputc('\n', out);
}

enum status what_if_text(struct cli *cli, const struct what_if_report *report, bool markdown, struct error *err)
{
    FILE *out = cli->out;
    if (markdown) print_markdown(out, report);
    else {
        TRY((report->search ? print_machines : print_columns)(out, report, err));
        fputc('\n', out);
    }
    print_answer(out, report);
    return print_lines(out, report, err);
}

/* --- CSV and JSON --------------------------------------------------------------------------------- */

static void csv_numbers(FILE *out, const struct what_if_report *report, const struct what_if_answer *a)
{
    fprintf(out, ",%.9g,%.9g,%.9g,%.9g,%.9g,", a->tokens / a->run_s, a->samples / a->run_s,
            what_if_time_s(report, a, a->run_s), what_if_time_s(report, a, a->low_s),
            what_if_time_s(report, a, a->high_s));
    if (mfu(a) <= 1) fprintf(out, "%.9g", mfu(a));
    fprintf(out, ",%.9g,", a->peak_flops_per_s);
    if (a->price.usd_per_h > 0)
        fprintf(out, "%.9g,%.9g,%.9g,", what_if_cost_usd(report, a, a->run_s), what_if_cost_usd(report, a, a->low_s),
                what_if_cost_usd(report, a, a->high_s));
    else fputs(",,,", out);
    if (a->watts > 0) fprintf(out, "%.9g", energy_kwh(report, a));
    fprintf(out, ",%" PRIu64 ",%" PRIu64 ",", a->device_bytes, a->usable_bytes);
    csv_print_text(out, a->binds);
    fputc(',', out);
    csv_print_text(out, a->plan);
    fputc('\n', out);
}

/* Writes a record per machine, with the reason if the jobs do not fit. */
enum status what_if_csv(struct cli *cli, const struct what_if_report *report, struct error *err)
{
    (void)err;
    FILE *out = cli->out;
    fputs("machine,fits,meets,usd_per_h,basis,as_of,tokens_per_s,samples_per_s,time_s,time_low_s,time_high_s,mfu,"
          "peak_flops_per_s,usd,usd_low,usd_high,energy_kwh,device_bytes,usable_bytes,bound_by,plan\n", out);
    for (uint32_t i = 0; i < report->count; i++) {
        const struct what_if_answer *a = &report->answers[i];
        csv_print_text(out, a->name);
        fprintf(out, ",%s,%s,", a->fits ? "true" : "false", what_if_meets(report, a) ? "true" : "false");
        if (a->price.usd_per_h > 0) fprintf(out, "%.9g", a->price.usd_per_h);
        fputc(',', out);
        csv_print_text(out, a->price.basis);
        fprintf(out, ",%s", a->price.as_of);
        if (a->fits) {
            csv_numbers(out, report, a);
            continue;
        }
        fputs(",,,,,,,,,,,,,,,", out);
        csv_print_text(out, a->reason);
        fputc('\n', out);
    }
    return STATUS_OK;
}

static void ways_json(struct json_out *json, const struct what_if_report *report, const struct what_if_answer *a)
{
    json_out_array_begin(json, "ways", false);
    for (uint32_t j = 0; j < a->job_count; j++)
        for (uint32_t i = 0; i < a->searches[j].count; i++) {
            const struct what_if_try *t = &a->searches[j].tries[i];
            json_out_object_begin(json, NULL, true);
            json_out_string(json, "job", report->jobs->jobs[j].name);
            json_out_string(json, "way", t->way.fit.name);
            json_out_u64(json, "microbatch", t->way.microbatch);
            if (t->fits) json_out_double(json, "seconds", t->run_s);
            else if (t->slower) json_out_double(json, "seconds_least", t->run_s);
            else json_out_string(json, "reason", t->reason);
            json_out_object_end(json);
        }
    json_out_array_end(json);
}

static void cost_json(struct json_out *json, const struct what_if_report *report, const struct what_if_answer *a)
{
    if (!(a->price.usd_per_h > 0)) return;
    json_out_object_begin(json, "cost", true);
    json_out_double(json, "usd_per_h", a->price.usd_per_h);
    json_out_string(json, "basis", a->price.basis);
    json_out_string(json, "as_of", a->price.as_of);
    json_out_double(json, "usd", what_if_cost_usd(report, a, a->run_s));
    json_out_double(json, "usd_low", what_if_cost_usd(report, a, a->low_s));
    json_out_double(json, "usd_high", what_if_cost_usd(report, a, a->high_s));
    json_out_object_end(json);
}

static void effects_json(struct json_out *json, const struct what_if_answer *a)
{
    json_out_array_begin(json, "sensitivity", false);
    for (uint32_t f = 0; f < MACHINE_VALUES; f++) {
        if (!(a->effects[f].spread > 0)) continue;
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "name", machine_value_names[f]);
        json_out_string(json, "kind", source_kind_names[a->effects[f].kind]);
        json_out_double(json, "spread", a->effects[f].spread);
        json_out_double(json, "better", a->effects[f].better_s / a->run_s - 1);
        json_out_double(json, "worse", a->effects[f].worse_s / a->run_s - 1);
        json_out_object_end(json);
    }
    json_out_array_end(json);
}

static void answer_json(struct json_out *json, const struct what_if_report *report, const struct what_if_answer *a)
{
    json_out_object_begin(json, NULL, false);
    json_out_string(json, "machine", a->name);
    json_out_bool(json, "fits", a->fits);
    json_out_bool(json, "meets", what_if_meets(report, a));
    if (!a->fits) json_out_string(json, "reason", a->reason);
    else {
        json_out_string(json, "plan", a->plan);
        json_out_double(json, "tokens_per_s", a->tokens / a->run_s);
        json_out_double(json, "samples_per_s", a->samples / a->run_s);
        json_out_double(json, "time_s", what_if_time_s(report, a, a->run_s));
        json_out_double(json, "time_low_s", what_if_time_s(report, a, a->low_s));
        json_out_double(json, "time_high_s", what_if_time_s(report, a, a->high_s));
        if (mfu(a) <= 1) json_out_double(json, "mfu", mfu(a));
        json_out_double(json, "peak_flops_per_s", a->peak_flops_per_s);
        cost_json(json, report, a);
        if (a->watts > 0) json_out_double(json, "energy_kwh", energy_kwh(report, a));
        json_out_string(json, "bound_by", a->binds);
        json_out_u64(json, "host_bytes", a->host_bytes);
        json_out_u64(json, "host_jobs", a->host_jobs);
        json_out_u64(json, "device_bytes", a->device_bytes);
        json_out_u64(json, "usable_bytes", a->usable_bytes);
        if (report->wanted) what_if_bars_json(json, report->wanted, report, a);
        else effects_json(json, a);
    }
    ways_json(json, report, a);
    json_out_object_end(json);
}

enum status what_if_json(struct cli *cli, const struct what_if_report *report, struct error *err)
{
    struct json_out *json;
    TRY(cli_report_begin(cli, "whatif", &json, err));
    json_out_string(json, "jobs", report->jobs_path);
    if (report->tokens > 0) json_out_double(json, "tokens", report->tokens);
    if (report->deadline_s >= 0) json_out_double(json, "deadline_s", report->deadline_s);
    if (report->cost_max_usd >= 0) json_out_double(json, "cost_max_usd", report->cost_max_usd);
    uint32_t best = what_if_best(report);
    if (best < report->count) json_out_string(json, "answer", report->answers[best].name);
    json_out_array_begin(json, "machines", false);
    for (uint32_t i = 0; i < report->count; i++) answer_json(json, report, &report->answers[i]);
    json_out_array_end(json);
    return cli_report_end(cli, json, err);
}
