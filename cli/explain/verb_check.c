/*
 * `check FILE`: recognises a file and checks it.
 *
 * A version key "spillway_" and the kind selects the reader, the one of all other verbs. Some kinds have no such key:
 * a timeline has events, a network its type, a price list is a table named .csv, and a history a database.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file_kind.h"
#include "base/json/json_stream.h"
#include "base/size.h"
#include "base/text/quantity.h"
#include "base/try.h"
#include "cli/common/cli.h"
#include "cli/explain/cli_check_figure.h"
#include "cli/history/history.h"
#include "models/hardware/failures.h"
#include "models/hardware/hardware.h"
#include "models/hardware/prices.h"
#include "models/jobs/jobs_file.h"
#include "models/network/network.h"
#include "planner/chain/chain_io.h"
#include "planner/files/plan_io.h"
#include "planner/plan.h"
#include "planner/saturn/spase/spase_io.h"
#include "planner/solve/instance/instance_io.h"
#include "sim/serving/serving_io.h"
#include "sim/swarm/swarm_io.h"
#include "traces/exchange/chrome_read.h"
#include "traces/trace_reader.h"

enum { HOLDS_BYTES = 256 };

/* --- the readers: each writes a description of the file to `text` ------------------------------- */

static enum status check_jobs(const char *path, char *text, size_t bytes, struct error *err)
{
    struct job_set jobs = {0};
    enum status status = job_set_read(path, &jobs, err);
    if (status == STATUS_OK) snprintf(text, bytes, "%s", CLI_COUNT(jobs.count, "job"));
    job_set_release(&jobs);
    return status;
}

static enum status check_hardware(const char *path, char *text, size_t bytes, struct error *err)
{
    struct hardware hardware = {0};
    enum status status = hardware_read(path, &hardware, err);
    if (status == STATUS_OK) {
        status = hardware_check(&hardware, err);
        if (status != STATUS_OK) error_add(err, "%s", path);
    }
    if (status == STATUS_OK)
        snprintf(text, bytes, "'%s', %s", hardware.name, CLI_COUNT(hardware.device_count, "device"));
    hardware_release(&hardware);
    return status;
}

static enum status check_plan(const char *path, char *text, size_t bytes, struct error *err)
{
    struct plan plan = {0};
    enum status status = plan_read(path, &plan, err);
    if (status == STATUS_OK) snprintf(text, bytes, "policy %s, for '%s'", plan.policy, plan.hardware.name);
    plan_release(&plan);
    return status;
}

static enum status check_trace(const char *path, char *text, size_t bytes, struct error *err)
{
    struct trace_reader *reader = NULL;
    uint64_t spans = 0;
    enum status status = trace_reader_open(path, NULL, &reader, err);
    if (status == STATUS_OK) status = trace_reader_finish(reader, &spans, err);
    if (status == STATUS_OK)
        snprintf(text, bytes, "%s, %s on %s",
                 trace_reader_head(reader)->source == TRACE_PREDICTED ? "predicted" : "measured",
                 CLI_COUNT(spans, "operation"), CLI_COUNT(trace_reader_head(reader)->stream_count, "stream"));
    trace_reader_close(reader);
    return status;
}

/* Checks a timeline, which does not say whether it was measured. */
static enum status check_chrome(const char *path, char *text, size_t bytes, struct error *err)
{
    struct trace trace = {0};
    enum status status = chrome_read(path, &trace, err);
    if (status == STATUS_OK)
        snprintf(text, bytes, "%s on %s", CLI_COUNT(trace.span_count, "operation"),
                 CLI_COUNT(trace.stream_count, "stream"));
    trace_release(&trace);
    return status;
}

static enum status check_prices(const char *path, char *text, size_t bytes, struct error *err)
{
    struct price_list list = {0};
    enum status status = price_list_read(path, &list, err);
    if (status == STATUS_OK) snprintf(text, bytes, "%s", CLI_COUNT(list.count, "price"));
    price_list_release(&list);
    return status;
}

static enum status check_instance(const char *path, char *text, size_t bytes, struct error *err)
{
    struct instance in = {0};
    enum status status = instance_read(path, &in, err);
    if (status == STATUS_OK)
        snprintf(text, bytes, "%s, %s", CLI_COUNT(in.job_count, "job"), CLI_COUNT(in.device_count, "device"));
    instance_release(&in);
    return status;
}

