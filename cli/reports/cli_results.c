/* Columns that no job fills are left out. */
#include "cli/reports/cli_results.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/text/quantity.h"
#include "base/try.h"
#include "cli/common/cli.h"
#include "cli/common/cli_table.h"
#include "cli/common/cli_trace.h"

enum status cli_evaluation_read(struct json_object *object, struct cli_evaluation *out,
                                struct error *err)
{
    TRY(json_take_double(object, "best_evaluation", JSON_OPTIONAL, -1e300, 1e300, &out->best, err));
    TRY(json_take_double(object, "last_evaluation", JSON_OPTIONAL, -1e300, 1e300, &out->last, err));
    TRY(json_take_u64(object, "best_step", JSON_OPTIONAL, 1, INT64_MAX, &out->best_step, err));
    TRY(json_take_string(object, "best_weights_path", JSON_OPTIONAL, &out->weights_path, err));
    out->some = json_has(object, "best_evaluation");
    out->last_finite = json_has(object, "last_evaluation");
    return STATUS_OK;
}

/* --- ranks ----------------------------------------------------------------------------------- */

/* qsort() has no context. */
struct results_ranked {
    double loss;
    bool known;
    uint32_t job;
};

static int compare(const void *left, const void *right)
{
    const struct results_ranked *a = left, *b = right;
    if (a->known != b->known) return a->known ? -1 : 1;
    if (a->known && (a->loss < b->loss || a->loss > b->loss)) return a->loss < b->loss ? -1 : 1;
    return a->job < b->job ? -1 : a->job > b->job;
}

static bool all_evaluated(const struct cli_result *results, uint32_t count)
{
    for (uint32_t j = 0; j < count; j++)
        if (!results[j].evaluation.some) return false;
    return count > 0;
}

/* Returns jobs by rank; the caller frees them. NULL: memory ended. */
static struct results_ranked *rank(const struct cli_result *results, uint32_t count)
{
    struct results_ranked *ranked = alloc_zeroed(count + 1u, sizeof *ranked);
    bool held_out = all_evaluated(results, count);
    for (uint32_t j = 0; ranked && j < count; j++)
        ranked[j] = (struct results_ranked){
            .loss = held_out ? results[j].evaluation.best : results[j].final_loss,
            .known = held_out || results[j].has_loss,
            .job = j,
        };
    if (ranked) qsort(ranked, count, sizeof *ranked, compare);
    return ranked;
}

/* --- text ------------------------------------------------------------------------------------ */

static void loss_cell(struct cli_table *table, const struct cli_result *result)
{
    if (result->has_loss) cli_table_cell(table, "%.4f", result->final_loss);
    else cli_table_cell(table, result->nonfinite ? "not finite" : "-");
}

static void evaluation_cells(struct cli_table *table, const struct cli_result *result)
{
    if (!result->evaluation.some) {
        for (int i = 0; i < 3; i++) cli_table_cell(table, "-");
        return;
    }
    cli_table_cell(table, "%.4f", result->evaluation.best);
    cli_table_cell(table, "%" PRIu64, result->evaluation.best_step);
    if (result->evaluation.last_finite) cli_table_cell(table, "%.4f", result->evaluation.last);
    else cli_table_cell(table, "not finite");
}

static void weights_cell(struct cli_table *table, const struct cli_result *result)
{
    const char *last = result->weights_path, *best = result->evaluation.weights_path;
    cli_table_cell(table, "%s%s%s", best ? best : "", best && last ? ", " : "", last ? last : "");
}

enum status cli_results_print(FILE *out, const struct cli_result *results, uint32_t count, enum job_unit unit,
                              struct error *err)
{
    char rate[32];
    snprintf(rate, sizeof rate, ">%s", cli_unit_headings[unit]);
    bool evaluated = false, weights = false;
    for (uint32_t j = 0; j < count; j++) {
        evaluated = evaluated || results[j].evaluation.some;
        weights = weights || results[j].weights_path || results[j].evaluation.weights_path;
    }
    const char *headings[12];
    size_t columns = 0;
    headings[columns++] = ">RANK";
    headings[columns++] = "JOB";
    if (evaluated) {
        headings[columns++] = ">BEST EVALUATION";
        headings[columns++] = ">AFTER STEP";
        headings[columns++] = ">LAST EVALUATION";
    }
    headings[columns++] = ">LAST LOSS";
    headings[columns++] = rate;
    headings[columns++] = ">TIME";
    if (weights) headings[columns++] = "WEIGHTS";
    headings[columns] = NULL;

    struct results_ranked *ranked = rank(results, count);
    if (!ranked) return error_memory(err, "the ranks of jobs", count * sizeof *ranked);
    struct cli_table table;
    uint32_t shown = count < CLI_ROWS_MAX ? count : CLI_ROWS_MAX;
    cli_table_begin(&table, headings);
    for (uint32_t i = 0; i < shown; i++) {
        const struct cli_result *result = &results[ranked[i].job];
        char text[QUANTITY_TEXT_BYTES];
        cli_table_cell(&table, "%" PRIu32, i + 1);
        cli_table_cell(&table, "%s", result->name);
        if (evaluated) evaluation_cells(&table, result);
        loss_cell(&table, result);
        if (result->complete_before) {
            cli_table_cell(&table, "before");
            cli_table_cell(&table, "-");
        } else {
            cli_table_cell(&table, "%.4g", result->rate);
            cli_table_cell(&table, "%s", quantity_text(result->seconds, DIMENSION_SECONDS, text));
        }
        if (weights) weights_cell(&table, result);
    }
    free(ranked);
    TRY(cli_table_end(&table, out, err));
    cli_more_rows(out, shown, count);
    return STATUS_OK;
}

/* --- JSON ------------------------------------------------------------------------------------ */

static void put_result(struct json_out *json, const struct cli_result *result, uint32_t rank_number)
{
    json_out_object_begin(json, NULL, true);
    json_out_u64(json, "rank", rank_number);
    json_out_string(json, "name", result->name);
    if (result->evaluation.some) {
        json_out_double(json, "best_evaluation", result->evaluation.best);
        json_out_u64(json, "best_step", result->evaluation.best_step);
        if (result->evaluation.last_finite)
            json_out_double(json, "last_evaluation", result->evaluation.last);
        else
            json_out_null(json, "last_evaluation");
    }
    if (result->has_loss) json_out_double(json, "final_loss", result->final_loss);
    else json_out_null(json, "final_loss");
    if (!result->complete_before) {
        json_out_double(json, "tokens_per_s", result->tokens_per_s);
        json_out_double(json, "time_s", result->seconds);
    }
    if (result->weights_path) json_out_string(json, "weights_file", result->weights_path);
    if (result->evaluation.weights_path)
        json_out_string(json, "best_weights_file", result->evaluation.weights_path);
    json_out_object_end(json);
}

enum status cli_results_json(struct json_out *json, const struct cli_result *results,
                             uint32_t count, struct error *err)
{
    struct results_ranked *ranked = rank(results, count);
    if (!ranked) return error_memory(err, "the ranks of jobs", count * sizeof *ranked);
    json_out_string(json, "ranked_by",
                    all_evaluated(results, count) ? "best_evaluation" : "final_loss");
    json_out_array_begin(json, "results", false);
    for (uint32_t i = 0; i < count; i++) put_result(json, &results[ranked[i].job], i + 1);
    json_out_array_end(json);
    free(ranked);
    return STATUS_OK;
}
