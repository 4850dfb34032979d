/*
 * `jobs new`: makes a jobs file. Keys "_comment", which every reader skips, explain and suggest. The file is parsed
 * before it is written, so it can be planned.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/path.h"
#include "base/json/json_in.h"
#include "base/size.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/common/cli.h"
#include "cli/common/cli_adapter.h"
#include "models/jobs/jobs_file.h"
#include "models/kernel/precision.h"
#include "models/network/network.h"

enum { HARDWARE_NETWORKS_MAX = 64 };

static const char *const optimizer_choices[] = {"adamw", "momentum", "sgd", NULL}, *const gradients_choices[] = {"fp32",
                                                                                                                 "bf16",
                                                                                                                 NULL};

struct jobs_request {
    const char *output; /* NULL: standard output */
    const char *data;   /* NULL: random samples */
    size_t precision;   /* index into precision_names */
    size_t optimizer, gradients; /* indices into the choices below */
    uint64_t minibatches, microbatch, sequence; /* sequence 0: network_usual_sequence() */
    uint64_t microbatches, decoder_sequence, image; /* 0: the key is left out */
    struct cli_adapter adapter;
};

struct new_job {
    char name[JOB_NAME_MAX + 1];
    const char *network; /* as in the file */
    uint64_t sequence;   /* 0: left out */
};

static const char *const about[] = {
    "Training runs for Spillway. 'spillway plan' decides what runs where, 'spillway run' carries it out.",
    "Keys of 'defaults' apply to all jobs; a job's own keys take precedence.",
    "Paths are relative to this file. Other keys, such as 'evaluate' and 'parallel', are in 'man spillway-formats'.",
};
static const char about_batches[] =
    "minibatches: optimizer steps. microbatch: samples of one pass; 'gradient_accumulation_steps' passes make a step.";
static const char about_random[] =
    "Without 'data' samples are random, which is enough to plan and to time. 'data': 'corpus.txt' trains on a file, "
    "'weights_out': '{name}.safetensors' keeps the result.";
static const char about_data[] = "'weights_out': '{name}.safetensors' keeps the trained weights.";

/* --- the jobs ---------------------------------------------------------------------------------- */

/* Makes a path relative to the jobs file's folder, recognised as a path. */
static enum status place(const char *path, const char *folder, struct arena *arena, const char **out, struct error *err)
{
    char relative[PATH_RELATIVE_BYTES], spelled[PATH_RELATIVE_BYTES + 2];
    const char *absolute;
    TRY(path_absolute("", path, arena, &absolute, err));
    const char *seen = path_relative(folder, absolute, relative);
    snprintf(spelled, sizeof spelled, "%s%s", network_is_path(seen) ? "" : "./", seen);
    return arena_string(arena, spelled, out, err);
}

/* Makes "gpt-small" of "nets/gpt-small/config.json", "Qwen3-8B" of "Qwen/Qwen3-8B". */
static void name_job(const char *network, char name[JOB_NAME_MAX + 1])
{
    size_t length = strlen(network);
    if (text_ends_in(network, "/config.json")) length -= strlen("/config.json");
    else if (text_ends_in(network, ".json")) length -= strlen(".json");
    else if (text_ends_in(network, ".txt")) length -= strlen(".txt");
    while (length > 0 && network[length - 1] == '/') length--;
    size_t first = length, count = 0;
    while (first > 0 && network[first - 1] != '/') first--;
    while (first < length && !isalnum((unsigned char)network[first])) first++;
    for (size_t i = first; i < length && count < JOB_NAME_MAX - 8; i++) {
        bool good = isalnum((unsigned char)network[i]) || strchr("-_.", network[i]);
        name[count++] = good ? network[i] : '-';
    }
    name[count] = '\0';
    if (count == 0) strcpy(name, "job");
}

/* Numbers jobs of the same network. */
static void number_job(struct new_job *jobs, size_t index)
{
    char base[JOB_NAME_MAX + 1];
    memcpy(base, jobs[index].name, sizeof base);
    size_t number = 1;
    for (size_t i = 0; i < index; i++) {
        if (strcmp(jobs[i].name, jobs[index].name) != 0) continue;
        snprintf(jobs[index].name, sizeof jobs[index].name, "%.*s-%zu", JOB_NAME_MAX - 8, base, ++number);
        i = (size_t)-1; /* may be taken too */
    }
}

