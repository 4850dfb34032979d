#include "cli/machine/cli_calibrate_report.h"

#include <inttypes.h>

#include "base/try.h"
#include "cli/common/cli_table.h"

static bool is_fit(const struct calibration_outcome *outcome)
{
    return outcome->split.half != CALIBRATION_HALF_NONE && outcome->folds.count == 0;
}

/* --- text --------------------------------------------------------------------------------------- */

static void error_cells(struct cli_table *table, const struct calibration_error *error)
{
    char text[CLI_PERCENT_BYTES];
    if (error->runs == 0) {
        for (int i = 0; i < 4; i++) cli_table_cell(table, "-");
        return;
    }
    cli_table_cell(table, "%" PRIu32, error->runs);
    cli_table_cell(table, "%s", cli_percent(error->mean_absolute, text));
    cli_table_cell(table, "%s", cli_signed_percent(error->mean, text));
    cli_table_cell(table, "%s", cli_percent(error->largest, text));
}

static enum status values_text(struct cli *cli, const struct calibration_outcome *outcome, struct error *err)
{
    struct cli_table table;
    char text[QUANTITY_TEXT_BYTES];
    cli_table_begin(&table, (const char *const[]){"PROPERTY", ">START", ">END", NULL});
    for (uint32_t f = 0; f < CALIBRATION_VALUES; f++) {
        if (outcome->start[f] <= 0) continue;
        cli_table_cell(&table, "%s", calibration_value_names[f]);
        cli_table_cell(&table, "%s", quantity_text(outcome->start[f], calibration_value_dimensions[f], text));
        cli_table_cell(&table, "%s", quantity_text(outcome->end[f], calibration_value_dimensions[f], text));
    }
    TRY(cli_table_end(&table, cli->out, err));
    fprintf(cli->out, "\n");
    return STATUS_OK;
}

static enum status folds_text(struct cli *cli, const struct calibration_outcome *outcome, struct error *err)
{
    struct cli_table table;
    char label[CALIBRATION_LABEL_BYTES];
    cli_table_begin(&table, (const char *const[]){"FOLD", "RUNS", ">HELD OUT", ">ERROR", ">BIAS", ">MOST", NULL});
    for (uint32_t f = 0; f < outcome->folds.count; f++)
        for (uint32_t s = 0; s < outcome->set_count; s++) {
            if (outcome->fold_errors[f][s].runs == 0) continue;
            calibration_fold_label(&outcome->folds, f, label);
            cli_table_cell(&table, "%s", label);
            cli_table_cell(&table, "%s", cli_network_label(outcome->sets[s].path));
            error_cells(&table, &outcome->fold_errors[f][s]);
        }
    TRY(cli_table_end(&table, cli->out, err));
    fprintf(cli->out, "\n");
    return STATUS_OK;
}

enum status calibration_report_text(struct cli *cli, const struct calibration_outcome *outcome, struct error *err)
{
    struct cli_table table;
    if (is_fit(outcome)) TRY(values_text(cli, outcome, err));
    if (outcome->folds.count > 0) TRY(folds_text(cli, outcome, err));
    cli_table_begin(&table, (const char *const[]){"RUNS", ">FITTED", ">ERROR", ">BIAS", ">MOST", ">HELD OUT", ">ERROR",
                                                  ">BIAS", ">MOST", NULL});
    for (uint32_t s = 0; s < outcome->set_count; s++) {
        cli_table_cell(&table, "%s", cli_network_label(outcome->sets[s].path));
        error_cells(&table, &outcome->of[s].fitted);
        error_cells(&table, &outcome->of[s].held);
    }
    TRY(cli_table_end(&table, cli->out, err));
    fprintf(cli->out,
            "\nerror: mean of |predicted / measured - 1| of an iteration's time; bias: the same with its sign\n");
    if (outcome->folds.count > 0) fprintf(cli->out, "each run is predicted by the fit in which it was held out\n");
    if (outcome->output) fprintf(cli->out, "written to %s\n", outcome->output);
    return STATUS_OK;
}

/* --- JSON --------------------------------------------------------------------------------------- */

static void error_members(struct json_out *json, const struct calibration_error *error)
{
    json_out_u64(json, "runs", error->runs);
    json_out_double(json, "mean_absolute", error->mean_absolute);
    json_out_double(json, "mean", error->mean);
    json_out_double(json, "largest", error->largest);
}

static void error_json(struct json_out *json, const char *key, const struct calibration_error *error)
{
    json_out_object_begin(json, key, true);
    error_members(json, error);
    json_out_object_end(json);
}

static void set_json(struct json_out *json, const struct calibration_outcome *outcome, uint32_t s)
{
    const struct measured_runs *set = &outcome->sets[s];
    const struct calibration_judged *of = &outcome->of[s];
    json_out_object_begin(json, NULL, false);
    json_out_string(json, "file", set->path);
    error_json(json, "fitted", &of->fitted);
    error_json(json, "held_out", &of->held);
    json_out_array_begin(json, "runs", false);
    for (uint32_t i = 0; i < set->count; i++) {
        json_out_object_begin(json, NULL, true);
        json_out_u64(json, "line", set->runs[i].line);
        json_out_bool(json, "fitted",
                      outcome->folds.count == 0 && calibration_is_fitted(&outcome->split, &set->runs[i], i));
        json_out_double(json, "measured_s", set->runs[i].seconds);
        json_out_double(json, "predicted_s", of->seconds[i]);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    json_out_object_end(json);
}

static void folds_json(struct json_out *json, const struct calibration_outcome *outcome)
{
    char label[CALIBRATION_LABEL_BYTES];
    json_out_array_begin(json, "folds", false);
    for (uint32_t f = 0; f < outcome->folds.count; f++)
        for (uint32_t s = 0; s < outcome->set_count; s++) {
            if (outcome->fold_errors[f][s].runs == 0) continue;
            calibration_fold_label(&outcome->folds, f, label);
            json_out_object_begin(json, NULL, true);
            json_out_string(json, "fold", label);
            json_out_string(json, "file", outcome->sets[s].path);
            error_members(json, &outcome->fold_errors[f][s]);
            json_out_object_end(json);
        }
    json_out_array_end(json);
}

enum status calibration_report_json(struct cli *cli, const struct calibration_outcome *outcome, struct error *err)
{
    struct json_out *json;
    TRY(cli_report_begin(cli, "calibrate", &json, err));
    json_out_string(json, "machine", outcome->machine);
    json_out_array_begin(json, "values", false);
    for (uint32_t f = 0; f < CALIBRATION_VALUES; f++) {
        if (outcome->start[f] <= 0) continue;
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "name", calibration_value_names[f]);
        json_out_double(json, "start", outcome->start[f]);
        json_out_double(json, "end", outcome->end[f]);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    json_out_array_begin(json, "sets", false);
    for (uint32_t s = 0; s < outcome->set_count; s++) set_json(json, outcome, s);
    json_out_array_end(json);
    if (outcome->folds.count > 0) folds_json(json, outcome);
    return cli_report_end(cli, json, err);
}