static enum status check_spase(const char *path, char *text, size_t bytes, struct error *err)
{
    struct spase in = {0};
    enum status status = spase_read(path, &in, err);
    if (status == STATUS_OK)
        snprintf(text, bytes, "%s, %s", CLI_COUNT(in.job_count, "job"), CLI_COUNT(in.device_count, "device"));
    spase_release(&in);
    return status;
}

static enum status check_swarm(const char *path, char *text, size_t bytes, struct error *err)
{
    struct swarm in = {0};
    enum status status = swarm_read(path, &in, err);
    if (status == STATUS_OK)
        snprintf(text, bytes, "%s, %s", CLI_COUNT(in.stage_count, "stage"), CLI_COUNT(in.peer_count, "peer"));
    swarm_release(&in);
    return status;
}

static enum status check_chain(const char *path, char *text, size_t bytes, struct error *err)
{
    struct json_input *in = NULL;
    struct chain chain = {0};
    enum status status = json_input_read(path, &in, err);
    if (status == STATUS_OK) status = chain_parse(in, &chain, err);
    if (status == STATUS_OK) snprintf(text, bytes, "%s", CLI_COUNT(chain.layer_count, "layer"));
    chain_release(&chain);
    json_input_destroy(in);
    return status;
}

/* Checks a serving problem, whose networks need a machine. */
static enum status check_serving(const char *path, char *text, size_t bytes, struct error *err)
{
    struct serving in = {0};
    enum status status = serving_read(path, NULL, &in, err);
    if (status == STATUS_OK)
        snprintf(text, bytes, "%s, %s", CLI_COUNT(in.model_count, "model"), CLI_COUNT(in.device_count, "device"));
    serving_release(&in);
    return status;
}

/* Checks failures; devices are known only with a plan. */
static enum status check_failures(const char *path, char *text, size_t bytes, struct error *err)
{
    struct failures failures;
    struct arena arena = {0};
    enum status status = failures_read(path, HARDWARE_DEVICES_MAX, &arena, &failures, err);
    if (status == STATUS_OK) snprintf(text, bytes, "%s", CLI_COUNT(failures.event_count, "event"));
    arena_release(&arena);
    return status;
}

static enum status check_network(const char *path, char *text, size_t bytes, struct error *err)
{
    struct network network = {0};
    struct arena arena = {0};
    char parameters[QUANTITY_TEXT_BYTES];
    enum status status = network_read_config(path, &arena, &network, err);
    if (status == STATUS_OK)
        snprintf(text, bytes, "%s, %s parameters", network_family_names[network.family],
                 quantity_text((double)network_parameters(&network), DIMENSION_COUNT_OF, parameters));
    arena_release(&arena);
    return status;
}

static enum status check_history(const char *path, char *text, size_t bytes, struct error *err)
{
    struct history *history = NULL;
    struct history_record *records = NULL;
    struct arena arena = {0};
    size_t count = 0;
    enum status status = history_open(path, false, &history, err);
    if (status == STATUS_OK)
        status = history_read(history, &(struct history_filter){0}, &arena, &records, &count, NULL, err);
    if (status == STATUS_OK) snprintf(text, bytes, "%s", CLI_COUNT(count, "row"));
    history_close(history);
    arena_release(&arena);
    return status;
}

/* `name` is for programs; base/files/file_kind.h has nouns for people. */
static const struct kind {
    const char *key, *name; /* of the root; NULL: no JSON */
    enum status (*check)(const char *path, char *text, size_t bytes, struct error *err);
} kinds[] = {
    {NULL, "price list", check_prices},
    {NULL, "history", check_history},
    {"spillway_jobs", "jobs", check_jobs},
    {"spillway_hardware", "hardware", check_hardware},
    {"spillway_plan", "plan", check_plan},
    {"spillway_trace", "trace", check_trace},
    {"traceEvents", "timeline", check_chrome},
    {"spillway_figure", "figure", cli_check_figure},
    {"spillway_instance", "instance", check_instance},
    {"spillway_spase", "spase", check_spase},
    {"spillway_swarm", "swarm", check_swarm},
    {"spillway_chain", "chain of layers", check_chain},
    {"spillway_serving", "serving", check_serving},
    {"spillway_failures", "failures", check_failures},
    {"model_type", "network", check_network}, /* last: other files may contain networks */
};

enum { PRICE_LIST, HISTORY, FIRST_OF_JSON };

/* --- the verb --------------------------------------------------------------------------------- */

static bool ends_in_csv(const char *path)
{
    static const char ending[] = ".csv";
    size_t length = strlen(path), own = strlen(ending);
    return length > own && strcmp(path + length - own, ending) == 0;
}