static enum status make_jobs(const struct jobs_request *request, const struct options *options, const char *folder,
                             struct arena *arena, struct new_job *jobs, struct error *err)
{
    for (size_t i = 0; i < options->operand_count; i++) {
        struct network network;
        jobs[i] = (struct new_job){.network = options->operands[i]};
        TRY(network_find(options->operands[i], arena, &network, err));
        if (network_is_file(options->operands[i], options->operands[i]))
            TRY(place(options->operands[i], folder, arena, &jobs[i].network, err));
        if (request->sequence == 0) jobs[i].sequence = network_usual_sequence(&network);
        name_job(options->operands[i], jobs[i].name);
        number_job(jobs, i);
    }
    return STATUS_OK;
}

/* --- the file ---------------------------------------------------------------------------------- */

static void write_optimizer(const char *kind, struct json_out *json)
{
    bool momentum = strcmp(kind, "momentum") == 0;
    json_out_object_begin(json, "optimizer", true);
    json_out_string(json, "kind", momentum ? "sgd" : kind);
    json_out_double(json, "lr", 3e-4);
    if (momentum) json_out_double(json, "momentum", 0.9);
    json_out_object_end(json);
}

static void write_jobs(const struct jobs_request *request, const struct new_job *jobs, size_t count, const char *data,
                       struct json_out *json)
{
    json_out_object_begin(json, NULL, false);
    json_out_u64(json, "spillway_jobs", 1);
    json_out_array_begin(json, "_comment", false);
    for (size_t i = 0; i < ARRAY_COUNT(about); i++) json_out_string(json, NULL, about[i]);
    json_out_string(json, NULL, about_batches);
    json_out_string(json, NULL, data ? about_data : about_random);
    json_out_array_end(json);
    json_out_object_begin(json, "defaults", false);
    json_out_u64(json, "minibatches", request->minibatches);
    json_out_u64(json, "microbatch", request->microbatch);
    if (request->microbatches > 0) json_out_u64(json, "microbatches", request->microbatches);
    if (request->sequence > 0) json_out_u64(json, "sequence", request->sequence);
    if (request->precision != PRECISION_FP32) json_out_string(json, "precision", precision_names[request->precision]);
    if (request->decoder_sequence > 0) json_out_u64(json, "decoder_sequence", request->decoder_sequence);
    if (request->image > 0) json_out_u64(json, "image_size", request->image);
    if (request->gradients > 0) json_out_string(json, "gradients", gradients_choices[request->gradients]);
    write_optimizer(optimizer_choices[request->optimizer], json);
    cli_adapter_write(&request->adapter, json);
    if (data) json_out_string(json, "data", data);
    json_out_object_end(json);
    json_out_array_begin(json, "jobs", false);
    for (size_t i = 0; i < count; i++) {
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "name", jobs[i].name);
        json_out_string(json, "network", jobs[i].network);
        if (jobs[i].sequence > 0) json_out_u64(json, "sequence", jobs[i].sequence);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    json_out_object_end(json);
}

/* Parses the text; messages have no places, because the file does not exist yet. */
static enum status check_text(const char *text, size_t length, const char *folder, struct error *err)
{
    static const char name[] = "the new jobs file";
    struct json_input *in = NULL;
    struct job_set set = {0};
    if (json_input_parse(name, text, length, &in, err) == STATUS_OK &&
        job_set_parse(in, json_input_root(in), folder, &set, err)) {
        const char *message = strncmp(err->text, name, strlen(name)) == 0 ? strstr(err->text, ": ") : NULL;
        if (message) memmove(err->text, message + 2, strlen(message + 2) + 1);
    }
    json_input_destroy(in);
    job_set_release(&set);
    return err->status;
}

static enum status write_text(struct cli *cli, const char *output, const char *text, size_t length, struct error *err)
{
    struct file_out *file;
    if (!output) {
        fwrite(text, 1, length, cli->out);
        return STATUS_OK;
    }
    if (access(output, F_OK) == 0 && !cli->force)
        return error_set(err, STATUS_BAD_INPUT, "'%s' is there already (--force replaces it)", output);
    TRY(file_out_create(output, &file, err));
    file_out_write(file, text, length);
    return file_out_commit(file, err);
}

