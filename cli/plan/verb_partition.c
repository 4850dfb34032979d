/* `partition`: pipeline stages, and workers that replicate each. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "base/try.h"
#include "cli/common/cli_machine.h"
#include "cli/common/cli_table.h"
#include "models/jobs/jobs_file.h"
#include "planner/parallel/pipeline/stage_partition.h"

static const char *const methods[] = {"pipedream", "pipedream-sum", "balanced", NULL};
static_assert(ARRAY_COUNT(methods) == STAGE_METHOD_COUNT + 1, "every method can be asked for");

struct partition_request {
    struct cli_machine machine;
    const char *path, *levels, *job, *network;
    size_t method;
    double memory_bytes;
    uint64_t microbatches;
    double scale; /* on the written network's samples */
};

struct partition_answer {
    const char *path;
    const struct stage_chain *chain;
    const struct stage_request *request;
    struct stage_partition partition;
};

/* --- levels ---------------------------------------------------------------------------------- */

static enum status bad_levels(const char *text, struct error *err)
{
    return error_set(err, STATUS_BAD_INPUT,
                     "option '--levels' is '%s' (expected such as 4x16GB/s,2x1.25GB/s: workers and their rate to each "
                     "other, from the inside; at most %d levels and %d workers)",
                     text, STAGE_LEVELS_MAX, STAGE_WORKERS_MAX);
}

static enum status parse_levels(const char *text, struct stage_request *out, struct error *err)
{
    uint64_t workers = 1;
    out->level_count = 0;
    for (const char *at = text;; at++) {
        char word[48], rate[32], extra;
        size_t length = strcspn(at, ",");
        struct stage_level level;
        struct error own = {0};
        if (out->level_count == STAGE_LEVELS_MAX || length >= sizeof word) return bad_levels(text, err);
        memcpy(word, at, length);
        word[length] = '\0';
        if (word[0] < '1' || word[0] > '9' || strspn(word, "0123456789") > 5 ||
            sscanf(word, "%" SCNu32 "x%31s%c", &level.components, rate, &extra) != 2 ||
            quantity_parse(rate, DIMENSION_BYTES_PER_S, &level.bytes_per_s, &own) || !(level.bytes_per_s > 0))
            return bad_levels(text, err);
        workers *= level.components;
        if (workers > STAGE_WORKERS_MAX) return bad_levels(text, err);
        out->levels[out->level_count++] = level;
        at += length;
        if (*at == '\0') return STATUS_OK;
    }
}

/* --- report ---------------------------------------------------------------------------------- */

/* Adds layers [first, first + count). */
static struct stage_layer sum_of(const struct stage_chain *chain, const struct stage *stage)
{
    struct stage_layer sum = {0};
    for (uint32_t l = stage->first; l < stage->first + stage->count; l++) {
        sum.forward_s += chain->layers[l].forward_s;
        sum.backward_s += chain->layers[l].backward_s;
        sum.weight_bytes += chain->layers[l].weight_bytes;
        sum.cut_bytes = chain->layers[l].cut_bytes;
    }
    return sum;
}

static enum status print_stages(const struct partition_answer *a, FILE *out, struct error *err)
{
    struct cli_table table;
    char text[QUANTITY_TEXT_BYTES];
    cli_table_begin(&table, (const char *[]){"STAGE", "LAYERS", ">WORKERS", ">COMPUTES", ">A WORKER'S SHARE",
                                             ">WEIGHTS", ">SENDS", "ENDS WITH", NULL});
    for (uint32_t s = 0; s < a->partition.count; s++) {
        const struct stage *stage = &a->partition.stages[s];
        struct stage_layer sum = sum_of(a->chain, stage);
        uint32_t last = stage->first + stage->count - 1;
        double seconds = sum.forward_s + sum.backward_s;
        cli_table_cell(&table, "%" PRIu32, s);
        cli_table_cell(&table, "%" PRIu32 "-%" PRIu32, stage->first, last);
        cli_table_cell(&table, "%" PRIu32, stage->replicas);
        cli_table_cell(&table, "%s", quantity_text(seconds, DIMENSION_SECONDS, text));
        cli_table_cell(&table, "%s", quantity_text(seconds / stage->replicas, DIMENSION_SECONDS, text));
        cli_table_cell(&table, "%s", quantity_text((double)sum.weight_bytes, DIMENSION_BYTES, text));
        cli_table_cell(&table, "%s", quantity_text((double)sum.cut_bytes, DIMENSION_BYTES, text));
        cli_table_cell(&table, "%.40s", a->chain->layers[last].name);
    }
    return cli_table_end(&table, out, err);
}