static enum status find_json_kind(const char *path, const struct kind **out, struct error *err)
{
    enum { LIKE_TREES = 3 }; /* readers of the first arrays have the errors of a tree (base/json/json_rows.h) */
    static const char *const long_arrays[] = {"links", "devices",  "events",  "spans", "levels", "traceEvents",
                                              "units", "segments", "buffers", "jobs",  "layers", NULL};
    struct json_stream *file = NULL;
    struct error unseen = {0};
    if (json_stream_open(path, long_arrays, &file, &unseen) != STATUS_OK)
        TRY(json_stream_open(path, long_arrays + LIKE_TREES, &file, err));
    const struct json_input *in = json_stream_head(file);
    const json_t *root = json_input_root(in);
    const struct kind *kind = kinds + FIRST_OF_JSON;
    while (kind < kinds + ARRAY_COUNT(kinds) && !json_object_get(root, kind->key)) kind++;
    if (kind < kinds + ARRAY_COUNT(kinds)) *out = kind;
    else if (json_refuse_kind(in, "a file that is planned, run or solved", err) == STATUS_OK)
        json_fail_key(in, root, NULL, err,
                      "a file of unknown kind (expected a key 'spillway_jobs', 'spillway_hardware', "
                      "'spillway_plan', 'spillway_figure', 'spillway_instance', 'spillway_spase', 'spillway_swarm', "
                      "'spillway_chain', 'spillway_serving', 'spillway_failures' or 'spillway_trace', a timeline's "
                      "'traceEvents', a network's 'model_type', or a price list named .csv)");
    json_stream_close(file);
    return err->status;
}

static enum status find_kind(const char *path, const struct kind **out, struct error *err)
{
    struct file_look look;
    const bool seen = file_kind_look(path, &look);
    *out = &kinds[PRICE_LIST];
    if (ends_in_csv(path)) return STATUS_OK;
    if (seen && look.database) {
        *out = &kinds[HISTORY];
        return STATUS_OK;
    }
    if (seen && !look.json)
        return error_set(err, STATUS_BAD_INPUT, "%s:1:1: %s%s (expected JSON, a history, or a price list named .csv)",
                         path, look.gzip ? "a gzip file that holds " : "", look.found);
    return find_json_kind(path, out, err);
}

/* Returns "a plan". */
static const char *noun_of(const struct kind *kind)
{
    if (kind == &kinds[PRICE_LIST]) return "a price list";
    return kind->key ? file_reading_of_key(kind->key)->noun : "a history";
}

enum status verb_check(struct cli *cli, int argc, char **argv, struct error *err)
{
    const struct option_spec specs[] = {CLI_COMMON_OPTIONS(cli)};
    struct options options = {
        OPTIONS_TABLE(specs, 1, 1),
        .examples = (const char *const[]){"spillway check jobs.json",
                                          "spillway check docs/prices-2026-11.csv", NULL},
        .details = "FILE holds jobs, hardware, a plan, a trace or timeline, a figure of a paper, an instance, a "
                   "SPASE problem, a chain for 'solve', a swarm, serving, failures, a network (config.json), a "
                   "history, or prices (a name that ends in .csv). Exit code 1 if the content is impossible, 2 with "
                   "the place if it cannot be read.",
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    const char *path = options.operands[0];
    char inside[CLI_PATH_BYTES];
    const int length = snprintf(inside, sizeof inside, "%s/config.json", path);
    if (file_kind_is_network_folder(path) && (size_t)length < sizeof inside) path = inside;
    char holds[HOLDS_BYTES];
    const struct kind *kind;
    if (strcmp(path, "-") == 0) /* read twice */
        return error_set(err, STATUS_BAD_INPUT, "standard input cannot be checked (expected a file's name)");
    if (file_kind_is_stream(path))
        return error_set(err, STATUS_BAD_INPUT, "'%s' is a pipe or a device, which cannot be checked (expected a file)",
                         path);
    if (find_kind(path, &kind, err) != STATUS_OK || kind->check(path, holds, sizeof holds, err) != STATUS_OK)
        return err->status;
    if (!cli->json) {
        fprintf(cli->out, "%s is valid: %s, %s\n", path, noun_of(kind), holds);
        return STATUS_OK;
    }
    struct json_out *json;
    TRY(cli_report_begin(cli, "check", &json, err));
    json_out_string(json, "file", path);
    json_out_string(json, "kind", kind->name);
    json_out_string(json, "holds", holds);
    json_out_bool(json, "ok", true);
    return cli_report_end(cli, json, err);
}
