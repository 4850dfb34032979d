/* Tables have one point per line, to fit a terminal. */
#include "cli/repro/cli_repro_report.h"

#include <inttypes.h>
#include <string.h>

#include "base/try.h"
#include "cli/common/cli_table.h"
#include "cli/repro/figure_report.h"

/* --- before a run ---------------------------------------------------------------------------------- */

static uint32_t count_published(const struct figure *figure)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < figure->series_count; s++)
        for (uint32_t r = 0; r < figure->row_count && figure->series[s].published != FIGURE_NONE; r++)
            count += figure_cell(figure, r, figure->series[s].published)->kind == EXPRESSION_VALUE_NUMBER;
    return count;
}

static void figure_head_json(struct json_out *json, const struct figure *figure)
{
    json_out_string(json, "id", figure->id);
    json_out_string(json, "figure", figure->figure);
    json_out_string(json, "title", figure->title);
    json_out_object_begin(json, "paper", true);
    json_out_string(json, "title", figure->paper.title);
    json_out_string(json, "authors", figure->paper.authors);
    json_out_string(json, "version", figure->paper.version);
    json_out_string(json, "id", figure->paper.id);
    json_out_object_end(json);
    json_out_string(json, "quantity", figure->quantity.name);
    json_out_string(json, "unit", figure->quantity.unit);
}

static void texts_json(struct json_out *json, const char *key, const struct figure_texts *texts)
{
    json_out_array_begin(json, key, false);
    for (uint32_t i = 0; i < texts->count; i++) json_out_string(json, NULL, texts->items[i]);
    json_out_array_end(json);
}

