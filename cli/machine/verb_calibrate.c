/*
 * `calibrate`: fits a machine's values to measured training runs, and reports the error on runs that were held out.
 *
 * Held-out runs judge the fit (cli/machine/cli_calibrate_split.h). `--half none` reports the present values' error.
 * `--folds` makes a fit for each fold and keeps none.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/try.h"
#include "cli/common/cli.h"
#include "cli/machine/cli_calibrate_fit.h"
#include "cli/machine/cli_calibrate_report.h"

struct calibrate_request {
    const char *half, *folds;
    struct option_list held, keep, weights;
};

/* --- the command line --------------------------------------------------------------------------- */

/* Keeps "FIGURE", fixes "FIGURE=VALUE"; spaces or dashes separate words. */
static enum status keep_value(const char *text, struct calibration_outcome *outcome,
                              struct calibration_problem *problem, struct error *err)
{
    char name[64];
    const char *sign = strchr(text, '=');
    uint32_t value = 0;
    snprintf(name, sizeof name, "%.*s", sign ? (int)(sign - text) : (int)strlen(text), text);
    for (char *c = name; *c; c++)
        if (*c == '-' || *c == '_') *c = ' ';
    while (value < CALIBRATION_VALUES && strcmp(name, calibration_value_names[value]) != 0) value++;
    if (value == CALIBRATION_VALUES || outcome->start[value] <= 0)
        return error_set(err, STATUS_BAD_INPUT, "option '--keep' is '%s' (expected a property of %s, such as '%s')",
                         text, outcome->machine, calibration_value_names[CALIBRATION_MATMUL_EFFICIENCY]);
    problem->keep[value] = true;
    if (!sign) return STATUS_OK;
    if (quantity_parse(sign + 1, calibration_value_dimensions[value], &outcome->start[value], err) != STATUS_OK)
        return error_add(err, "option '--keep', %s", name);
    if (outcome->start[value] > 0) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "option '--keep' is '%s' (expected a value above 0)", text);
}

/* Reads "FILE=WEIGHT", FILE without folder and ending. */
static enum status parse_weight(const char *text, const struct calibration_outcome *outcome,
                                double weights[CALIBRATION_SETS_MAX], struct error *err)
{
    const char *sign = strrchr(text, '=');
    char *end = NULL;
    double weight = sign ? strtod(sign + 1, &end) : 0;
    if (!sign || end == sign + 1 || *end != '\0' || !isfinite(weight) || weight <= 0)
        return error_set(err, STATUS_BAD_INPUT, "option '--weight' is '%s' (expected FILE=WEIGHT, a weight above 0)",
                         text);
    for (uint32_t s = 0; s < outcome->set_count; s++) {
        const char *slash = strrchr(outcome->sets[s].path, '/'), *name = slash ? slash + 1 : outcome->sets[s].path;
        if (strncmp(name, text, (size_t)(sign - text)) != 0 || strcspn(name, ".") != (size_t)(sign - text)) continue;
        weights[s] = weight;
        return STATUS_OK;
    }
    return error_set(err, STATUS_BAD_INPUT,
                     "option '--weight' is '%s' (expected one of the files, without folder and ending)", text);
}

/* Refuses a value that no run has. */
static enum status parse_held(const char *text, struct calibration_outcome *outcome, struct error *err)
{
    TRY(calibration_held_parse(text, &outcome->split, err));
    const struct calibration_group *held = &outcome->split.held[outcome->split.held_count - 1];
    for (uint32_t s = 0; s < outcome->set_count; s++)
        for (uint32_t i = 0; i < outcome->sets[s].count; i++)
            if (outcome->sets[s].runs[i].of[held->column] == held->value) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "option '--hold-out' is '%s' (expected a value that some runs have)", text);
}

static enum status parse_options(const struct calibrate_request *request, struct calibration_outcome *outcome,
                                 struct calibration_problem *problem, double weights[CALIBRATION_SETS_MAX],
                                 struct error *err)
{
    if (request->half) TRY(calibration_half_parse(request->half, &outcome->split, err));
    for (size_t i = 0; i < request->held.count; i++) TRY(parse_held(request->held.items[i], outcome, err));
    if (request->folds)
        TRY(calibration_folds_parse(request->folds, outcome->sets, outcome->set_count, &outcome->folds, err));
    for (size_t i = 0; i < request->weights.count; i++)
        TRY(parse_weight(request->weights.items[i], outcome, weights, err));
    for (size_t i = 0; i < request->keep.count; i++) TRY(keep_value(request->keep.items[i], outcome, problem, err));
    if (request->folds && (request->half || request->held.count > 0))
        return error_set(err, STATUS_BAD_INPUT, "options '--folds' and '--%s' exclude each other: both hold out runs",
                         request->half ? "half" : "hold-out");
    if (outcome->output && (outcome->split.half == CALIBRATION_HALF_NONE || request->folds))
        return error_set(err, STATUS_BAD_INPUT, "option '--output' has nothing to write with '%s'",
                         request->folds ? "--folds" : "--half none");
    return STATUS_OK;
}

