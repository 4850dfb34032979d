/*
 * `plot timeline`, `plot memory` and `plot throughput`, drawn by gnuplot (plots/plot.h). The first two take one trace,
 * or a prediction and a measurement in any order. `throughput` reads `plan --policy all --json`; measured traces
 * become additional bars, by policy.
 */
#include <string.h>

#include "base/json/json_in.h"
#include "base/size.h"
#include "base/try.h"
#include "cli/common/cli.h"
#include "plots/plot.h"
#include "traces/trace_reader.h"

enum { WIDTH_MIN_PX = 600, WIDTH_MAX_PX = 20000 };

struct plot_request {
    const char *output;
    struct plot_options plot;
    uint64_t width_px;
};

/* Rows of all three. */
#define PLOT_OPTIONS(r)                                                                           \
    OPTION_OUTPUT("output", 'o', "FILE", FILE_KIND_PICTURE, &(r)->output,                        \
                  "picture to draw (required): NAME.svg or NAME.png"),                    \
        OPTION_STRING("title", 0, "TEXT", &(r)->plot.title, "title of the picture"),  \
        OPTION_U64("width", 0, "PIXELS", WIDTH_MIN_PX, WIDTH_MAX_PX, &(r)->width_px,              \
                   "width of the picture (default 1200)"),                                                     \
        OPTION_FLAG("keep-script", 0, &(r)->plot.keep_script,                                     \
                    "keep gnuplot's script, with its data, next to the picture")

#define PLOT_WINDOW(r)                                                                            \
    OPTION_QUANTITY("from", 0, "TIME", DIMENSION_SECONDS, &(r)->plot.from_s,                      \
                    "start of the time axis (default 0s)"),                             \
        OPTION_QUANTITY("to", 0, "TIME", DIMENSION_SECONDS, &(r)->plot.to_s,                      \
                        "end of the time axis (default: the end of the run)")

static enum status check_request(struct plot_request *request, struct error *err)
{
    if (!request->output)
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--output' is missing: where to write NAME.svg or NAME.png");
    request->plot.width_px = (uint32_t)request->width_px;
    return STATUS_OK;
}

static enum status report(struct cli *cli, const struct plot_request *request, struct error *err)
{
    if (cli->json) {
        struct json_out *json;
        TRY(cli_report_begin(cli, "plot", &json, err));
        json_out_string(json, "file", request->output);
        return cli_report_end(cli, json, err);
    }
    fprintf(cli->out, "drawn to %s\n", request->output);
    return STATUS_OK;
}

/* --- pictures of traces ---------------------------------------------------------------------- */

struct plot_trace_pair {
    struct trace_reader *readers[2];
    struct trace_reader *predicted, *measured; /* borrowed from readers; NULL: none */
};

static void pair_release(struct plot_trace_pair *pair)
{
    for (size_t i = 0; i < ARRAY_COUNT(pair->readers); i++) trace_reader_close(pair->readers[i]);
}

/* Opens the traces, of which only the part that is drawn is read. */
static enum status open_pair(const struct options *options, const struct plot_options *plot,
                             struct plot_trace_pair *pair, struct error *err)
{
    const struct trace_part part = {.from_s = plot->from_s, .to_s = plot->to_s};
    for (size_t i = 0; i < options->operand_count; i++) {
        TRY(trace_reader_open(options->operands[i], &part, &pair->readers[i], err));
        const struct trace *trace = trace_reader_head(pair->readers[i]);
        struct trace_reader **place = trace->source == TRACE_PREDICTED ? &pair->predicted : &pair->measured;
        if (*place)
            return error_set(err, STATUS_BAD_INPUT,
                             "'%s' and '%s' are both %s (expected one prediction and one "
                             "measurement)", options->operands[0], options->operands[1],
                             trace->source == TRACE_PREDICTED ? "predictions" : "measurements");
        *place = pair->readers[i];
    }
    return STATUS_OK;
}

typedef enum status (*draw_traces)(struct trace_reader *predicted, struct trace_reader *measured,
                                   const char *path, const struct plot_options *options,
                                   struct error *err);

static enum status plot_traces(struct cli *cli, int argc, char **argv, draw_traces draw,
                               struct error *err)
{
    struct plot_request request = {0};
    const struct option_spec specs[] = {
        PLOT_OPTIONS(&request),
        PLOT_WINDOW(&request),
        CLI_FORCE_OPTION(cli),
        CLI_COMMON_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 1, 2),
        .details = "TRACE is the trace of 'spillway simulate --trace' or 'spillway run --trace'. With one of each, "
                   "the prediction is drawn above the measurement.",
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    struct plot_trace_pair pair = {0};
    enum status status = check_request(&request, err);
    if (status == STATUS_OK) status = open_pair(&options, &request.plot, &pair, err);
    if (status == STATUS_OK)
        status = draw(pair.predicted, pair.measured, request.output, &request.plot, err);
    if (status == STATUS_OK) status = report(cli, &request, err);
    pair_release(&pair);
    return status;
}

enum status verb_plot_timeline(struct cli *cli, int argc, char **argv, struct error *err)
{
    return plot_traces(cli, argc, argv, plot_timeline_readers, err);
}

enum status verb_plot_memory(struct cli *cli, int argc, char **argv, struct error *err)
{
    return plot_traces(cli, argc, argv, plot_memory_readers, err);
}

/* --- pictures of policies -------------------------------------------------------------------- */

struct policies {
    struct plot_policy rows[PLOT_POLICIES_MAX];
    uint32_t count;
    double lower_bound_s;
};