static enum status report_text(struct cli *cli, const struct partition_answer *a, struct error *err)
{
    const struct stage_partition *p = &a->partition;
    char name[STAGE_TEXT_BYTES], text[QUANTITY_TEXT_BYTES], other[QUANTITY_TEXT_BYTES];
    char count[CLI_COUNT_BYTES];
    const uint32_t depth = stage_partition_depth(p);
    bool named = strcmp(a->path, a->chain->name) != 0;
    fprintf(cli->out, "%s: %s%s%s on %s\n\n", a->path, named ? a->chain->name : "", named ? ", " : "",
            CLI_COUNT(a->chain->count, "layer"), CLI_COUNT(p->workers, "worker"));
    TRY(print_stages(a, cli->out, err));
    fprintf(cli->out, "\npartition  %s, by %s\n", stage_partition_text(p, name),
            stage_method_names[a->request->method]);
    fprintf(cli->out, "interval   %s between minibatches; %s %s (a factor of %.3g)\n",
            quantity_text(p->interval_s, DIMENSION_SECONDS, text),
            a->request->method == STAGE_BALANCED ? "even shares of all computation:" : "only data parallelism:",
            quantity_text(p->data_parallel_s, DIMENSION_SECONDS, other), p->data_parallel_s / p->interval_s);
    fprintf(cli->out, "depth      %s on each worker of the first stage\n",
            depth == 1 ? "1 minibatch" : cli_count(depth, "minibatche", count));
    return STATUS_OK;
}

