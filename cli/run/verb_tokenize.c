/* `tokenize`: texts to tokens that jobs train on. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/files/path.h"
#include "base/try.h"
#include "cli/common/cli.h"
#include "cli/common/cli_table.h"
#include "cli/run/cli_tokenize.h"

/* In the order of enum cli_documents. */
static const char *const document_choices[] = {"name", "file", "line", "jsonl", NULL};

struct tokenize_request {
    struct cli_tokenize_request work;
    const char *tokenizer, *end, *template;
    struct option_list fields;
    size_t documents;
    uint64_t threads;
    bool bare;
};

struct tokenize_answer {
    const struct tokenize_request *request;
    const struct cli_tokenized *counts; /* of each file */
    struct cli_tokenized sum;
};

/* --- report ------------------------------------------------------------------------------------- */

static void add(struct cli_tokenized *sum, const struct cli_tokenized *of)
{
    sum->documents += of->documents;
    sum->bytes += of->bytes;
    sum->tokens += of->tokens;
    sum->skipped += of->skipped;
    sum->learned += of->learned;
    if (of->longest > sum->longest) sum->longest = of->longest;
    sum->seconds += of->seconds;
    sum->token_bytes = of->token_bytes;
}

static void print_row(struct cli_table *table, const char *name, const struct cli_tokenized *counts)
{
    cli_table_cell(table, "%s", name);
    cli_table_cell(table, "%" PRIu64, counts->documents);
    cli_table_cell(table, "%" PRIu64, counts->bytes);
    cli_table_cell(table, "%" PRIu64, counts->tokens);
    if (counts->tokens > 0) cli_table_cell(table, "%.2f", (double)counts->bytes / (double)counts->tokens);
    else cli_table_cell(table, "-");
}

/* Prints the command that makes jobs of the tokens: for the network beside the tokenizer, if there is one. */
static enum status print_next(struct cli *cli, const struct tokenize_request *request, struct error *err)
{
    struct arena arena = {0};
    struct stat info;
    const char *config;
    TRY(path_absolute(request->tokenizer, "config.json", &arena, &config, err));
    const bool network = stat(config, &info) == 0;
    if (request->work.output)
        cli_next(cli, (const char *const[]){"jobs", "new", network ? request->tokenizer : "gpt2", "--data",
                                            request->work.output, "-o",
                                            "jobs.json", NULL});
    arena_release(&arena);
    return STATUS_OK;
}

static enum status report_text(struct cli *cli, const struct tokenize_answer *a, struct error *err)
{
    const struct cli_tokenize_request *const work = &a->request->work;
    struct cli_table table;
    char speed[QUANTITY_TEXT_BYTES];
    cli_table_begin(&table,
                    (const char *[]){"FILE", ">DOCUMENTS", ">BYTES OF TEXT", ">TOKENS", ">BYTES A TOKEN", NULL});
    for (size_t i = 0; i < work->path_count; i++) print_row(&table, work->paths[i], &a->counts[i]);
    if (work->path_count > 1) print_row(&table, "all", &a->sum);
    TRY(cli_table_end(&table, cli->out, err));
    fprintf(cli->out, "\ntokenizer   %s, %" PRIu32 " tokens\n", a->request->tokenizer,
            tokenizer_vocabulary(work->tokenizer));
    if (work->rows)
        fprintf(cli->out,
                "rows        %" PRIu64 ", the longest of %" PRIu64 " tokens; %" PRIu64 " tokens are learned\n",
                a->sum.documents, a->sum.longest, a->sum.learned);
    if (a->sum.skipped > 0) fprintf(cli->out, "skipped     %" PRIu64 " bad rows\n", a->sum.skipped);
    fprintf(cli->out, "speed       %s of text with %" PRIu32 " threads\n",
            quantity_text(a->sum.seconds > 0 ? (double)a->sum.bytes / a->sum.seconds : 0, DIMENSION_BYTES_PER_S, speed),
            work->threads);
    if (work->output)
        fprintf(cli->out, "written to  %s, %" PRIu32 " bits a token\n", work->output, 8 * a->sum.token_bytes);
    return print_next(cli, a->request, err);
}

static void write_counts(struct json_out *json, const struct cli_tokenized *counts, bool rows)
{
    json_out_u64(json, "documents", counts->documents);
    json_out_u64(json, "text_bytes", counts->bytes);
    json_out_u64(json, "tokens", counts->tokens);
    json_out_u64(json, "skipped", counts->skipped);
    if (rows) json_out_u64(json, "learned", counts->learned);
    if (rows) json_out_u64(json, "longest", counts->longest);
    json_out_double(json, "seconds", counts->seconds);
}

static enum status report_json(struct cli *cli, const struct tokenize_answer *a, struct error *err)
{
    const struct cli_tokenize_request *const work = &a->request->work;
    struct json_out *json;
    TRY(cli_report_begin(cli, "tokenize", &json, err));
    json_out_string(json, "tokenizer", a->request->tokenizer);
    json_out_u64(json, "vocabulary", tokenizer_vocabulary(work->tokenizer));
    json_out_u64(json, "threads", work->threads);
    json_out_array_begin(json, "files", true);
    for (size_t i = 0; i < work->path_count; i++) {
        json_out_object_begin(json, NULL, false);
        json_out_string(json, "file", work->paths[i]);
        write_counts(json, &a->counts[i], work->rows);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    write_counts(json, &a->sum, work->rows);
    if (work->output) json_out_string(json, "output", work->output);
    json_out_u64(json, "token_bytes", a->sum.token_bytes);
    return cli_report_end(cli, json, err);
}

/* --- the verb ----------------------------------------------------------------------------------- */

static enum status find_end(struct tokenize_request *request, struct error *err)
{
    if (!request->end) return STATUS_OK;
    request->work.ends = tokenizer_find(request->work.tokenizer, request->end, &request->work.end);
    if (request->work.ends) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "option '--end' is '%s', which is no token of '%s'", request->end,
                     request->tokenizer);
}

