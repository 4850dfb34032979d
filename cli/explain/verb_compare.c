/*
 * `compare`: the error of a prediction, by stream and operation.
 *
 * Errors are predicted / measured - 1: +5 % tokens/s means that the prediction was too fast. --max-error checks in
 * scripts: the exit code says whether the error is within the limit.
 */
#include <math.h>
#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "base/try.h"
#include "cli/common/cli.h"
#include "cli/common/cli_table.h"
#include "cli/document/cli_document.h"
#include "cli/process/cli_load.h"
#include "cli/ways/cli_predict.h"
#include "planner/plan.h"
#include "plots/plot.h"
#include "traces/compare.h"

struct compare_request {
    const char *predicted_path, *measured_path;
    const char *max_error_text; /* NULL: no limit */
    double max_error;
    uint64_t worst;
    const char *plot; /* NULL: no picture */
};

struct pair {
    struct trace_reader *readers[2];
    const struct trace *predicted, *measured; /* heads; borrowed from the readers */
    struct compare_result comparison;
};

/* "job-a shard 2 backward, minibatch 7" */
enum { SPAN_TEXT_BYTES = 256 };
static const char *span_text(const struct trace *trace, const struct trace_span *span,
                             char text[SPAN_TEXT_BYTES])
{
    char shard[32] = "";
    if (span->shard != PLAN_NONE) snprintf(shard, sizeof shard, " shard %u", span->shard);
    snprintf(text, SPAN_TEXT_BYTES, "%s%s %s%s", trace->jobs[span->job].name, shard,
             span->kind == OP_COPY ? "copy of " : "", plan_pass_names[span->pass]);
    return text;
}

static void error_cell(struct cli_table *table, bool known, double error)
{
    char text[CLI_PERCENT_BYTES];
    cli_table_cell(table, "%s", known ? cli_signed_percent(error, text) : "-");
}

/* --- text ------------------------------------------------------------------------------------ */

static enum status print_classes(FILE *out, const struct compare_result *comparison,
                                 struct error *err)
{
    struct cli_table table;
    char text[QUANTITY_TEXT_BYTES], share[CLI_PERCENT_BYTES];
    cli_table_begin(&table, (const char *const[]){"TIME IN", ">PREDICTED", ">MEASURED", ">ERROR",
                                                  ">OF THE MAKESPAN", NULL});
    for (uint32_t c = 0; c < COMPARE_CLASS_COUNT; c++) {
        const struct compare_class_result *result = &comparison->classes[c];
        bool everywhere = c != COMPARE_P2P && c != COMPARE_COLLECTIVE && c != COMPARE_CPU && c != COMPARE_READ &&
                          c != COMPARE_WRITE && c != COMPARE_FILE;
        if (!everywhere && result->predicted_s <= 0 && result->measured_s <= 0) continue;
        cli_table_cell(&table, "%s", compare_class_names[c]);
        cli_table_cell(&table, "%s", quantity_text(result->predicted_s, DIMENSION_SECONDS, text));
        cli_table_cell(&table, "%s", quantity_text(result->measured_s, DIMENSION_SECONDS, text));
        error_cell(&table, result->error_known, result->error);
        cli_table_cell(&table, "%s", cli_signed_percent(result->share, share));
    }
    return cli_table_end(&table, out, err);
}

/* Walks over the kinds of collectives that the traces have: *next is the next one to look at, 0 at first. Returns false
 * after the last one. */
static bool next_collectives(const struct compare_result *comparison, uint32_t *next, uint32_t *stream, uint32_t *pass)
{
    for (; *next < STREAM_KIND_COUNT * PLAN_PASS_COUNT; ++*next) {
        *stream = *next / PLAN_PASS_COUNT;
        *pass = *next % PLAN_PASS_COUNT;
        if (comparison->collectives[*stream][*pass].operations == 0) continue;
        ++*next;
        return true;
    }
    return false;
}

/* A wait below a nanosecond is a rounding error. */
static void wait_cell(struct cli_table *table, bool known, double waited_s)
{
    char text[QUANTITY_TEXT_BYTES];
    cli_table_cell(table, "%s", known ? quantity_text(waited_s < 1e-9 ? 0 : waited_s, DIMENSION_SECONDS, text) : "-");
}

