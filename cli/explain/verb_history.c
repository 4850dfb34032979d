/* `history`: past predictions and measurements, and errors. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "base/text/quantity.h"
#include "base/try.h"
#include "cli/common/cli_table.h"
#include "cli/history/cli_history.h"
#include "cli/history/history_error.h"

struct history_request {
    const char *path; /* NULL: this user's */
    struct history_filter filter;
    uint64_t last;
    size_t verb, by;  /* in the options' choices */
};

struct history_answer {
    const char *path;
    const struct history_record *records;
    const struct history_error *errors;
    size_t record_count, error_count;
};

static const char *const verbs[] = {"all", "plan", "simulate", "run", NULL};
enum { LAST_DEFAULT = 20 };

/* --- text ------------------------------------------------------------------------------------ */

static void seconds_cell(struct cli_table *table, double seconds)
{
    char text[QUANTITY_TEXT_BYTES];
    cli_table_cell(table, "%s", seconds > 0 ? quantity_text(seconds, DIMENSION_SECONDS, text) : "-");
}

static enum status print_records(FILE *out, const struct history_answer *answer, struct error *err)
{
    struct cli_table table;
    char text[CLI_PERCENT_BYTES];
    cli_table_begin(&table, (const char *[]){"MADE", "", "FILE", "POLICY", "ON", ">PREDICTED", ">MEASURED", ">ERROR",
                                             NULL});
    for (size_t r = 0; r < answer->record_count; r++) {
        const struct history_record *record = &answer->records[r];
        double error;
        cli_table_cell(&table, "%.10s %.5s", record->made_at, record->made_at + 11);
        cli_table_cell(&table, "%s", record->verb);
        cli_table_cell(&table, "%s", record->file ? cli_network_label(record->file) : "-");
        cli_table_cell(&table, "%s", record->policy ? record->policy : "-");
        cli_table_cell(&table, "%s", record->hardware ? record->hardware : "-");
        seconds_cell(&table, record->predicted_s);
        seconds_cell(&table, record->measured_s);
        if (history_error_of(record, &error)) cli_table_cell(&table, "%s", cli_signed_percent(error, text));
        else cli_table_cell(&table, "%s", record->measured_s > 0 ? "incomplete" : "");
    }
    return cli_table_end(&table, out, err);
}

static enum status print_errors(FILE *out, const struct history_answer *answer, const char *by, struct error *err)
{
    struct cli_table table;
    char text[CLI_PERCENT_BYTES], heading[16];
    snprintf(heading, sizeof heading, "%s", by);
    for (char *c = heading; *c; c++)
        if (*c >= 'a' && *c <= 'z') *c = (char)(*c - 'a' + 'A');
    cli_table_begin(&table, (const char *[]){heading, ">RUNS", ">MEAN ERROR", ">MEAN ABSOLUTE", ">MEDIAN ABSOLUTE",
                                             ">WORST", NULL});
    for (size_t g = 0; g < answer->error_count; g++) {
        const struct history_error *error = &answer->errors[g];
        cli_table_cell(&table, "%s", error->group);
        cli_table_cell(&table, "%zu", error->runs);
        cli_table_cell(&table, "%s", cli_signed_percent(error->mean, text));
        cli_table_cell(&table, "%s", cli_percent(error->mean_absolute, text));
        cli_table_cell(&table, "%s", cli_percent(error->median_absolute, text));
        cli_table_cell(&table, "%s", cli_signed_percent(error->worst, text));
    }
    return cli_table_end(&table, out, err);
}

