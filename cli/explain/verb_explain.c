/*
 * `explain`: where a run's time goes, gains from a larger machine, causes of a prediction's error.
 *
 * With only a plan, the simulated run is explained; with its measured trace, that run, compared with the simulated
 * one; gains always come from the simulator. With only a trace, also another program's, its path is found from times.
 */
#include <stdlib.h>
#include <string.h>

#include "base/files/file_in.h"
#include "base/size.h"
#include "base/try.h"
#include "cli/common/cli.h"
#include "cli/document/cli_document.h"
#include "cli/explain/cli_explain_history.h"
#include "cli/explain/cli_explain_report.h"
#include "cli/explain/plan_path.h"
#include "cli/explain/trace_path.h"
#include "cli/process/cli_load.h"
#include "cli/ways/cli_predict.h"
#include "planner/files/plan_io.h"
#include "traces/exchange/chrome_read.h"

struct explain_request {
    const char *plan_path, *trace_path; /* trace_path may be NULL */
    const char *more_text;
    double more;
    bool no_purchases, no_memory;
};

/* Finds all gains, with memory: `out` has room for one more than explain_purchases() fills in. */
static enum status buy(struct cli *cli, const struct explain_request *request, const struct plan *plan,
                       struct arena *arena, struct explain_purchase *out, struct cli_explain_report *report,
                       struct error *err)
{
    uint32_t count = 0;
    if (request->no_purchases) return STATUS_OK;
    TRY(explain_purchases(plan, request->more, arena, out, &count, err));
    if (!request->no_memory) TRY(explain_memory_purchase(request->plan_path, request->more, &out[count],
                                                         &report->memory_known, err));
    if (report->memory_known)
        count++;
    else if (!request->no_memory)
        cli_warn(cli, "the gain of more memory is unknown: this plan cannot be made again");
    explain_purchases_sort(out, count);
    report->purchases = out;
    report->purchase_count = count;
    return STATUS_OK;
}

/* Refuses a prediction before anything is simulated. Errors: as trace_reader_open(); STATUS_BAD_INPUT. */
static enum status check_measured(const char *path, struct error *err)
{
    struct trace_reader *reader;
    TRY(trace_reader_open(path, NULL, &reader, err));
    bool measured = trace_reader_head(reader)->source == TRACE_MEASURED;
    trace_reader_close(reader);
    if (measured) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT,
                     "%s: this trace is a prediction (expected a measurement; the prediction is made from "
                     "the plan)",
                     path);
}

/* What is explained. */
struct explain_case {
    struct plan plan;
    struct cli_prediction prediction; /* released early if there is a measured trace and no page with both */
    struct explain_plan_path *spans;  /* of the prediction, in place of its trace's; NULL: the trace has them */
    struct trace measured;            /* without spans: there is none */
    struct explain_times promised;    /* times of the prediction, if there is a measured trace */
    double predicted_s;
    struct arena arena;               /* of these times */
};

static enum status find_path(const struct plan *plan, const struct trace *trace, struct arena *arena,
                             struct explain_path *out, struct error *err)
{
    struct arena scratch = {0};
    struct explain_times times;
    struct explain_schedule schedule;
    enum status status = explain_times_read(plan, trace, &scratch, &times, err);
    if (status == STATUS_OK) status = explain_schedule_run(plan, &times, &scratch, &schedule, err);
    if (status == STATUS_OK) status = explain_path_find(trace, &times, &schedule, arena, out, err);
    arena_release(&scratch);
    return status;
}

static enum status explain(struct cli *cli, const struct explain_request *request, const struct explain_case *of,
                           struct error *err)
{
    struct arena arena = {0};
    struct explain_path path;
    struct explain_causes causes;
    struct explain_late_members late;
    struct explain_purchase purchases[EXPLAIN_PURCHASES_MAX + 1];
    const struct plan *plan = &of->plan;
    const struct trace *predicted = &of->prediction.trace, *measured = request->trace_path ? &of->measured : NULL;
    struct cli_explain_report report = {.plan_path = request->plan_path,
                                        .trace_path = request->trace_path,
                                        .plan = plan,
                                        .trace = measured ? measured : predicted,
                                        .path = &path,
                                        .more = request->more};
    enum status status = of->spans ? explain_plan_path_find(of->spans, predicted, &arena, &path, err)
                                   : find_path(plan, report.trace, &arena, &path, err);
    if (status == STATUS_OK && measured) {
        status = explain_causes_find(plan, &of->promised, of->predicted_s, measured, &causes, err);
        report.causes = &causes;
        report.late = &late;
    }
    if (status == STATUS_OK && measured) status = explain_late_members_find(plan, measured, &arena, &late, err);
    if (status != STATUS_OK && measured) error_add(err, "%s", request->trace_path);
    if (status == STATUS_OK) status = buy(cli, request, plan, &arena, purchases, &report, err);
    if (status == STATUS_OK) {
        cli_document_traces(cli, predicted, measured);
        cli_document_simulated(cli, &plan->hardware);
        status = cli->json ? cli_explain_json(cli, &report, err) : cli_explain_text(cli, &report, err);
    }
    arena_release(&arena);
    return status;
}