static enum status list_json(struct cli *cli, struct figure *const *figures, size_t count, struct error *err)
{
    struct json_out *json;
    TRY(cli_report_begin(cli, "repro-list", &json, err));
    json_out_array_begin(json, "figures", false);
    for (size_t i = 0; i < count; i++) {
        json_out_object_begin(json, NULL, false);
        figure_head_json(json, figures[i]);
        json_out_u64(json, "row_count", figures[i]->row_count);
        json_out_u64(json, "published_count", count_published(figures[i]));
        json_out_u64(json, "claim_count", figures[i]->claim_count);
        json_out_bool(json, "has_real", figures[i]->real.offered);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    return cli_report_end(cli, json, err);
}

enum status repro_report_list(struct cli *cli, struct figure *const *figures, size_t count, struct error *err)
{
    struct cli_table table;
    if (cli->json) return list_json(cli, figures, count, err);
    cli_table_begin(&table, (const char *[]){"ID", "PAPER", "FIGURE", ">PUBLISHED", ">CLAIMS", "WHAT", NULL});
    for (size_t i = 0; i < count; i++) {
        cli_table_cell(&table, "%s", figures[i]->id);
        cli_table_cell(&table, "%s", figures[i]->paper.id);
        cli_table_cell(&table, "%s", figures[i]->figure);
        cli_table_cell(&table, "%u", (unsigned)count_published(figures[i]));
        cli_table_cell(&table, "%u", (unsigned)figures[i]->claim_count);
        cli_table_cell(&table, "%s", figures[i]->title);
    }
    TRY(cli_table_end(&table, cli->out, err));
    if (count > 0) cli_next(cli, (const char *const[]){"repro", "run", figures[0]->id, NULL});
    return STATUS_OK;
}

static void print_texts(FILE *out, const char *name, const struct figure_texts *texts)
{
    for (uint32_t i = 0; i < texts->count; i++) fprintf(out, "%s%s\n  - %s", i == 0 ? name : "", i == 0 ? ":" : "",
                                                        texts->items[i]);
    if (texts->count > 0) fputs("\n", out);
}

static enum status show_json(struct cli *cli, const struct figure *figure, struct error *err)
{
    struct json_out *json;
    TRY(cli_report_begin(cli, "repro-show", &json, err));
    figure_head_json(json, figure);
    texts_json(json, "set_up", &figure->set_up);
    texts_json(json, "assumptions", &figure->assumptions);
    texts_json(json, "not_modelled", &figure->not_modelled);
    texts_json(json, "notes", &figure->notes);
    json_out_u64(json, "row_count", figure->row_count);
    json_out_u64(json, "published_count", count_published(figure));
    json_out_bool(json, "has_real", figure->real.offered);
    json_out_array_begin(json, "claims", false);
    for (uint32_t i = 0; i < figure->claim_count; i++) json_out_string(json, NULL, figure->claims[i].text);
    json_out_array_end(json);
    return cli_report_end(cli, json, err);
}

enum status repro_report_show(struct cli *cli, const struct figure *figure, struct error *err)
{
    if (cli->json) return show_json(cli, figure, err);
    fprintf(cli->out, "%s, %s: %s\n%s. %s, %s\n", figure->paper.id, figure->figure, figure->title,
            figure->paper.authors, figure->paper.title, figure->paper.version);
    fprintf(cli->out, "%s, %s, %s; %s%s%s%s; from %s\n", CLI_COUNT(figure->row_count, "row"),
            CLI_COUNT(count_published(figure), "published value"), CLI_COUNT(figure->claim_count, "claim"),
            figure->quantity.name, *figure->quantity.unit ? " (" : "", figure->quantity.unit,
            *figure->quantity.unit ? ")" : "", figure->path);
    print_texts(cli->out, "set-up", &figure->set_up);
    print_texts(cli->out, "assumed", &figure->assumptions);
    print_texts(cli->out, "not modelled", &figure->not_modelled);
    print_texts(cli->out, "notes", &figure->notes);
    for (uint32_t c = 0; c < figure->column_count; c++)
        if (figure->columns[c].source)
            fprintf(cli->out, "published %s: %s; %s\n", figure->columns[c].name, figure->columns[c].source,
                    figure->columns[c].reading);
    for (uint32_t i = 0; i < figure->claim_count; i++) fprintf(cli->out, "claim: %s\n", figure->claims[i].text);
    if (figure->real.offered) fputs("has a real set-up, for 'spillway repro run --real'\n", cli->out);
    cli_next(cli, (const char *const[]){"repro", "run", figure->id, NULL});
    return STATUS_OK;
}

/* --- after a run ----------------------------------------------------------------------------------- */

static void value_json(struct json_out *json, const char *key, const struct expression_value *value)
{
    if (value->kind == EXPRESSION_VALUE_NUMBER)
        json_out_double(json, key, value->number);
    else if (value->kind == EXPRESSION_VALUE_TEXT)
        json_out_string(json, key, value->text);
    else
        json_out_null(json, key);
}

static void point_json(struct json_out *json, const struct figure_result *result, uint32_t row, uint32_t s)
{
    const struct figure *figure = result->figure;
    const struct figure_point *point = figure_point_at(result, row, s);
    json_out_object_begin(json, NULL, true);
    json_out_string(json, "name", figure->series[s].name);
    value_json(json, "published", &point->published);
    value_json(json, "simulated", &point->simulated);
    if (figure->series[s].measured) value_json(json, "measured", &point->measured);
    if (point->compared) json_out_double(json, figure->series[s].absolute ? "difference" : "error", point->error);
    if (point->simulated.kind == EXPRESSION_VALUE_MISSING) json_out_string(json, "why", point->simulated.text);
    json_out_object_end(json);
}

static void rows_json(struct json_out *json, const struct figure_result *result)
{
    const struct figure *figure = result->figure;
    json_out_array_begin(json, "rows", false);
    for (uint32_t r = 0; r < figure->row_count; r++) {
        char label[FIGURE_LABEL_BYTES];
        json_out_object_begin(json, NULL, false);
        json_out_string(json, "name", figure_row_label(figure, r, label));
        json_out_object_begin(json, "columns", true);
        for (uint32_t c = 0; c < figure->column_count; c++)
            value_json(json, figure->columns[c].name, figure_cell(figure, r, c));
        json_out_object_end(json);
        json_out_array_begin(json, "points", false);
        for (uint32_t s = 0; s < figure->series_count; s++) point_json(json, result, r, s);
        json_out_array_end(json);
        json_out_object_end(json);
    }
    json_out_array_end(json);
}

static void sums_json(struct json_out *json, const struct figure_result *result)
{
    json_out_u64(json, "compared_count", result->counted);
    json_out_u64(json, "within_count", result->within);
    json_out_u64(json, "missing_count", result->missing);
    json_out_double(json, "within", result->figure->accuracy.within);
    json_out_double(json, "mean_error", result->mean);
    json_out_double(json, "worst_error", result->worst);
    if (result->figure->real.read) {
        json_out_u64(json, "pair_count", result->pairs);
        json_out_u64(json, "pairs_in_order", result->alike);
    }
    json_out_u64(json, "claims_held", result->claims_held);
    json_out_u64(json, "claim_count", result->figure->claim_count);
    json_out_bool(json, "met", result->met);
    json_out_string(json, "verdict", result->verdict);
}

static void claims_json(struct json_out *json, const struct figure_result *result)
{
    json_out_array_begin(json, "claims", false);
    for (uint32_t i = 0; i < result->figure->claim_count; i++) {
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "text", result->figure->claims[i].text);
        if (result->claims[i].known)
            json_out_bool(json, "holds", result->claims[i].holds);
        else
            json_out_string(json, "not_known", result->claims[i].why);
        json_out_object_end(json);
    }
    json_out_array_end(json);
}