static enum status print_text(struct cli *cli, const struct history_request *request,
                              const struct history_answer *answer, struct error *err)
{
    FILE *out = cli->out;
    if (request->by < HISTORY_BY_COUNT) {
        if (answer->error_count == 0) fputs("it has no complete run\n", out);
        return print_errors(out, answer, history_by_names[request->by], err);
    }
    const struct history_filter *filter = &request->filter;
    bool any = !filter->verb && !filter->policy && !filter->hardware && !filter->since;
    if (answer->record_count == 0) fputs(any ? "it is empty\n" : "it has no such row\n", out);
    TRY(print_records(out, answer, err));
    if (answer->error_count == 0) return STATUS_OK;
    char mean[CLI_PERCENT_BYTES], absolute[CLI_PERCENT_BYTES];
    const struct history_error *all = &answer->errors[answer->error_count - 1];
    fprintf(out, "\n%zu complete run%s: predicted makespans are %s off, %s on average\n", all->runs,
            all->runs == 1 ? "" : "s", cli_percent(all->mean_absolute, absolute), cli_signed_percent(all->mean, mean));
    return STATUS_OK;
}

/* --- JSON ------------------------------------------------------------------------------------ */

static void text_json(struct json_out *json, const char *key, const char *text)
{
    if (text) json_out_string(json, key, text);
}

static void number_json(struct json_out *json, const char *key, double value)
{
    if (value > 0) json_out_double(json, key, value);
}

static void record_json(struct json_out *json, const struct history_record *record)
{
    double error;
    json_out_object_begin(json, NULL, true);
    json_out_u64(json, "id", (uint64_t)record->id);
    text_json(json, "made_at", record->made_at);
    text_json(json, "verb", record->verb);
    text_json(json, "version", record->version);
    text_json(json, "command", record->command);
    text_json(json, "file", record->file);
    text_json(json, "plan_fingerprint", record->fingerprint);
    text_json(json, "policy", record->policy);
    text_json(json, "networks", record->networks);
    text_json(json, "hardware", record->hardware);
    text_json(json, "measured_on", record->measured_on);
    json_out_u64(json, "jobs", (uint64_t)record->jobs);
    json_out_u64(json, "devices", (uint64_t)record->devices);
    number_json(json, "predicted_s", record->predicted_s);
    number_json(json, "lower_bound_s", record->lower_bound_s);
    number_json(json, "predicted_tokens_per_s", record->predicted_tokens_per_s);
    number_json(json, "measured_s", record->measured_s);
    number_json(json, "measured_tokens_per_s", record->measured_tokens_per_s);
    if (record->measured_s > 0) json_out_bool(json, "complete", record->complete != 0);
    if (history_error_of(record, &error)) json_out_double(json, "error", error);
    json_out_object_end(json);
}

static enum status print_json(struct cli *cli, const struct history_request *request,
                              const struct history_answer *answer, struct error *err)
{
    struct json_out *json;
    TRY(cli_report_begin(cli, "history", &json, err));
    json_out_string(json, "history_file", answer->path);
    if (request->by < HISTORY_BY_COUNT) {
        json_out_string(json, "by", history_by_names[request->by]);
    } else {
        json_out_array_begin(json, "records", false);
        for (size_t r = 0; r < answer->record_count; r++) record_json(json, &answer->records[r]);
        json_out_array_end(json);
    }
    json_out_array_begin(json, "errors", false);
    for (size_t g = 0; g < answer->error_count; g++) {
        const struct history_error *error = &answer->errors[g];
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "group", error->group);
        json_out_u64(json, "runs", error->runs);
        json_out_double(json, "mean", error->mean);
        json_out_double(json, "mean_absolute", error->mean_absolute);
        json_out_double(json, "median_absolute", error->median_absolute);
        json_out_double(json, "worst", error->worst);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    return cli_report_end(cli, json, err);
}

/* --- the verb -------------------------------------------------------------------------------- */