static enum status report_json(struct cli *cli, const struct partition_answer *a, struct error *err)
{
    const struct stage_partition *p = &a->partition;
    struct json_out *json;
    char name[STAGE_TEXT_BYTES];
    TRY(cli_report_begin(cli, "partition", &json, err));
    json_out_string(json, "file", a->path);
    json_out_string(json, "name", a->chain->name);
    json_out_string(json, "method", stage_method_names[a->request->method]);
    json_out_u64(json, "workers", p->workers);
    json_out_string(json, "partition", stage_partition_text(p, name));
    json_out_double(json, "interval_s", p->interval_s);
    json_out_double(json, "data_parallel_s", p->data_parallel_s);
    json_out_u64(json, "depth", stage_partition_depth(p));
    json_out_array_begin(json, "stages", true);
    for (uint32_t s = 0; s < p->count; s++) {
        struct stage_layer sum = sum_of(a->chain, &p->stages[s]);
        json_out_object_begin(json, NULL, false);
        json_out_u64(json, "first_layer", p->stages[s].first);
        json_out_u64(json, "layer_count", p->stages[s].count);
        json_out_u64(json, "workers", p->stages[s].replicas);
        json_out_double(json, "compute_s", sum.forward_s + sum.backward_s);
        json_out_u64(json, "weight_bytes", sum.weight_bytes);
        json_out_u64(json, "sent_bytes", sum.cut_bytes);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    return cli_report_end(cli, json, err);
}

/* --- input -------------------------------------------------------------------------------------- */

static bool is_jobs(const char *path)
{
    size_t length = strlen(path);
    return length > 5 && strcmp(path + length - 5, ".json") == 0;
}

static enum status find_job(const struct partition_request *request, const struct job_set *jobs, const struct job **out,
                            struct error *err)
{
    for (uint32_t j = 0; j < jobs->count; j++)
        if (!request->job || strcmp(jobs->jobs[j].name, request->job) == 0) {
            *out = &jobs->jobs[j];
            return STATUS_OK;
        }
    return error_set(err, STATUS_BAD_INPUT, "'%s' has no job '%s'", request->path, request->job);
}

static enum status read_chain(struct arena *arena, const struct partition_request *request, struct stage_chain *out,
                              struct error *err)
{
    struct hardware hardware = {0};
    struct job_set jobs = {0};
    const struct job *job = NULL;
    if (!is_jobs(request->path)) {
        if (request->job || request->machine.name)
            return error_set(err, STATUS_BAD_INPUT, "option '--%s' is for jobs files, but '%s' is a profile",
                             request->job ? "job" : "hw", request->path);
        return stage_chain_read(arena, request->path, out, err);
    }
    enum status status = job_set_read(request->path, &jobs, err);
    if (!status) status = find_job(request, &jobs, &job, err);
    if (!status) status = cli_machine_read(&request->machine, &hardware, err);
    if (!status) status = stage_chain_of_job(arena, job, &hardware, 0, out, err);
    job_set_release(&jobs);
    hardware_release(&hardware);
    return status;
}

static enum status write_network(struct arena *arena, const struct partition_request *request,
                                 const struct stage_chain *chain, struct error *err)
{
    struct network network;
    struct json_file file;
    if (!request->network) return STATUS_OK;
    TRY(stage_chain_network(arena, chain, request->scale, &network, err));
    TRY(json_file_begin(&file, request->network, "writing a network", err));
    network_write(&network, file.out, NULL);
    return json_file_end(&file, err);
}

static enum status answer_request(struct cli *cli, const struct partition_request *request, struct error *err)
{
    struct arena arena = {0};
    struct stage_chain chain = {0};
    struct stage_request wanted = {.method = (enum stage_method)request->method, .microbatches = request->microbatches};
    struct partition_answer a = {.path = request->path, .chain = &chain, .request = &wanted};
    if (!request->levels)
        return error_set(err, STATUS_BAD_INPUT, "option '--levels' is missing (such as 4x16GB/s,2x1.25GB/s)");
    TRY(parse_levels(request->levels, &wanted, err));
    if (request->memory_bytes != CLI_NOT_GIVEN) {
        if (wanted.method != STAGE_BALANCED)
            return error_set(err, STATUS_BAD_INPUT,
                             "option '--memory' is for balanced partitions, but the method is '%s'",
                             stage_method_names[wanted.method]);
        wanted.memory_bytes = (uint64_t)request->memory_bytes;
    }
    if (!(request->scale > 0 && request->scale <= 1e6))
        return error_set(err, STATUS_BAD_INPUT, "option '--scale' is %g (expected above 0, at most 1e6)",
                         request->scale);
    if (request->network && is_jobs(request->path))
        return error_set(err, STATUS_BAD_INPUT, "option '--network' is for profiles, but '%s' has jobs", request->path);
    enum status status = read_chain(&arena, request, &chain, err);
    if (!status) status = stage_partition_find(&arena, &chain, &wanted, &a.partition, err);
    if (!status) status = write_network(&arena, request, &chain, err);
    if (!status) status = (cli->json ? report_json : report_text)(cli, &a, err);
    arena_release(&arena);
    return status;
}

enum status verb_partition(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct partition_request request = {.machine = CLI_MACHINE_NONE, .memory_bytes = CLI_NOT_GIVEN, .microbatches = 32,
                                        .scale = 1};
    const struct option_spec specs[] = {
        OPTION_STRING("levels", 0, "LEVELS", &request.levels,
                      "workers and link rates from the inside out, as 4x16GB/s,2x1.25GB/s"),
        OPTION_CHOICE("by", 0, "METHOD", methods, &request.method, "method of dividing (default pipedream)"),
        OPTION_QUANTITY("memory", 0, "SIZE", DIMENSION_BYTES, &request.memory_bytes, "memory of each worker, for "
                                                                                     "balanced"),
        OPTION_U64("microbatches", 0, "N", 1, UINT32_MAX, &request.microbatches,
                   "microbatches per minibatch, for balanced (default 32)"),
        OPTION_STRING("job", 0, "NAME", &request.job, "job of the jobs file (default: the first)"),
        OPTION_OUTPUT("network", 0, "FILE", FILE_KIND_NETWORK, &request.network,
                      "write the layers of a profile as a network for jobs"),
        OPTION_DOUBLE("scale", 0, "FACTOR", &request.scale,
                      "factor on times and activations of that network (default 1)"),
        CLI_MACHINE_NAME(&request.machine),
        CLI_FORCE_OPTION(cli),
        CLI_COMMON_OPTIONS(cli),
    };
    static const char *const examples[] = {
        "spillway partition docs/instances/pipedream/vgg16.txt --levels 4x16GB/s,4x1.25GB/s",
        "spillway partition vgg16.txt --levels 16x1.25GB/s --network vgg16.json --scale 0.5",
        "spillway partition jobs.json --hw a100-sxm4-80gb --levels 8x250GB/s --by balanced",
        NULL};
    struct options options = {.examples = examples,
                              .details = "FILE is a jobs file (*.json), whose layers the cost model times, or a "
                                         "profile of PipeDream: a line per layer with its times, activation and "
                                         "parameter bytes, then the edges.",
                              OPTIONS_TABLE(specs, 1, 1)};
    CLI_PARSE(cli, &options, argc, argv, err);
    request.path = options.operands[0];
    return answer_request(cli, &request, err);
}