static enum status figure_json(struct cli *cli, const struct figure_result *result, struct error *err)
{
    struct json_out *json;
    TRY(cli_report_begin(cli, "repro", &json, err));
    figure_head_json(json, result->figure);
    sums_json(json, result);
    claims_json(json, result);
    rows_json(json, result);
    texts_json(json, "changes", &result->figure->changes);
    texts_json(json, "set_up", &result->figure->set_up);
    texts_json(json, "assumptions", &result->figure->assumptions);
    texts_json(json, "not_modelled", &result->figure->not_modelled);
    texts_json(json, "notes", &result->figure->notes);
    return cli_report_end(cli, json, err);
}

static enum status points_table(struct cli *cli, const struct figure_result *result, struct error *err)
{
    const struct figure *figure = result->figure;
    struct cli_table table;
    char label[FIGURE_LABEL_BYTES], text[FIGURE_NUMBER_BYTES];
    bool real = figure->real.read;
    cli_table_begin(&table, real ? (const char *[]){"POINT", "SERIES", ">PUBLISHED", ">MEASURED", ">SIMULATED",
                                                    ">ERROR", "", NULL}
                                 : (const char *[]){"POINT", "SERIES", ">PUBLISHED", ">SIMULATED", ">ERROR", "", NULL});
    for (uint32_t r = 0; r < figure->row_count; r++)
        for (uint32_t s = 0; s < figure->series_count; s++) {
            const struct figure_point *point = figure_point_at(result, r, s);
            bool missing = point->simulated.kind == EXPRESSION_VALUE_MISSING;
            if (!figure->series[s].shown) continue;
            cli_table_cell(&table, "%s", figure_row_label(figure, r, label));
            cli_table_cell(&table, "%s", figure->series[s].label);
            cli_table_cell(&table, "%s", figure_number(&point->published, text));
            if (real) cli_table_cell(&table, "%s", figure_number(&point->measured, text));
            cli_table_cell(&table, "%s", figure_number(&point->simulated, text));
            cli_table_cell(&table, "%s", figure_error(&figure->series[s], point, text));
            cli_table_cell(&table, "%s", missing ? point->simulated.text : "");
        }
    return cli_table_end(&table, cli->out, err);
}

