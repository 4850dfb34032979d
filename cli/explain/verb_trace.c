/*
 * `trace show` and `trace export`.
 *
 * Viewers are slow beyond about 100 MB, which a day of training exceeds: `export` warns and names the option that
 * helps.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/size.h"
#include "base/try.h"
#include "cli/common/cli.h"
#include "cli/common/cli_trace.h"
#include "traces/exchange/chrome.h"
#include "traces/trace_reader.h"
#include "traces/trace_writer.h"

static const off_t large_bytes = 100 * 1000 * 1000;

static const char *source_name(const struct trace *trace)
{
    return trace_source_names[trace->source];
}

/* --- show ------------------------------------------------------------------------------------ */

static enum status show_text(struct cli *cli, const char *path, const struct trace *trace, uint64_t span_count,
                             struct error *err)
{
    FILE *out = cli->out;
    char text[QUANTITY_TEXT_BYTES], count[QUANTITY_TEXT_BYTES];
    fprintf(out, "%s: %s%s, plan by %s on '%s'\n", path, source_name(trace),
            trace->complete ? "" : " (stopped before its end)", trace->policy, trace->hardware);
    fprintf(out, "makespan %s, %s operations, plan %016" PRIx64 "\n\n",
            quantity_text(trace->makespan_s, DIMENSION_SECONDS, text),
            quantity_text((double)span_count, DIMENSION_COUNT_OF, count),
            trace->plan_fingerprint);
    TRY(cli_trace_jobs(out, trace, err));
    fputc('\n', out);
    TRY(cli_trace_places(out, trace, err));
    cli_next(cli, (const char *const[]){"trace", "export", path, "-o", "timeline.json.gz", NULL});
    return STATUS_OK;
}

static enum status show_json(struct cli *cli, const char *path, const struct trace *trace, uint64_t span_count,
                             struct error *err)
{
    struct json_out *json;
    TRY(cli_report_begin(cli, "trace-show", &json, err));
    json_out_string(json, "file", path);
    json_out_string(json, "source", source_name(trace));
    json_out_bool(json, "complete", trace->complete);
    json_out_string(json, "hardware", trace->hardware);
    json_out_string(json, "policy", trace->policy);
    cli_fingerprint(json, trace->plan_fingerprint);
    json_out_double(json, "makespan_s", trace->makespan_s);
    json_out_u64(json, "operations", span_count);
    cli_trace_jobs_json(json, trace);
    trace_writer_places(trace, json);
    return cli_report_end(cli, json, err);
}

enum status verb_trace_show(struct cli *cli, int argc, char **argv, struct error *err)
{
    const struct option_spec specs[] = {CLI_COMMON_OPTIONS(cli)};
    struct options options = {
        OPTIONS_TABLE(specs, 1, 1),
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    const char *path = options.operands[0];
    struct trace_reader *reader = NULL;
    uint64_t spans = 0, levels = 0;
    enum status status = trace_reader_open(path, NULL, &reader, err);
    if (status == STATUS_OK && !trace_reader_counts(reader, &spans, &levels))
        status = trace_reader_finish(reader, &spans, err);
    if (status == STATUS_OK)
        status = (cli->json ? show_json : show_text)(cli, path, trace_reader_head(reader), spans, err);
    trace_reader_close(reader);
    return status;
}

/* --- export ---------------------------------------------------------------------------------- */

static enum status report_export(struct cli *cli, const char *path, size_t trace_count,
                                 struct error *err)
{
    struct stat written;
    off_t bytes = stat(path, &written) == 0 ? written.st_size : 0;
    if (bytes > large_bytes)
        cli_warn(cli, "'%s' has %lld MB and viewers are slow past 100 MB: use --minibatches N",
                 path, (long long)(bytes / 1000000));
    if (cli->json) {
        struct json_out *json;
        TRY(cli_report_begin(cli, "trace-export", &json, err));
        json_out_string(json, "file", path);
        json_out_u64(json, "file_bytes", (uint64_t)bytes);
        json_out_u64(json, "trace_count", trace_count);
        return cli_report_end(cli, json, err);
    }
    char text[QUANTITY_TEXT_BYTES];
    fprintf(cli->out, "written to %s (%s)\n", path,
            quantity_text((double)bytes, DIMENSION_BYTES, text));
    if (!cli->quiet) fputs("\nnext: open it in ui.perfetto.dev or chrome://tracing\n", cli->out);
    return STATUS_OK;
}

enum status verb_trace_export(struct cli *cli, int argc, char **argv, struct error *err)
{
    const char *output = NULL;
    uint64_t minibatches = 0;
    const struct option_spec specs[] = {
        OPTION_OUTPUT("output", 'o', "FILE", FILE_KIND_TIMELINE, &output,
                      "timeline to write (required), compressed if it ends in .gz"),
        OPTION_U64("minibatches", 'n', "N", 1, UINT32_MAX, &minibatches,
                   "only the first N minibatches of each job"),
        CLI_FORCE_OPTION(cli),
        CLI_COMMON_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 1, CHROME_TRACES_MAX),
        .examples =
            (const char *const[]){
                "spillway trace export predicted.json.gz measured.json.gz -o both.json.gz", NULL},
        .details = "Takes one trace, or a prediction and its measurement to see side by side: a process per device, "
                   "a track per stream, a counter of memory per place.",
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    if (!output)
        return error_set(err, STATUS_BAD_INPUT, "option '--output' is missing: where to write");
    TRY(cli_refuse_dash("output", output, err));
    struct trace_reader *readers[CHROME_TRACES_MAX] = {NULL};
    const struct trace_part part = {.minibatches = minibatches};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < options.operand_count && status == STATUS_OK; i++)
        status = trace_reader_open(options.operands[i], &part, &readers[i], err);
    if (status == STATUS_OK)
        status = chrome_write(readers, (uint32_t)options.operand_count, minibatches, output, err);
    if (status == STATUS_OK) status = report_export(cli, output, options.operand_count, err);
    for (size_t i = 0; i < CHROME_TRACES_MAX; i++) trace_reader_close(readers[i]);
    return status;
}