static enum status look(struct cli *cli, const struct history_request *request, const char *path, struct error *err)
{
    struct arena arena = {0};
    struct history *history = NULL;
    struct history_record *records = NULL;
    struct history_error *errors = NULL;
    struct history_wrong wrong = {.rows = 0};
    struct history_answer answer = {.path = path};
    /* without rows, errors of all groups */
    enum history_by by = request->by < HISTORY_BY_COUNT ? (enum history_by)request->by : HISTORY_BY_DAY;
    enum status status = STATUS_OK;
    if (request->path || access(path, F_OK) == 0) status = history_open(path, false, &history, err);
    if (status == STATUS_OK && history)
        status = history_read(history, &request->filter, &arena, &records, &answer.record_count, &wrong, err);
    if (status == STATUS_OK)
        status = history_errors(records, answer.record_count, by, &arena, &errors, &answer.error_count, err);
    answer.records = records;
    answer.errors = errors;
    if (status == STATUS_OK)
        status = cli->json ? print_json(cli, request, &answer, err) : print_text(cli, request, &answer, err);
    if (status == STATUS_OK && wrong.rows > 0)
        status = error_set(err, STATUS_BAD_INPUT, "the history '%s': %" PRIu64 " row%s left out: %s", path, wrong.rows,
                           wrong.rows == 1 ? " is" : "s are", wrong.text);
    history_close(history);
    arena_release(&arena);
    return status;
}

/* Accepts a year, a month or a day, possibly with a time. */
static enum status check_since(const char *since, struct error *err)
{
    static const char shape[] = "dddd-dd-ddTdd:dd:ddZ";
    size_t length = since ? strlen(since) : 4;
    bool right = length == 4 || length == 7 || length == 10 || length == sizeof shape - 1;
    for (size_t i = 0; since && right && i < length; i++)
        right = shape[i] == 'd' ? since[i] >= '0' && since[i] <= '9' : since[i] == shape[i];
    if (right) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT,
                     "option '--since' is '%s' (expected a date such as 2026-11 or 2026-11-22, in UTC)", since);
}

enum status verb_history(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct history_request request = {.by = HISTORY_BY_COUNT};
    const struct option_spec specs[] = {
        OPTION_U64("last", 'n', "N", 1, UINT32_MAX, &request.last, "number of latest rows (default 20; with "
                                                                   "--error-by all)"),
        OPTION_CHOICE("verb", 0, "VERB", verbs, &request.verb, "only rows of this verb"),
        OPTION_STRING("policy", 'p', "NAME", &request.filter.policy, "only rows of this policy"),
        OPTION_STRING("hw", 0, "NAME", &request.filter.hardware, "only rows of the machine with this name"),
        OPTION_STRING("since", 0, "DATE", &request.filter.since, "only rows from this day (2026-11-22, UTC), month "
                                                                 "or year on"),
        OPTION_CHOICE("error-by", 0, "WHAT", history_by_names, &request.by,
                      "show the errors of predicted makespans of complete runs instead"),
        OPTION_STRING("file", 0, "FILE", &request.path, "history to read (default: $SPILLWAY_HISTORY or yours)"),
        CLI_COMMON_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 0, 0),
        .examples = (const char *const[]){"spillway history", "spillway history --verb run --error-by month",
                                          "spillway history --policy optimal --since 2026-11 --json", NULL},
        .details = "Each 'plan', 'simulate' and 'run' adds a row to an SQLite file: $SPILLWAY_HISTORY, else "
                   "spillway/history.db in $XDG_STATE_HOME or ~/.local/state. SPILLWAY_HISTORY= keeps none. An error "
                   "is predicted / measured - 1 of the makespan: above 0, the run was faster than predicted.",
    };
    bool some = true;
    char path[CLI_PATH_BYTES];
    CLI_PARSE(cli, &options, argc, argv, err);
    TRY(check_since(request.filter.since, err));
    if (!request.path) TRY(cli_history_path(path, &some, err));
    if (!some)
        return error_set(err, STATUS_BAD_INPUT, "no history is kept: SPILLWAY_HISTORY is empty, or neither "
                         "XDG_STATE_HOME nor HOME is set (name one with --file)");
    request.filter.verb = request.verb > 0 ? verbs[request.verb] : NULL;
    request.filter.last = (uint32_t)request.last;
    if (request.last == 0 && request.by == HISTORY_BY_COUNT) request.filter.last = LAST_DEFAULT;
    return look(cli, &request, request.path ? request.path : path, err);
}