/* --- fitting ------------------------------------------------------------------------------------ */

static void add_error(struct calibration_error *to, double error)
{
    to->runs++;
    to->mean += error;
    to->mean_absolute += fabs(error);
    to->largest = fmax(to->largest, fabs(error));
}

static void end_error(struct calibration_error *error)
{
    if (error->runs == 0) return;
    error->mean /= error->runs;
    error->mean_absolute /= error->runs;
}

static enum status predict(struct calibration_outcome *out, const double values[CALIBRATION_VALUES], uint32_t s,
                           uint32_t i, double *error, struct error *err)
{
    const struct measured_runs *set = &out->sets[s];
    if (calibration_predict(out->machine, values, &set->runs[i], &out->of[s].seconds[i], err) != STATUS_OK)
        return error_add(err, "%s:%" PRIu32, set->path, set->runs[i].line);
    *error = out->of[s].seconds[i] / set->runs[i].seconds - 1;
    return STATUS_OK;
}

static enum status fit_once(const struct calibration_problem *problem, struct calibration_outcome *out,
                            struct error *err)
{
    double error;
    memcpy(out->end, out->start, sizeof out->end);
    if (out->split.half != CALIBRATION_HALF_NONE) TRY(calibration_fit(problem, &out->split, out->end, err));
    for (uint32_t s = 0; s < out->set_count; s++)
        for (uint32_t i = 0; i < out->sets[s].count; i++) {
            bool fitted = calibration_is_fitted(&out->split, &out->sets[s].runs[i], i);
            TRY(predict(out, out->end, s, i, &error, err));
            add_error(fitted ? &out->of[s].fitted : &out->of[s].held, error);
        }
    return STATUS_OK;
}

static enum status fit_fold(const struct calibration_problem *problem, uint32_t fold, struct calibration_outcome *out,
                            struct error *err)
{
    struct calibration_split split = calibration_fold(&out->folds, fold);
    double values[CALIBRATION_VALUES], error;
    memcpy(values, out->start, sizeof values);
    TRY(calibration_fit(problem, &split, values, err));
    for (uint32_t s = 0; s < out->set_count; s++) {
        for (uint32_t i = 0; i < out->sets[s].count; i++) {
            if (calibration_is_fitted(&split, &out->sets[s].runs[i], i)) continue;
            TRY(predict(out, values, s, i, &error, err));
            add_error(&out->fold_errors[fold][s], error);
            add_error(&out->of[s].held, error);
        }
        end_error(&out->fold_errors[fold][s]);
    }
    return STATUS_OK;
}

static enum status fit_folds(const struct calibration_problem *problem, struct calibration_outcome *out,
                             struct error *err)
{
    char label[CALIBRATION_LABEL_BYTES];
    TRY(ARENA_NEW(&out->arena, out->folds.count, out->fold_errors, err));
    memcpy(out->end, out->start, sizeof out->end);
    for (uint32_t f = 0; f < out->folds.count; f++) {
        calibration_fold_label(&out->folds, f, label);
        if (fit_fold(problem, f, out, err) != STATUS_OK) return error_add(err, "%s", label);
    }
    return STATUS_OK;
}

static enum status calibrate(const struct calibration_problem *problem, struct calibration_outcome *out,
                             struct error *err)
{
    for (uint32_t s = 0; s < out->set_count; s++) {
        TRY(ARENA_NEW(&out->arena, out->sets[s].count, out->of[s].seconds, err));
    }
    TRY((out->folds.count > 0 ? fit_folds : fit_once)(problem, out, err));
    for (uint32_t s = 0; s < out->set_count; s++) {
        end_error(&out->of[s].fitted);
        end_error(&out->of[s].held);
    }
    return STATUS_OK;
}

/* Returns 0 for kept values, which keep their kind. */
static enum status fitted_values(const struct calibration_problem *problem, const struct calibration_outcome *outcome,
                                  double out[CALIBRATION_VALUES], struct error *err)
{
    double own[CALIBRATION_VALUES];
    TRY(calibration_start(outcome->machine, outcome->sets, outcome->set_count, own, err));
    for (uint32_t f = 0; f < CALIBRATION_VALUES; f++) {
        bool given = outcome->end[f] < own[f] || outcome->end[f] > own[f];
        out[f] = problem->keep[f] && !given ? 0 : outcome->end[f];
    }
    return STATUS_OK;
}