/* Prints nothing without collectives. */
static enum status print_collectives(FILE *out, const struct compare_result *comparison, struct error *err)
{
    struct cli_table table;
    char text[QUANTITY_TEXT_BYTES];
    uint32_t next = 0, stream, pass;
    if (!next_collectives(comparison, &next, &stream, &pass)) return STATUS_OK;
    cli_table_begin(&table, (const char *const[]){"COLLECTIVES OF", "STREAM", ">OPERATIONS", ">WAITING PREDICTED",
                                                  ">MEASURED", ">TRANSFER PREDICTED", ">MEASURED", ">ERROR", NULL});
    next = 0;
    while (next_collectives(comparison, &next, &stream, &pass)) {
        const struct compare_collectives *of = &comparison->collectives[stream][pass];
        cli_table_cell(&table, "%s", plan_pass_names[pass]);
        cli_table_cell(&table, "%s", plan_stream_names[stream]);
        cli_table_cell(&table, "%" PRIu64, of->operations);
        wait_cell(&table, comparison->predicted_waits, of->predicted_waited_s);
        wait_cell(&table, comparison->measured_waits, of->measured_waited_s);
        cli_table_cell(&table, "%s", quantity_text(of->predicted_transfer_s, DIMENSION_SECONDS, text));
        cli_table_cell(&table, "%s", quantity_text(of->measured_transfer_s, DIMENSION_SECONDS, text));
        error_cell(&table, of->measured_transfer_s > 0, of->measured_transfer_s > 0
                       ? of->predicted_transfer_s / of->measured_transfer_s - 1 : 0);
    }
    TRY(cli_table_end(&table, out, err));
    fputc('\n', out);
    return STATUS_OK;
}

static enum status print_jobs(FILE *out, const struct pair *pair, struct error *err)
{
    struct cli_table table;
    char predicted[32], measured[32];
    const uint32_t unit = trace_unit(pair->measured);
    const bool tokens = unit == JOB_TOKENS;
    snprintf(predicted, sizeof predicted, ">PREDICTED %s", cli_unit_headings[unit]);
    snprintf(measured, sizeof measured, ">MEASURED %s", cli_unit_headings[unit]);
    cli_table_begin(&table, (const char *const[]){"JOB", predicted, measured, ">ERROR", NULL});
    for (uint32_t j = 0; j < pair->comparison.job_count; j++) {
        const struct compare_job *job = &pair->comparison.jobs[j];
        cli_table_cell(&table, "%s", pair->measured->jobs[j].name);
        cli_table_cell(&table, "%.4g",
                       tokens ? job->predicted_tokens_per_s : trace_job_samples_per_s(pair->predicted, j));
        cli_table_cell(&table, "%.4g",
                       tokens ? job->measured_tokens_per_s : trace_job_samples_per_s(pair->measured, j));
        error_cell(&table, job->error_known, job->error);
    }
    return cli_table_end(&table, out, err);
}

static enum status print_worst(FILE *out, const struct pair *pair, uint32_t count,
                               struct error *err)
{
    struct cli_table table;
    char text[QUANTITY_TEXT_BYTES], name[SPAN_TEXT_BYTES];
    cli_table_begin(&table, (const char *const[]){"FARTHEST OFF", "STREAM", ">MINIBATCH",
                                                  ">PREDICTED", ">MEASURED", ">DIFFERENCE", NULL});
    for (uint32_t i = 0; i < count; i++) {
        const struct compare_off *off = &pair->comparison.worst[i];
        const struct trace_span *predicted = &off->predicted, *measured = &off->measured;
        cli_table_cell(&table, "%s", span_text(pair->measured, measured, name));
        cli_table_cell(&table, "%s", pair->measured->streams[measured->stream].name);
        cli_table_cell(&table, "%" PRIu32, measured->minibatch);
        cli_table_cell(&table, "%s", quantity_text(predicted->end_s - predicted->start_s,
                                                   DIMENSION_SECONDS, text));
        cli_table_cell(&table, "%s", quantity_text(measured->end_s - measured->start_s,
                                                   DIMENSION_SECONDS, text));
        cli_table_cell(&table, "%s", quantity_text(off->difference_s, DIMENSION_SECONDS, text));
    }
    return cli_table_end(&table, out, err);
}

/* Warns if other programs used the processors. */
static void warn_load(struct cli *cli, const struct pair *pair)
{
    double slowed_s;
    if (cli_load_slows(pair->measured->load, pair->measured->makespan_s, pair->predicted->makespan_s, &slowed_s))
        cli_warn(cli,
                 "other programs took %.0f %% of the processors during the measured run, "
                 "so it may have taken up to %.2g times as long as on an idle machine",
                 100 * pair->measured->load, slowed_s / pair->predicted->makespan_s);
    cli_load_warn_late(cli, pair->measured->late);
    if (cli_load_slows(pair->predicted->load, pair->measured->makespan_s, 1, &slowed_s))
        cli_warn(cli, "the profile of the prediction is not clean: "
                      "other programs took %.0f %% of the processors while it was "
                 "measured", 100 * pair->predicted->load);
}

