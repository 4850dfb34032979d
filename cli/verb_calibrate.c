/*
 * `calibrate`: fit a machine's figures to measured training runs, and say how far off it is on those it has not seen.
 *
 * With a half (--half) the runs of one half decide and those of the other judge; without one all decide, and nothing
 * judges. `--half none` fits nothing: how far off the machine is as it stands.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/size.h"
#include "cli/cli.h"
#include "cli/cli_calibrate.h"
#include "cli/cli_table.h"
#include "models/try.h"

enum { SETS_MAX = 16 };

struct request {
    const char *machine, *output;
    struct calibration_half half;
    bool fits; /* else only judges */
};

struct set_outcome {
    double *seconds; /* predicted, of each run */
    struct calibration_error fitted, held;
};

struct outcome {
    struct arena arena;
    struct measured_runs sets[SETS_MAX];
    struct set_outcome of[SETS_MAX];
    uint32_t set_count;
    double start[FIT_FIGURES], end[FIT_FIGURES];
};

/* --- work -------------------------------------------------------------------------------------- */

static enum status parse_half(const char *text, struct request *out, struct error *err)
{
    static const char *const names[] = {"all", "even", "odd"};
    out->fits = !text || strcmp(text, "none") != 0;
    out->half = (struct calibration_half){.which = HALF_ALL};
    if (!text || !out->fits) return STATUS_OK;
    for (uint32_t i = 0; i < ARRAY_COUNT(names); i++)
        if (strcmp(text, names[i]) == 0) {
            out->half.which = HALF_ALL + i;
            return STATUS_OK;
        }
    char *end;
    out->half = (struct calibration_half){.which = HALF_BY_SEED, .seed = strtoull(text, &end, 10)};
    if (text[0] >= '0' && text[0] <= '9' && *end == '\0') return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "option '--half' is '%s' (expected none, all, even, odd or a seed)", text);
}

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

static enum status judge(const struct request *request, const double values[FIT_FIGURES], struct outcome *out,
                         struct error *err)
{
    for (uint32_t s = 0; s < out->set_count; s++) {
        const struct measured_runs *set = &out->sets[s];
        struct set_outcome *of = &out->of[s];
        void *memory;
        TRY(arena_array(&out->arena, set->count, sizeof *of->seconds, &memory, err));
        of->seconds = memory;
        for (uint32_t i = 0; i < set->count; i++) {
            bool fitted = request->fits && calibration_is_fitted(request->half, i);
            if (calibration_predict(request->machine, values, &set->runs[i], &of->seconds[i], err) != STATUS_OK)
                return error_add(err, "%s:%" PRIu32, set->path, set->runs[i].line);
            add_error(fitted ? &of->fitted : &of->held, of->seconds[i] / set->runs[i].seconds - 1);
        }
        end_error(&of->fitted);
        end_error(&of->held);
    }
    return STATUS_OK;
}

static enum status calibrate(const struct request *request, struct outcome *out, struct error *err)
{
    enum status status = calibration_start(request->machine, out->sets, out->set_count, out->start, err);
    memcpy(out->end, out->start, sizeof out->end);
    if (status == STATUS_OK && request->fits)
        status = calibration_fit(request->machine, out->sets, out->set_count, request->half, out->end, err);
    if (status == STATUS_OK) status = judge(request, out->end, out, err);
    return status;
}

/* --- answers ------------------------------------------------------------------------------------ */

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

static enum status report_text(struct cli *cli, const struct request *request, const struct outcome *outcome,
                               struct error *err)
{
    struct cli_table table;
    char text[QUANTITY_TEXT_BYTES];
    if (request->fits) {
        cli_table_begin(&table, (const char *const[]){"FIGURE", ">START", ">END", NULL});
        for (uint32_t f = 0; f < FIT_FIGURES; f++) {
            if (outcome->start[f] <= 0) continue;
            cli_table_cell(&table, "%s", calibration_figure_names[f]);
            cli_table_cell(&table, "%s", quantity_text(outcome->start[f], calibration_figure_dimensions[f], text));
            cli_table_cell(&table, "%s", quantity_text(outcome->end[f], calibration_figure_dimensions[f], text));
        }
        if (cli_table_end(&table, cli->out, err) != STATUS_OK) return err->status;
        fprintf(cli->out, "\n");
    }
    cli_table_begin(&table, (const char *const[]){"RUNS", ">FITTED", ">ERROR", ">BIAS", ">MOST", ">HELD OUT", ">ERROR",
                                                  ">BIAS", ">MOST", NULL});
    for (uint32_t s = 0; s < outcome->set_count; s++) {
        cli_table_cell(&table, "%s", cli_network_label(outcome->sets[s].path));
        error_cells(&table, &outcome->of[s].fitted);
        error_cells(&table, &outcome->of[s].held);
    }
    if (cli_table_end(&table, cli->out, err) != STATUS_OK) return err->status;
    fprintf(cli->out, "\nerror: mean of |predicted / measured - 1| of an iteration's time; bias: the same with its sign\n");
    if (request->output) fprintf(cli->out, "written to %s\n", request->output);
    return STATUS_OK;
}