static enum status write_machine(const struct calibration_problem *problem, const struct calibration_outcome *outcome,
                                 struct error *err)
{
    struct hardware hardware = {0};
    double values[CALIBRATION_VALUES];
    double error = 0, runs = 0;
    for (uint32_t s = 0; s < outcome->set_count; s++) {
        error += outcome->of[s].fitted.mean_absolute * outcome->of[s].fitted.runs;
        runs += outcome->of[s].fitted.runs;
    }
    enum status status = fitted_values(problem, outcome, values, err);
    if (status == STATUS_OK) status = hardware_find(outcome->machine, &hardware, err);
    if (status == STATUS_OK) {
        calibration_put(&hardware, values, runs > 0 ? error / runs : 0, "spillway calibrate, measured runs");
        status = hardware_write_file(&hardware, outcome->output, err);
    }
    hardware_release(&hardware);
    return status;
}

/* Reads, fits and writes; `outcome` has the machine's name and the output file. */
static enum status carry_out(struct cli *cli, const struct calibrate_request *request, const struct options *options,
                             struct calibration_outcome *outcome, struct error *err)
{
    double weights[CALIBRATION_SETS_MAX];
    for (size_t i = 1; i < options->operand_count; i++) {
        weights[outcome->set_count] = 1;
        TRY(measured_runs_read(options->operands[i], &outcome->arena, &outcome->sets[outcome->set_count++], err));
    }
    struct calibration_problem problem = {.machine = outcome->machine, .sets = outcome->sets,
                                          .set_count = outcome->set_count, .weights = weights};
    TRY(calibration_start(outcome->machine, outcome->sets, outcome->set_count, outcome->start, err));
    TRY(parse_options(request, outcome, &problem, weights, err));
    TRY(calibrate(&problem, outcome, err));
    if (outcome->output) TRY(write_machine(&problem, outcome, err));
    return cli->json ? calibration_report_json(cli, outcome, err) : calibration_report_text(cli, outcome, err);
}

/* --- the verb ----------------------------------------------------------------------------------- */

enum status verb_calibrate(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct calibrate_request request = {.half = NULL};
    struct calibration_outcome outcome = {.set_count = 0};
    const struct option_spec specs[] = {
        OPTION_OUTPUT("output", 'o', "FILE", FILE_KIND_HARDWARE, &outcome.output,
                      "hardware file to write, with the fitted values"),
        OPTION_STRING("half", 0, "WHICH", &request.half,
                      "runs to fit: all, even, odd, none, or a random half's seed (default all)"),
        OPTION_LIST("hold-out", 0, "COLUMN=VALUE", &request.held, "runs to judge the fit by, not to fit"),
        OPTION_STRING("folds", 0, "N|COLUMN", &request.folds,
                      "cross-validate in N folds, or with one fold per value of a column"),
        OPTION_LIST("weight", 0, "FILE=WEIGHT", &request.weights, "weight of a file in the fit (default 1)"),
        OPTION_LIST("keep", 0, "PROPERTY[=VALUE]", &request.keep, "property to leave as it is, or to fix at VALUE"),
        CLI_FORCE_OPTION(cli),
        CLI_COMMON_OPTIONS(cli)};
    struct options options = {
        OPTIONS_TABLE(specs, 2, 1 + CALIBRATION_SETS_MAX),
        .examples = (const char *const[]){
            "spillway calibrate dgx-a100-80gb runs.csv --half even -o fitted.hw.json",
            "spillway calibrate dgx-a100-80gb runs.csv --hold-out 'hidden size=8192'",
            "spillway calibrate dgx-a100-80gb runs.csv --folds 'micro batch'",
            "spillway calibrate dgx-a100-80gb plots/papers/data/megatron_table1.csv --half none", NULL},
        .details = "The first line of a CSV file names the columns: '# GPUs', 'global batch', 'micro batch', 'hidden "
                   "size', 'attention heads', '# layers', 'sequence length', 'tensor parallelism', 'data "
                   "parallelism', 'pipeline parallelism', 'iteration time (ms)', and optionally 'recompute', "
                   "'chunks', 'sequence parallelism', 'scatter', 'exposed', 'vocabulary', 'zero', 'overlap' and "
                   "'stack'. Each file counts the same, whatever its number of runs.",
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    outcome.machine = options.operands[0];
    enum status status = carry_out(cli, &request, &options, &outcome, err);
    arena_release(&outcome.arena);
    return status;
}