static enum status print_text(struct cli *cli, const struct compare_request *request,
                              const struct pair *pair, struct error *err)
{
    FILE *out = cli->out;
    const struct compare_result *comparison = &pair->comparison;
    char text[QUANTITY_TEXT_BYTES], other[QUANTITY_TEXT_BYTES], percent[CLI_PERCENT_BYTES];
    uint32_t worst = comparison->worst_count;
    if (worst > request->worst) worst = (uint32_t)request->worst;
    fprintf(out, "makespan    %s predicted, %s measured\n",
            quantity_text(comparison->predicted_makespan_s, DIMENSION_SECONDS, text),
            quantity_text(comparison->measured_makespan_s, DIMENSION_SECONDS, other));
    fprintf(out, "throughput  error %s (predicted over measured, minus one)\n\n",
            comparison->throughput_error_known
                ? cli_signed_percent(comparison->throughput_error, percent)
                : "not known");
    TRY(print_classes(out, comparison, err));
    fputc('\n', out);
    TRY(print_collectives(out, comparison, err));
    TRY(print_jobs(out, pair, err));
    if (worst > 0) {
        fputc('\n', out);
        TRY(print_worst(out, pair, worst, err));
    }
    cli_next(cli, (const char *const[]){"plot", "timeline", request->predicted_path,
                                        request->measured_path, "-o", "timeline.svg", NULL});
    return STATUS_OK;
}

/* --- JSON ------------------------------------------------------------------------------------ */

static void known_json(struct json_out *json, const char *key, bool known, double value)
{
    if (known) json_out_double(json, key, value);
    else json_out_null(json, key);
}

static void collectives_json(struct json_out *json, const struct compare_result *comparison)
{
    uint32_t next = 0, stream, pass;
    if (!next_collectives(comparison, &next, &stream, &pass)) return;
    json_out_array_begin(json, "collectives", false);
    next = 0;
    while (next_collectives(comparison, &next, &stream, &pass)) {
        const struct compare_collectives *of = &comparison->collectives[stream][pass];
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "pass", plan_pass_names[pass]);
        json_out_string(json, "stream", plan_stream_names[stream]);
        json_out_u64(json, "operations", of->operations);
        json_out_u64(json, "bytes", of->bytes);
        known_json(json, "predicted_waited_s", comparison->predicted_waits, of->predicted_waited_s);
        known_json(json, "measured_waited_s", comparison->measured_waits, of->measured_waited_s);
        json_out_double(json, "predicted_transfer_s", of->predicted_transfer_s);
        json_out_double(json, "measured_transfer_s", of->measured_transfer_s);
        json_out_object_end(json);
    }
    json_out_array_end(json);
}

