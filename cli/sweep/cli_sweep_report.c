/* The tables and the JSON of a sweep. */
#include "cli/sweep/cli_sweep_report.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "base/text/quantity.h"
#include "base/try.h"
#include "cli/common/cli_table.h"
#include "cli/sweep/cli_sweep_run.h"

/* Longer tables are not printed; each figure's best point is. */
enum { ROWS_MAX = 200, COLUMNS_MAX = CLI_COLUMNS_MAX - 1 };

/* --- text ------------------------------------------------------------------------------------ */

/* Formats by the unit in the figure's name. */
static const char *figure_text(const char *figure, double value, char text[QUANTITY_TEXT_BYTES])
{
    if (isnan(value)) return "-";
    if (text_ends_in(figure, "_bytes")) return quantity_text(value, DIMENSION_BYTES, text);
    if (text_ends_in(figure, "_s") && !text_ends_in(figure, "_per_s"))
        return quantity_text(value, DIMENSION_SECONDS, text);
    snprintf(text, QUANTITY_TEXT_BYTES, "%.5g", value);
    return text;
}

static enum status print_points(FILE *out, const struct sweep_results *results, struct error *err)
{
    const struct sweep_grid *grid = results->grid;
    const char *headings[CLI_COLUMNS_MAX + 1];
    char names[CLI_COLUMNS_MAX][SWEEP_NAME_BYTES + 1], text[QUANTITY_TEXT_BYTES];
    struct cli_table table;
    uint32_t axes = grid->axis_count, figures = results->figure_count, c = 0;
    if (figures > COLUMNS_MAX - axes) figures = COLUMNS_MAX - axes;
    for (; c < axes + figures; c++) {
        bool right = c >= axes || grid->axes[c].numeric;
        snprintf(names[c], sizeof names[c], "%s%s", right ? ">" : "",
                 c < axes ? grid->axes[c].name : results->figures[c - axes]);
        headings[c] = names[c];
    }
    headings[c++] = "";
    headings[c] = NULL;
    cli_table_begin(&table, headings);
    for (uint64_t p = 0; p < grid->point_count; p++) {
        const struct sweep_result *result = &results->points[p];
        for (uint32_t a = 0; a < axes; a++) cli_table_cell(&table, "%s", sweep_grid_value(grid, p, a)->text);
        for (uint32_t f = 0; f < figures; f++)
            cli_table_cell(&table, "%s", figure_text(results->figures[f], result->figures[f], text));
        cli_table_cell(&table, "%.60s%s", result->reason, strlen(result->reason) > 60 ? "..." : "");
    }
    return cli_table_end(&table, out, err);
}

static void print_best(FILE *out, const struct sweep_results *results)
{
    char text[QUANTITY_TEXT_BYTES], where[CLI_SWEEP_POINT_BYTES];
    for (uint32_t f = 0; f < results->figure_count; f++) {
        const char *figure = results->figures[f];
        uint64_t best = sweep_results_best(results, f);
        if (best == UINT64_MAX) continue;
        fprintf(out, "%s %s: %s at %s\n", sweep_less_is_better(figure) ? "least" : "most ", figure,
                figure_text(figure, results->points[best].figures[f], text),
                cli_sweep_point(results->grid, best, where));
    }
}

enum status cli_sweep_text(FILE *out, const struct sweep_results *results, const char *const *outputs,
                           struct error *err)
{
    uint64_t counts[SWEEP_OUTCOME_COUNT] = {0}, total = results->grid->point_count;
    for (uint64_t p = 0; p < total; p++) counts[results->points[p].outcome]++;
    if (total <= ROWS_MAX) TRY(print_points(out, results, err));
    fprintf(out, "%s%s", total <= ROWS_MAX ? "\n" : "", CLI_COUNT(total, "point"));
    if (counts[SWEEP_NO] > 0) fprintf(out, ", no at %llu", (unsigned long long)counts[SWEEP_NO]);
    if (counts[SWEEP_REFUSED] > 0) fprintf(out, ", %llu refused", (unsigned long long)counts[SWEEP_REFUSED]);
    fputc('\n', out);
    print_best(out, results);
    for (; *outputs; outputs++) fprintf(out, "%s written\n", *outputs);
    return STATUS_OK;
}

/* --- JSON ------------------------------------------------------------------------------------ */

static void axes_json(struct json_out *json, const struct sweep_grid *grid)
{
    json_out_array_begin(json, "axes", false);
    for (uint32_t a = 0; a < grid->axis_count; a++) {
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "name", grid->axes[a].name);
        if (grid->axes[a].unit[0]) json_out_string(json, "unit", grid->axes[a].unit);
        json_out_array_begin(json, "values", true);
        for (size_t v = 0; v < grid->axes[a].count; v++) json_out_string(json, NULL, grid->axes[a].values[v].text);
        json_out_array_end(json);
        json_out_object_end(json);
    }
    json_out_array_end(json);
}

static void point_json(struct json_out *json, const struct sweep_results *results, uint64_t point)
{
    const struct sweep_result *result = &results->points[point];
    json_out_object_begin(json, NULL, true);
    json_out_array_begin(json, "values", true);
    for (uint32_t a = 0; a < results->grid->axis_count; a++)
        json_out_string(json, NULL, sweep_grid_value(results->grid, point, a)->text);
    json_out_array_end(json);
    json_out_string(json, "outcome", sweep_outcome_names[result->outcome]);
    json_out_object_begin(json, "figures", true);
    for (uint32_t f = 0; f < results->figure_count; f++)
        if (!isnan(result->figures[f])) json_out_double(json, results->figures[f], result->figures[f]);
    json_out_object_end(json);
    if (result->reason[0]) json_out_string(json, "reason", result->reason);
    json_out_object_end(json);
}

enum status cli_sweep_json(struct cli *cli, const struct cli_sweep_command *command,
                           const struct sweep_results *results, const char *const *outputs, struct error *err)
{
    struct json_out *json;
    TRY(cli_report_begin(cli, "sweep", &json, err));
    json_out_array_begin(json, "command", true);
    json_out_string(json, NULL, command->verb->name);
    for (size_t w = 0; w < command->word_count; w++) json_out_string(json, NULL, command->words[w]);
    json_out_array_end(json);
    axes_json(json, results->grid);
    json_out_array_begin(json, "points", false);
    for (uint64_t p = 0; p < results->grid->point_count; p++) point_json(json, results, p);
    json_out_array_end(json);
    json_out_array_begin(json, "best", false);
    for (uint32_t f = 0; f < results->figure_count; f++) {
        uint64_t best = sweep_results_best(results, f);
        if (best == UINT64_MAX) continue;
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "figure", results->figures[f]);
        json_out_bool(json, "less_is_better", sweep_less_is_better(results->figures[f]));
        json_out_u64(json, "point", best);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    json_out_array_begin(json, "written", true);
    for (; *outputs; outputs++) json_out_string(json, NULL, *outputs);
    json_out_array_end(json);
    return cli_report_end(cli, json, err);
}