static enum status report(struct cli *cli, const struct jobs_request *request, const struct new_job *jobs, size_t count,
                          struct error *err)
{
    struct json_out *json;
    if (!cli->json) {
        fprintf(cli->out, "written to %s: %s\n", request->output, CLI_COUNT(count, "job"));
        cli_next_plan(cli, &(struct cli_next_jobs){.file = request->output});
        return STATUS_OK;
    }
    TRY(cli_report_begin(cli, "jobs-new", &json, err));
    json_out_string(json, "file", request->output);
    json_out_array_begin(json, "jobs", false);
    for (size_t i = 0; i < count; i++) {
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "name", jobs[i].name);
        json_out_string(json, "network", jobs[i].network);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    return cli_report_end(cli, json, err);
}

/* --- the verb ---------------------------------------------------------------------------------- */

static enum status make_file(struct cli *cli, const struct jobs_request *request, const struct options *options,
                             struct arena *arena, struct error *err)
{
    struct new_job jobs[HARDWARE_NETWORKS_MAX];
    const char *folder, *data = NULL;
    size_t length = 0;
    TRY(path_folder(request->output ? request->output : "", arena, &folder, err));
    TRY(make_jobs(request, options, folder, arena, jobs, err));
    if (request->data && access(request->data, R_OK) != 0) return error_input(err, "cannot open '%s'", request->data);
    if (request->data) TRY(place(request->data, folder, arena, &data, err));
    struct json_out *json = json_out_create(NULL);
    if (!json) return error_memory(err, "the jobs file", 1);
    write_jobs(request, jobs, options->operand_count, data, json);
    const char *text = json_out_text(json, &length);
    if (!json_out_complete(json)) error_memory(err, "the jobs file", length);
    enum status status = err->status;
    if (!status) status = check_text(text, length, folder, err);
    if (!status) status = write_text(cli, request->output, text, length, err);
    if (!status && request->output) status = report(cli, request, jobs, options->operand_count, err);
    json_out_destroy(json);
    return status;
}

enum status verb_jobs_new(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct jobs_request request = {.minibatches = 100, .microbatch = 1};
    const struct option_spec specs[] = {
        OPTION_OUTPUT("output", 'o', "FILE", FILE_KIND_JOBS, &request.output,
                      "jobs file to write (default: standard output)"),
        OPTION_U64("minibatches", 0, "N", 1, UINT32_MAX, &request.minibatches,
                   "optimizer steps of each job (default 100)"),
        OPTION_U64("microbatch", 0, "N", 1, UINT32_MAX, &request.microbatch, "samples per pass (default 1)"),
        OPTION_U64("microbatches", 0, "N", 1, UINT32_MAX, &request.microbatches,
                   "microbatches per minibatch, over all replicas (default 1)"),
        OPTION_U64("sequence", 0, "N", 1, UINT32_MAX, &request.sequence,
                   "tokens per sample (default: the network's, at most 2048)"),
        CLI_OTHER_SIZES(&request.decoder_sequence, &request.image),
        OPTION_CHOICE("precision", 0, "TYPE", precision_names, &request.precision,
                      "precision of training (default fp32)"),
        OPTION_CHOICE("gradients", 0, "TYPE", gradients_choices, &request.gradients,
                      "precision of weight gradients on several devices (default fp32)"),
        OPTION_CHOICE("optimizer", 0, "KIND", optimizer_choices, &request.optimizer, "optimizer (default adamw)"),
        CLI_ADAPTER_RANK(&request.adapter),
        CLI_ADAPTER_TARGETS(&request.adapter),
        OPTION_STRING("data", 0, "FILE", &request.data, "train on this file (default: random samples)"),
        CLI_FORCE_OPTION(cli),
        CLI_COMMON_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 1, HARDWARE_NETWORKS_MAX),
        .examples =
            (const char *const[]){"spillway jobs new gpt2 -o jobs.json",
                                  "spillway jobs new gpt2 docs/examples/llama-tiny/config.json --minibatches 20", NULL},
        .details = "Writes a jobs file with a job for each network, which can be planned as it is. Comments in it say "
                   "what to change. A network is a name of 'spillway models list', a config.json or a folder with one.",
    };
    struct arena arena = {0};
    CLI_PARSE(cli, &options, argc, argv, err);
    if (request.output && strcmp(request.output, "-") == 0) request.output = NULL;
    TRY(cli_adapter_check(&request.adapter, err));
    if (cli->json && !request.output)
        return error_set(err, STATUS_BAD_INPUT, "the jobs file itself is JSON (expected --output FILE with --json)");
    enum status status = make_file(cli, &request, &options, &arena, err);
    arena_release(&arena);
    return status;
}