static enum status print_json(struct cli *cli, const struct compare_request *request,
                              const struct pair *pair, struct error *err)
{
    const struct compare_result *comparison = &pair->comparison;
    struct json_out *json;
    TRY(cli_report_begin(cli, "compare", &json, err));
    json_out_string(json, "predicted_file", request->predicted_path);
    json_out_string(json, "measured_file", request->measured_path);
    json_out_double(json, "predicted_makespan_s", comparison->predicted_makespan_s);
    json_out_double(json, "measured_makespan_s", comparison->measured_makespan_s);
    known_json(json, "throughput_error", comparison->throughput_error_known,
               comparison->throughput_error);
    if (request->max_error_text) json_out_double(json, "max_error", request->max_error);
    json_out_object_begin(json, "by_class", false);
    for (uint32_t c = 0; c < COMPARE_CLASS_COUNT; c++) {
        const struct compare_class_result *result = &comparison->classes[c];
        bool of_few = c == COMPARE_FILE || c == COMPARE_COLLECTIVE;
        if (of_few && result->predicted_s <= 0 && result->measured_s <= 0) continue;
        json_out_object_begin(json, compare_class_names[c], true);
        json_out_double(json, "predicted_s", result->predicted_s);
        json_out_double(json, "measured_s", result->measured_s);
        known_json(json, "error", result->error_known, result->error);
        json_out_double(json, "share", result->share);
        json_out_object_end(json);
    }
    json_out_object_end(json);
    collectives_json(json, comparison);
    json_out_array_begin(json, "jobs", false);
    for (uint32_t j = 0; j < comparison->job_count; j++) {
        const struct compare_job *job = &comparison->jobs[j];
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "name", pair->measured->jobs[j].name);
        json_out_double(json, "predicted_tokens_per_s", job->predicted_tokens_per_s);
        json_out_double(json, "measured_tokens_per_s", job->measured_tokens_per_s);
        known_json(json, "error", job->error_known, job->error);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    json_out_array_begin(json, "worst", false);
    for (uint32_t i = 0; i < comparison->worst_count && i < request->worst; i++) {
        const struct compare_off *off = &comparison->worst[i];
        const struct trace_span *predicted = &off->predicted, *measured = &off->measured;
        char name[SPAN_TEXT_BYTES];
        json_out_object_begin(json, NULL, true);
        json_out_u64(json, "number", measured->number);
        json_out_string(json, "operation", span_text(pair->measured, measured, name));
        json_out_string(json, "stream", pair->measured->streams[measured->stream].name);
        json_out_u64(json, "minibatch", measured->minibatch);
        json_out_double(json, "predicted_s", predicted->end_s - predicted->start_s);
        json_out_double(json, "measured_s", measured->end_s - measured->start_s);
        json_out_double(json, "difference_s", off->difference_s);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    return cli_report_end(cli, json, err);
}

/* --- the verb -------------------------------------------------------------------------------- */

static enum status judge(const struct compare_request *request, const struct compare_result *comparison,
                         struct error *err)
{
    if (!request->max_error_text) return STATUS_OK;
    char error[CLI_PERCENT_BYTES], most[CLI_PERCENT_BYTES];
    if (!comparison->throughput_error_known)
        return error_set(err, STATUS_CHECK, "the throughput error is not known: nothing was "
                         "trained in the measured run");
    if (fabs(comparison->throughput_error) <= request->max_error) return STATUS_OK;
    return error_set(err, STATUS_CHECK, "the throughput error %s is larger than %s",
                     cli_signed_percent(comparison->throughput_error, error),
                     cli_percent(request->max_error, most));
}

static enum status compare_files(const struct compare_request *request, struct pair *pair, struct error *err)
{
    const char *const paths[] = {request->predicted_path, request->measured_path};
    for (size_t i = 0; i < ARRAY_COUNT(paths); i++)
        TRY(trace_reader_open(paths[i], NULL, &pair->readers[i], err));
    pair->predicted = trace_reader_head(pair->readers[0]);
    pair->measured = trace_reader_head(pair->readers[1]);
    return compare_readers(pair->readers[0], pair->readers[1], &pair->comparison, err);
}

enum status verb_compare(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct compare_request request = {.worst = 5};
    const struct option_spec specs[] = {
        OPTION_STRING("max-error", 0, "PERCENT", &request.max_error_text,
                      "exit with 1 if throughput is off by more, such as 10%"),
        OPTION_U64("worst", 0, "N", 0, COMPARE_WORST_MAX, &request.worst,
                   "number of worst-predicted operations to list (default 5)"),
        OPTION_OUTPUT("plot", 0, "FILE", FILE_KIND_PICTURE, &request.plot,
                      "draw predicted above measured operations: NAME.svg or NAME.png"),
        CLI_ANSWER_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 2, 2),
        .examples =
            (const char *const[]){"spillway compare predicted.json.gz measured.json.gz",
                                  "spillway compare predicted.json.gz measured.json.gz "
                                  "--max-error 10% --json", NULL},
        .details = "PREDICTED is the trace of 'spillway simulate --trace', "
                   "MEASURED the trace of 'spillway run --trace', "
                   "both of the same plan.",
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    request.predicted_path = options.operands[0];
    request.measured_path = options.operands[1];
    if (request.max_error_text) TRY(cli_ratio(request.max_error_text, "max-error", &request.max_error, err));

    struct pair pair = {0};
    enum status status = compare_files(&request, &pair, err);
    if (status == STATUS_OK && request.plot)
        status = plot_timeline_readers(pair.readers[0], pair.readers[1], request.plot, &(struct plot_options){0}, err);
    if (status == STATUS_OK) {
        warn_load(cli, &pair);
        cli_document_readers(cli, pair.readers[0], pair.readers[1]);
        status = cli->json ? print_json(cli, &request, &pair, err)
                           : print_text(cli, &request, &pair, err);
    }
    if (status == STATUS_OK) status = judge(&request, &pair.comparison, err);
    compare_release(&pair.comparison);
    for (size_t i = 0; i < ARRAY_COUNT(pair.readers); i++) trace_reader_close(pair.readers[i]);
    return status;
}