/* --- a trace without a plan ----------------------------------------------------------------------- */

/* The limit of pipes. */
static const size_t text_bytes_max = (size_t)1 << 30;

enum explain_kind { EXPLAIN_OTHER, EXPLAIN_OURS, EXPLAIN_FOREIGN };

/* Finds the kind of a file that was opened; reads as far as it takes. */
static enum status find_kind(struct file_in *file, enum explain_kind *out, struct error *err)
{
    enum { HEAD_BYTES = 4096 };
    char head[HEAD_BYTES + 1];
    size_t length = 0, got = 1;
    bool foreign = false;
    while (length < HEAD_BYTES && got > 0) {
        TRY(file_in_read(file, head + length, HEAD_BYTES - length, &got, err));
        length += got;
    }
    head[length] = '\0';
    bool ours = strstr(head, "\"spillway_trace\"") != NULL;
    TRY(file_in_seek(file, 0, err));
    if (!ours) TRY(chrome_recognise(file, &foreign, err));
    *out = ours ? EXPLAIN_OURS : foreign ? EXPLAIN_FOREIGN : EXPLAIN_OTHER;
    return STATUS_OK;
}

/* A trace that is being explained, zeroed before it is opened. */
struct explain_source {
    enum explain_kind kind;
    char *text;         /* of a pipe; NULL: of a file */
    struct trace trace; /* of another program */
    struct trace_reader *reader;
};

/* Opens a trace from a pipe, whose text is held in memory. */
static enum status open_pipe(struct file_in *pipe, const char *path, struct explain_source *out, struct error *err)
{
    size_t length;
    struct file_in *file;
    TRY(file_in_rest(pipe, text_bytes_max, &out->text, &length, err));
    TRY(file_in_of_text(path, out->text, length, &file, err));
    enum status status = find_kind(file, &out->kind, err);
    file_in_close(file);
    if (status == STATUS_OK && out->kind == EXPLAIN_OURS)
        status = trace_reader_of_text(path, out->text, length, NULL, &out->reader, err);
    if (status == STATUS_OK && out->kind == EXPLAIN_FOREIGN)
        status = chrome_parse(path, out->text, length, &out->trace, err);
    return status;
}

/* Opens the file if it is a trace. The caller calls close_source() also after an error. */
static enum status open_source(const char *path, struct explain_source *out, struct error *err)
{
    struct file_in *file;
    TRY(file_in_open(path, &file, err));
    bool seeks = file_in_seeks(file);
    enum status status = seeks ? find_kind(file, &out->kind, err) : open_pipe(file, path, out, err);
    file_in_close(file);
    if (status == STATUS_OK && seeks && out->kind == EXPLAIN_OURS)
        status = trace_reader_open(path, NULL, &out->reader, err);
    if (status == STATUS_OK && seeks && out->kind == EXPLAIN_FOREIGN) status = chrome_read(path, &out->trace, err);
    if (status == STATUS_OK && out->kind == EXPLAIN_FOREIGN) status = trace_reader_of(&out->trace, &out->reader, err);
    return status;
}

static void close_source(struct explain_source *source)
{
    trace_reader_close(source->reader);
    trace_release(&source->trace);
    free(source->text);
}

static enum status report_trace(struct cli *cli, const char *path, struct explain_source *source, struct error *err)
{
    struct arena arena = {0};
    struct explain_path found;
    struct trace_reader *reader = source->reader;
    const struct trace *trace = trace_reader_head(reader);
    cli_load_warn_late(cli, trace->late);
    bool foreign = source->kind == EXPLAIN_FOREIGN, measured = trace->source == TRACE_MEASURED;
    struct cli_explain_report report = {.trace_path = path, .trace = trace, .path = &found, .foreign = foreign};
    enum status status = explain_trace_path(reader, path, EXPLAIN_WINDOW_SPANS, &arena, &found, err);
    if (status == STATUS_OK) status = trace_reader_part(reader, NULL, err);
    if (status == STATUS_OK && !foreign) cli_document_readers(cli, measured ? NULL : reader, measured ? reader : NULL);
    if (status == STATUS_OK) status = (cli->json ? cli_explain_json : cli_explain_text)(cli, &report, err);
    arena_release(&arena);
    return status;
}

/* Explains the file if it is a trace; *some says so. */
static enum status explain_trace(struct cli *cli, const char *path, bool *some, struct error *err)
{
    struct explain_source source = {.kind = EXPLAIN_OTHER};
    enum status status = open_source(path, &source, err);
    *some = source.kind != EXPLAIN_OTHER;
    if (status == STATUS_OK && *some) status = report_trace(cli, path, &source, err);
    close_source(&source);
    return status;
}