static uint32_t thread_count(uint64_t asked)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (asked > 0) return (uint32_t)asked;
    return cores < 1 ? 1 : cores > CLI_TOKENIZE_THREADS_MAX ? CLI_TOKENIZE_THREADS_MAX : (uint32_t)cores;
}

static enum status answer_request(struct cli *cli, struct tokenize_request *request, struct error *err)
{
    static const char *const text_field[] = {"text"};
    struct cli_tokenize_request *const work = &request->work;
    struct cli_tokenized *const counts = alloc_zeroed(work->path_count, sizeof *counts);
    struct tokenizer *tokenizer = NULL;
    struct cli_template *template = NULL;
    enum status status = counts ? STATUS_OK : error_memory(err, "counts of files", work->path_count * sizeof *counts);
    if (!status) status = tokenizer_read(request->tokenizer, &tokenizer, err);
    if (!status && request->template) status = cli_template_read(request->template, &template, err);
    work->tokenizer = tokenizer;
    work->template = template;
    work->documents = (enum cli_documents)request->documents;
    work->fields = request->fields.count > 0 ? request->fields.items : text_field;
    work->field_count = request->fields.count > 0 ? request->fields.count : !work->rows;
    work->path_of_tokenizer = request->tokenizer;
    work->around = !request->bare;
    work->threads = thread_count(request->threads);
    if (!status) status = find_end(request, err);
    if (!status) status = cli_tokenize(work, counts, err);
    if (!status) {
        struct tokenize_answer a = {.request = request, .counts = counts};
        for (size_t i = 0; i < work->path_count; i++) add(&a.sum, &counts[i]);
        status = (cli->json ? report_json : report_text)(cli, &a, err);
    }
    cli_template_destroy(template);
    tokenizer_destroy(tokenizer);
    free(counts);
    return status;
}

enum status verb_tokenize(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct tokenize_request request = {0};
    const struct option_spec specs[] = {
        OPTION_STRING("tokenizer", 0, "PATH", &request.tokenizer, "tokenizer.json, or the folder that has it"),
        OPTION_OUTPUT("output", 'o', "FILE", FILE_KIND_TOKENS, &request.work.output,
                      "file of tokens to write (default: count only)"),
        OPTION_CHOICE("documents", 0, "KIND", document_choices, &request.documents,
                      "a document is a file, a line or a row of JSON (default: by name)"),
        OPTION_LIST("field", 0, "KEY", &request.fields,
                    "text of a row, may be repeated: texts are joined (default text)"),
        OPTION_FLAG("rows", 0, &request.work.rows, "write rows, which are samples that return each epoch"),
        OPTION_STRING("template", 0, "FILE", &request.template, "how messages of a row become a text, with --rows"),
        OPTION_STRING("end", 0, "TOKEN", &request.end, "put this token after each document"),
        OPTION_FLAG("bare", 0, &request.bare, "without the tokens that the tokenizer puts around a text"),
        OPTION_FLAG("skip-bad-lines", 0, &request.work.skips_bad_rows,
                    "count rows that are no JSON or have no text, and go on"),
        OPTION_U64("threads", 0, "N", 1, CLI_TOKENIZE_THREADS_MAX, &request.threads,
                   "threads (default: one for each core)"),
        CLI_FORCE_OPTION(cli),
        CLI_COMMON_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 1, ARRAY_COUNT(options.operands)),
        .examples = (const char *const[]){"spillway tokenize corpus.txt --tokenizer llama-3.2-1b -o corpus.bin",
                                          "spillway tokenize train.jsonl --tokenizer gpt2 --field prompt --field "
                                          "completion "
                                          "--end '<|endoftext|>' -o train.bin",
                                          "spillway tokenize train.jsonl --rows --tokenizer gpt2 --end "
                                          "'<|endoftext|>' -o train.rows", NULL},
        .details = "A FILE that ends in .jsonl or .ndjson has rows of JSON, any other is one document; "
                   "- is standard input. "
                   "Tokens are written as llm.c's .bin, which jobs name under \"data\". "
                   "With --rows each document is a row; a row of "
                   "JSON has \"text\", \"prompt\" and \"completion\" (which alone is learned), or \"messages\".",
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    if (!request.tokenizer)
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--tokenizer' is missing (expected a tokenizer.json, or the folder of a network)");
    if (request.template && !request.work.rows)
        return error_set(err, STATUS_BAD_INPUT, "option '--template' needs '--rows'");
    if (request.template && request.fields.count > 0)
        return error_set(err, STATUS_BAD_INPUT, "options '--template' and '--field' exclude each other");
    TRY(cli_refuse_dash("output", request.work.output, err));
    request.work.paths = options.operands;
    request.work.path_count = options.operand_count;
    return answer_request(cli, &request, err);
}