static void error_json(struct json_out *json, const char *key, const struct calibration_error *error)
{
    json_out_object_begin(json, key, true);
    json_out_u64(json, "runs", error->runs);
    json_out_double(json, "mean_absolute", error->mean_absolute);
    json_out_double(json, "mean", error->mean);
    json_out_double(json, "largest", error->largest);
    json_out_object_end(json);
}

static void set_json(struct json_out *json, const struct request *request, const struct measured_runs *set,
                     const struct set_outcome *of)
{
    json_out_object_begin(json, NULL, false);
    json_out_string(json, "file", set->path);
    error_json(json, "fitted", &of->fitted);
    error_json(json, "held_out", &of->held);
    json_out_array_begin(json, "runs", false);
    for (uint32_t i = 0; i < set->count; i++) {
        json_out_object_begin(json, NULL, true);
        json_out_u64(json, "line", set->runs[i].line);
        json_out_bool(json, "fitted", request->fits && calibration_is_fitted(request->half, i));
        json_out_double(json, "measured_s", set->runs[i].seconds);
        json_out_double(json, "predicted_s", of->seconds[i]);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    json_out_object_end(json);
}

static enum status report_json(struct cli *cli, const struct request *request, const struct outcome *outcome,
                               struct error *err)
{
    struct json_out *json;
    if (cli_report_begin(cli, "calibrate", &json, err) != STATUS_OK) return err->status;
    json_out_string(json, "machine", request->machine);
    json_out_array_begin(json, "figures", false);
    for (uint32_t f = 0; f < FIT_FIGURES; f++) {
        if (outcome->start[f] <= 0) continue;
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "figure", calibration_figure_names[f]);
        json_out_double(json, "start", outcome->start[f]);
        json_out_double(json, "end", outcome->end[f]);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    json_out_array_begin(json, "sets", false);
    for (uint32_t s = 0; s < outcome->set_count; s++) set_json(json, request, &outcome->sets[s], &outcome->of[s]);
    json_out_array_end(json);
    return cli_report_end(cli, json, err);
}

static enum status write_machine(const struct request *request, const struct outcome *outcome, struct error *err)
{
    struct hardware hardware = {0};
    struct json_file file = {0};
    double error = 0, runs = 0;
    for (uint32_t s = 0; s < outcome->set_count; s++) {
        error += outcome->of[s].fitted.mean_absolute * outcome->of[s].fitted.runs;
        runs += outcome->of[s].fitted.runs;
    }
    enum status status = hardware_find(request->machine, &hardware, err);
    if (status == STATUS_OK) {
        calibration_put(&hardware, outcome->end, runs > 0 ? error / runs : 0, "spillway calibrate, measured runs");
        status = json_file_begin(&file, request->output, "writing a machine", err);
    }
    if (status == STATUS_OK) {
        hardware_write(&hardware, file.out, NULL);
        status = json_file_end(&file, err);
    }
    hardware_release(&hardware);
    return status;
}

/* --- the verb ----------------------------------------------------------------------------------- */

enum status verb_calibrate(struct cli *cli, int argc, char **argv, struct error *err)
{
    const char *half = NULL;
    struct request request = {.machine = NULL};
    const struct option_spec specs[] = {
        OPTION_STRING("output", 'o', "FILE", &request.output, "write the machine with its fitted figures there"),
        OPTION_STRING("half", 0, "WHICH", &half,
                      "which runs are fitted to: all, even, odd, a seed's half or none, default all"),
        CLI_COMMON_OPTIONS(cli)};
    struct options options = {
        .specs = specs,
        .spec_count = ARRAY_COUNT(specs),
        .argument_min = 2,
        .argument_max = 1 + SETS_MAX,
        .examples = (const char *const[]){
            "spillway calibrate dgx-a100-80gb runs.csv --half even -o fitted.hw.json",
            "spillway calibrate dgx-a100-80gb plots/papers/data/megatron_table1.csv --half none", NULL},
        .details = "DATA.csv names in its first line what its columns are: '# GPUs', 'global batch', 'micro batch', "
                   "'hidden size', 'attention heads', '# layers', 'sequence length', 'tensor parallelism', "
                   "'data parallelism', 'pipeline parallelism', 'iteration time (ms)' and, where wanted, 'recompute', "
                   "'chunks', 'sequence parallelism', 'scatter', 'exposed', 'vocabulary'. Runs count by file, each file alike.",
    };
    bool go_on;
    if (cli_parse(cli, &options, argc, argv, &go_on, err) != STATUS_OK || !go_on) return err->status;
    request.machine = options.operands[0];
    TRY(parse_half(half, &request, err));
    if (request.output && !request.fits)
        return error_set(err, STATUS_BAD_INPUT, "option '--output' has nothing to write with '--half none'");
    struct outcome outcome = {.set_count = 0};
    enum status status = STATUS_OK;
    for (size_t i = 1; i < options.operand_count && status == STATUS_OK; i++)
        status = measured_runs_read(options.operands[i], &outcome.arena, &outcome.sets[outcome.set_count++], err);
    if (status == STATUS_OK) status = calibrate(&request, &outcome, err);
    if (status == STATUS_OK && request.output) status = write_machine(&request, &outcome, err);
    if (status == STATUS_OK)
        status = cli->json ? report_json(cli, &request, &outcome, err) : report_text(cli, &request, &outcome, err);
    arena_release(&outcome.arena);
    return status;
}