/* --- a plan --------------------------------------------------------------------------------------- */

/* Takes the times of the prediction, releases its spans if no page needs them, and reads the measured trace. */
static enum status read_measured(const struct cli *cli, const char *path, struct explain_case *of, struct error *err)
{
    of->predicted_s = of->prediction.trace.makespan_s;
    TRY(explain_times_read(&of->plan, &of->prediction.trace, &of->arena, &of->promised, err));
    if (!cli->document) cli_prediction_release(&of->prediction);
    return trace_read(path, &of->measured, err);
}

/* Predicts the run. Spans are kept where causes or a page need them. */
static enum status predict(const struct cli *cli, const struct explain_request *request, struct explain_case *of,
                           struct error *err)
{
    struct cli_predict_options how = {.spans = request->trace_path || cli->document};
    if (!how.spans) {
        TRY(explain_plan_path_create(&of->plan, EXPLAIN_PLAN_WINDOW, &of->spans, err));
        how.on_span = explain_plan_path_span;
        how.on_span_context = of->spans;
    }
    TRY(cli_predict(&of->plan, NULL, &how, &of->prediction, err));
    of->prediction.trace.plan_fingerprint = plan_fingerprint(&of->plan);
    return STATUS_OK;
}

static enum status explain_plan(struct cli *cli, const struct explain_request *request, struct error *err)
{
    struct explain_case of = {.predicted_s = 0};
    enum status status = plan_read(request->plan_path, &of.plan, err);
    if (status == STATUS_OK && request->trace_path) status = check_measured(request->trace_path, err);
    if (status == STATUS_OK) status = predict(cli, request, &of, err);
    if (status == STATUS_OK && request->trace_path) status = read_measured(cli, request->trace_path, &of, err);
    if (status == STATUS_OK) cli_load_warn_late(cli, of.measured.late);
    if (status == STATUS_OK) status = explain(cli, request, &of, err);
    explain_plan_path_destroy(of.spans);
    cli_prediction_release(&of.prediction);
    trace_release(&of.measured);
    plan_release(&of.plan);
    arena_release(&of.arena);
    return status;
}

static enum status explain_row(struct cli *cli, const struct explain_request *request, struct error *err)
{
    struct arena arena = {0};
    struct explain_request found = *request;
    if (request->trace_path)
        return error_set(err, STATUS_BAD_INPUT, "'%.40s' is a run with its trace (unexpected '%.80s')",
                         request->plan_path, request->trace_path);
    enum status status = cli_explain_row(request->plan_path, &arena, &found.plan_path, &found.trace_path, err);
    if (status == STATUS_OK) status = explain_plan(cli, &found, err);
    arena_release(&arena);
    return status;
}

enum status verb_explain(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct explain_request request = {.more = 0.1};
    const struct option_spec specs[] = {
        OPTION_STRING("more", 0, "PERCENT", &request.more_text, "increase of each resource in the what-if table "
                                                                "(default 10%)"),
        OPTION_FLAG("no-purchases", 0, &request.no_purchases, "do not simulate larger resources"),
        OPTION_FLAG("no-memory", 0, &request.no_memory, "do not plan again with more memory"),
        CLI_ANSWER_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 1, 2),
        .examples = (const char *const[]){"spillway explain plan.json", "spillway explain plan.json measured.json.gz",
                                          "spillway explain plan.json --more 50% --report why.html",
                                          "spillway explain trace.json.gz", "spillway explain history:last", NULL},
        .details = "The critical path is the operation that ends last, the operation it waited for, and so on: their "
                   "times add up to the makespan. A derivative is the relative change of throughput by the relative "
                   "change of a value of the machine. TRACE is the trace of 'spillway run --trace' of this plan; "
                   "the report then says why the run was slower, by cause. Without a plan, a trace (ours, or a "
                   "Chrome trace such as PyTorch's profiler writes) gets a path by its times. history:ROW is a run "
                   "that 'spillway history' lists, history:last the latest, FILE.db:ROW a run in another history.",
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    request.plan_path = options.operands[0];
    request.trace_path = options.operand_count > 1 ? options.operands[1] : NULL;
    if (request.more_text) TRY(cli_ratio(request.more_text, "more", &request.more, err));
    if (!(request.more > 0 && request.more <= 10))
        return error_set(err, STATUS_BAD_INPUT, "option '--more' is '%s' (expected more than 0%% and at most 1000%%)",
                         request.more_text);
    if (strcmp(request.plan_path, "-") == 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "the plan must be a file, because it is read more than once (found '-')");

    if (cli_explain_is_row(request.plan_path)) return explain_row(cli, &request, err);
    bool alone = false;
    if (!request.trace_path) TRY(explain_trace(cli, request.plan_path, &alone, err));
    return alone ? STATUS_OK : explain_plan(cli, &request, err);
}