/* Skips keys that pictures do not need. */
static void pass_over(struct json_object *object, const char *const *keys)
{
    for (; *keys; keys++) json_take_any(object, *keys);
}

static enum status read_policy(const struct json_input *in, const json_t *array, size_t index,
                               struct policies *out, struct error *err)
{
    static const char *const others[] = {"estimated_makespan_s", "lower_bound_s", "gap",
                                         "samples_per_s", "compute_utilisation", "reason", "over_best", "runnable",
                                         "verdict", NULL};
    struct json_object object;
    struct plot_policy policy = {0};
    bool feasible = false;
    TRY(json_object_open_at(&object, in, array, index, "a policy", err));
    TRY(json_take_string(&object, "policy", JSON_REQUIRED, &policy.name, err));
    TRY(json_take_bool(&object, "feasible", JSON_REQUIRED, &feasible, err));
    enum json_need need = feasible ? JSON_REQUIRED : JSON_OPTIONAL;
    TRY(json_take_double(&object, "makespan_s", need, 0, 1e15, &policy.makespan_s, err));
    TRY(json_take_double(&object, "tokens_per_s", need, 0, 1e18, &policy.tokens_per_s, err));
    pass_over(&object, others);
    TRY(json_object_close(&object, err));
    if (!feasible) return STATUS_OK;
    if (!(policy.makespan_s > 0))
        return json_fail_key(in, object.value, "makespan_s", err,
                             "'makespan_s' is 0 (expected more than 0)");
    if (out->count == PLOT_POLICIES_MAX)
        return error_set(err, STATUS_LIMIT, "too many policies (limit is %d)", PLOT_POLICIES_MAX);
    out->rows[out->count++] = policy;
    return STATUS_OK;
}

static enum status read_policies(const struct json_input *in, struct policies *out,
                                 struct error *err)
{
    static const char *const schemas[] = {"spillway-plan-1"};
    struct json_object object;
    const json_t *array = NULL;
    size_t schema = 0;
    TRY(json_object_open(&object, in, json_input_root(in), "a report of 'spillway plan --json'", err));
    json_object_ignore_others(&object);
    TRY(json_take_choice(&object, "schema", JSON_REQUIRED, schemas, ARRAY_COUNT(schemas), &schema, err));
    TRY(json_take_array(&object, "policies", JSON_OPTIONAL, &array, err));
    TRY(json_take_double(&object, "lower_bound_s", JSON_OPTIONAL, 0, 1e15, &out->lower_bound_s, err));
    if (!array)
        return json_fail_key(in, object.value, NULL, err,
                             "this report is of one policy (made for '--policy' and one name)");
    for (size_t i = 0; i < json_array_size(array); i++)
        TRY(read_policy(in, array, i, out, err));
    return STATUS_OK;
}

/* Reads and checks a trace; its spans and levels are not kept. */
static enum status read_head(const char *path, struct trace *out, struct error *err)
{
    struct trace_reader *reader;
    uint64_t count;
    TRY(trace_reader_open(path, NULL, &reader, err));
    enum status status = trace_reader_finish(reader, &count, err);
    if (status == STATUS_OK) trace_reader_take_head(reader, out);
    trace_reader_close(reader);
    return status;
}

static enum status add_measured(const char *path, struct policies *policies, struct error *err)
{
    struct trace trace = {0};
    enum status status = read_head(path, &trace, err);
    if (status == STATUS_OK && trace.source != TRACE_MEASURED)
        status = error_set(err, STATUS_BAD_INPUT, "%s: this trace is a prediction (expected a "
                           "measurement)", path);
    if (status == STATUS_OK && (!trace.complete || !(trace.makespan_s > 0)))
        status = error_set(err, STATUS_BAD_INPUT, "%s: this run stopped before its end", path);
    uint32_t row = 0;
    while (status == STATUS_OK && row < policies->count &&
           strcmp(policies->rows[row].name, trace.policy) != 0)
        row++;
    if (status == STATUS_OK && row == policies->count)
        status = error_set(err, STATUS_BAD_INPUT, "%s: policy '%s' is not in the report", path,
                           trace.policy);
    if (status == STATUS_OK) {
        policies->rows[row].measured = true;
        policies->rows[row].measured_makespan_s = trace.makespan_s;
        policies->rows[row].measured_tokens_per_s = trace_tokens_per_s(&trace);
    }
    trace_release(&trace);
    return status;
}

enum status verb_plot_throughput(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct plot_request request = {0};
    struct option_list measured = {0};
    const struct option_spec specs[] = {
        PLOT_OPTIONS(&request),
        OPTION_LIST("measured", 'm', "TRACE", &measured,
                    "measured trace to show as an additional bar"),
        CLI_FORCE_OPTION(cli),
        CLI_COMMON_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 1, 1),
        .examples =
            (const char *const[]){
                "spillway plan jobs.json --policy all --json > all.json",
                "spillway plot throughput all.json -m measured.json.gz -o policies.svg", NULL},
        .details = "ALL.json is the output of 'spillway plan --policy all --json'.",
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    struct json_input *in = NULL;
    struct policies policies = {0};
    enum status status = check_request(&request, err);
    if (status == STATUS_OK) status = json_input_read(options.operands[0], &in, err);
    if (status == STATUS_OK) status = read_policies(in, &policies, err);
    for (size_t i = 0; i < measured.count && status == STATUS_OK; i++)
        status = add_measured(measured.items[i], &policies, err);
    if (status == STATUS_OK)
        status = plot_throughput(policies.rows, policies.count, policies.lower_bound_s,
                                 request.output, &request.plot, err);
    if (status == STATUS_OK) status = report(cli, &request, err);
    json_input_destroy(in);
    return status;
}