enum status repro_report_figure(struct cli *cli, const struct figure_result *result, bool csv, struct error *err)
{
    const struct figure *figure = result->figure;
    if (cli->json) return figure_json(cli, result, err);
    if (csv) return figure_write_csv(result, cli->out), STATUS_OK;
    if (figure->real.read) fputs("carried out on this machine: ", cli->out);
    fprintf(cli->out, "%s, %s: %s\n%s%s%s%s\n\n", figure->paper.id, figure->figure, figure->title,
            figure->quantity.name, *figure->quantity.unit ? " (" : "", figure->quantity.unit,
            *figure->quantity.unit ? ")" : "");
    TRY(points_table(cli, result, err));
    fputs("\n", cli->out);
    for (uint32_t i = 0; i < figure->claim_count; i++) {
        const struct figure_judged *judged = &result->claims[i];
        fprintf(cli->out, "%s: %s%s%s%s\n", judged->holds ? "holds" : judged->known ? "does not hold" : "not known",
                figure->claims[i].text, judged->known ? "" : " (", judged->known ? "" : judged->why,
                judged->known ? "" : ")");
    }
    print_texts(cli->out, "changed", &figure->changes);
    if (figure->real.read) print_texts(cli->out, "set-up", &figure->set_up);
    print_texts(cli->out, "not modelled", &figure->not_modelled);
    print_texts(cli->out, "notes", &figure->notes);
    fprintf(cli->out, "verdict: %s\n", result->verdict);
    return STATUS_OK;
}

static enum status all_json(struct cli *cli, const struct figure_result *results, size_t count, uint32_t run_count,
                            struct error *err)
{
    struct json_out *json;
    TRY(cli_report_begin(cli, "repro-all", &json, err));
    json_out_u64(json, "run_count", run_count);
    json_out_array_begin(json, "figures", false);
    for (size_t i = 0; i < count; i++) {
        json_out_object_begin(json, NULL, false);
        figure_head_json(json, results[i].figure);
        sums_json(json, &results[i]);
        claims_json(json, &results[i]);
        rows_json(json, &results[i]);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    return cli_report_end(cli, json, err);
}

enum status repro_report_all(struct cli *cli, const struct figure_result *results, size_t count, uint32_t run_count,
                             const char *page, struct error *err)
{
    struct cli_table table;
    char mean[CLI_PERCENT_BYTES], worst[CLI_PERCENT_BYTES];
    if (cli->json) return all_json(cli, results, count, run_count, err);
    cli_table_begin(&table,
                    (const char *[]){"ID", ">POINTS", ">WITHIN", ">MEAN", ">WORST", ">CLAIMS HOLD", "MARK", NULL});
    for (size_t i = 0; i < count; i++) {
        const struct figure_result *result = &results[i];
        cli_table_cell(&table, "%s", result->figure->id);
        cli_table_cell(&table, "%u", (unsigned)(result->counted + result->missing));
        cli_table_cell(&table, result->counted > 0 ? "%u" : "", (unsigned)result->within);
        cli_table_cell(&table, "%s", result->counted > 0 ? cli_percent(result->mean, mean) : "");
        cli_table_cell(&table, "%s", result->counted > 0 ? cli_signed_percent(result->worst, worst) : "");
        cli_table_cell(&table, "%u of %u", (unsigned)result->claims_held, (unsigned)result->figure->claim_count);
        cli_table_cell(&table, "%s", !result->figure->accuracy.known ? "" : result->met ? "met" : "missed");
    }
    TRY(cli_table_end(&table, cli->out, err));
    fprintf(cli->out, "\n%s, %s\n", CLI_COUNT(count, "figure"), CLI_COUNT(run_count, "run"));
    if (page) fprintf(cli->out, "written to %s\n", page);
    return STATUS_OK;
}
