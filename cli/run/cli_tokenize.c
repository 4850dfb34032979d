#include "cli/run/cli_tokenize.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/files/file.h"
#include "base/files/file_in.h"
#include "base/files/spool.h"
#include "base/json/json_in.h"
#include "base/process/clock.h"
#include "base/text.h"
#include "base/try.h"
#include "models/tokenizer/characters.h"

enum {
    BLOCK_BYTES = 4 << 20, /* lines that are encoded together */
    LLMC_HEADER_NUMBERS = 256,
    COPY_BYTES = 1 << 16
};

/* What llm.c writes first: source dev/data/data_common.py. */
static const uint32_t llmc_magic[] = {[2] = 20240520, [4] = 20240801}, llmc_version[] = {[2] = 1, [4] = 7};

struct document {
    const char *text;
    size_t length;
    uint64_t line;             /* of the file, from 1 */
    struct token_list tokens;
    struct rows_write_span *spans; /* learned tokens of a row */
    size_t span_count;
    uint64_t bytes;            /* of text */
    bool skipped;
    struct error failed;
};

struct run {
    const struct cli_tokenize_request *request;
    struct tokenizer_encoder *encoders[CLI_TOKENIZE_THREADS_MAX];
    struct spool *spool;       /* tokens in their final width; NULL: they are counted, or ... */
    struct rows_write *rows;   /* ... go into rows */
    uint32_t token_bytes;
    uint64_t tokens;
    struct document *documents; /* of the block */
    size_t document_count, document_capacity;
};

/* The documents of a file under way. */
struct reading {
    struct run *run;
    const char *path;
    enum cli_documents documents;
    struct file_in *file;
    char *block;
    size_t filled, capacity;
    uint64_t line; /* of the block's first character */
    struct cli_tokenized *counts;
};

/* --- a document ------------------------------------------------------------------------------------- */

/* Says where a text is not UTF-8: line and column (in bytes). */
static enum status refuse_text(const struct reading *reading, const struct document *document, const char *text,
                               size_t length, struct error *err)
{
    const size_t valid = characters_valid(text, length);
    uint64_t line = document->line;
    size_t begin = 0;
    *err = (struct error){0}; /* the tokenizer knows no lines */
    for (size_t i = 0; i < valid; i++) {
        if (text[i] != '\n') continue;
        begin = i + 1;
        line++;
    }
    return error_set(err, STATUS_BAD_INPUT, "%s:%" PRIu64 ":%zu: the text is not UTF-8 (byte 0x%02x)", reading->path,
                     line, valid - begin + 1, (unsigned char)text[valid]);
}

/* Ends a row of tokens. The end is learned if what it follows is. */
static enum status end_row(const struct cli_tokenize_request *request, struct document *document, struct error *err)
{
    struct token_list *const tokens = &document->tokens;
    struct rows_write_span *const last = &document->spans[document->span_count - 1];
    if (!request->ends || (tokens->count > 0 && tokens->ids[tokens->count - 1] == request->end)) return STATUS_OK;
    if (last->last == tokens->count) last->last++;
    return token_list_add(tokens, request->end, err);
}

static enum status encode_parts(const struct reading *reading, struct document *document, const struct cli_row *row,
                                struct tokenizer_encoder *encoder, struct error *err)
{
    document->span_count = row->part_count;
    document->spans = alloc_zeroed(row->part_count, sizeof *document->spans);
    if (!document->spans) return error_memory(err, "a row", row->part_count * sizeof *document->spans);
    if (cli_row_encode(row, encoder, reading->run->request->around, &document->tokens, document->spans, err))
        return error_add(err, "%s:%" PRIu64, reading->path, document->line);
    return end_row(reading->run->request, document, err);
}

/* Makes a row of a text, all of which is learned. */
static enum status encode_whole(const struct reading *reading, struct document *document, const char *text,
                                size_t length, struct tokenizer_encoder *encoder, struct error *err)
{
    struct cli_row_part all = {0, length};
    const struct cli_row row = {.text = (char *)(uintptr_t)text, .length = length, .parts = &all, .part_count = 1};
    return encode_parts(reading, document, &row, encoder, err);
}

static enum status encode_text(const struct reading *reading, struct document *document, const char *text,
                               size_t length, struct tokenizer_encoder *encoder, struct error *err)
{
    const struct cli_tokenize_request *const request = reading->run->request;
    document->bytes = length;
    enum status status = STATUS_OK;
    if (request->rows) status = encode_whole(reading, document, text, length, encoder, err);
    else if (tokenizer_encode(encoder, text, length, request->around, &document->tokens, err))
        status = error_add(err, "%s:%" PRIu64, reading->path, document->line);
    else if (request->ends) status = token_list_add(&document->tokens, request->end, err);
    if (status && characters_valid(text, length) < length) return refuse_text(reading, document, text, length, err);
    return status;
}

/* Joins the texts of a row. */
static enum status join_fields(const struct cli_tokenize_request *request, const struct json_input *in, char **out,
                               size_t *length,
                               struct error *err)
{
    struct json_object row;
    const char *texts[ARRAY_COUNT(((struct option_list *)NULL)->items)];
    size_t bytes = 0;
    TRY(json_object_open(&row, in, json_input_root(in), "a row", err));
    json_object_ignore_others(&row);
    for (size_t i = 0; i < request->field_count; i++) {
        TRY(json_take_text(&row, request->fields[i], JSON_REQUIRED, &texts[i], err));
        bytes += strlen(texts[i]);
    }
    char *const joined = alloc_zeroed(bytes + 1, 1);
    if (!joined) return error_memory(err, "a row", bytes);
    *out = joined;
    *length = bytes;
    for (size_t i = 0, at = 0; i < request->field_count; at += strlen(texts[i]), i++) memcpy(joined + at, texts[i],
                                                                                             strlen(texts[i]));
    return STATUS_OK;
}

/* Makes a row of what its keys hold. */
static enum status encode_by_keys(const struct reading *reading, struct document *document, const struct json_input *in,
                                  struct tokenizer_encoder *encoder, struct error *err)
{
    struct cli_row row = {0};
    enum status status = cli_row_read(in, reading->run->request->template, &row, err);
    document->bytes = row.length;
    if (!status) status = encode_parts(reading, document, &row, encoder, err);
    cli_row_release(&row);
    return status;
}

static enum status encode_fields(const struct reading *reading, struct document *document, const struct json_input *in,
                                 struct tokenizer_encoder *encoder, struct error *err)
{
    char *joined = NULL;
    size_t length = 0;
    enum status status = join_fields(reading->run->request, in, &joined, &length, err);
    if (!status) status = encode_text(reading, document, joined, length, encoder, err);
    free(joined);
    return status;
}

static enum status encode_row(const struct reading *reading, struct document *document,
                              struct tokenizer_encoder *encoder, struct error *err)
{
    const struct json_anchor anchor = {.offset = 0, .line = (size_t)document->line, .column = 1};
    struct json_input *in = NULL;
    char *const copy = alloc_zeroed(document->length + 1, 1);
    if (!copy) return error_memory(err, "a row", document->length);
    memcpy(copy, document->text, document->length);
    enum status status = json_input_parse_cut(reading->path, copy, document->length, &anchor, 1, false, &in, err);
    if (!status)
        status = (reading->run->request->field_count > 0 ? encode_fields : encode_by_keys)(reading, document, in,
                                                                                           encoder, err);
    json_input_destroy(in);
    return status;
}

static void encode_document(const struct reading *reading, struct document *document, struct tokenizer_encoder *encoder)
{
    struct error *const err = &document->failed;
    const bool row = reading->documents == CLI_DOCUMENTS_JSON;
    const enum status status = row ? encode_row(reading, document, encoder, err)
                                   : encode_text(reading, document, document->text, document->length, encoder, err);
    if (status != STATUS_BAD_INPUT || !row || !reading->run->request->skips_bad_rows) return;
    *err = (struct error){0};
    document->skipped = true;
    document->tokens.count = 0;
    document->bytes = 0;
}

/* --- threads ---------------------------------------------------------------------------------------- */

struct worker {
    const struct reading *reading;
    struct tokenizer_encoder *encoder;
    atomic_size_t *next;
    pthread_t thread;
    bool started;
};

static void *work(void *context)
{
    struct worker *const worker = context;
    const struct run *const run = worker->reading->run;
    for (size_t at; (at = atomic_fetch_add(worker->next, 1)) < run->document_count;)
        encode_document(worker->reading, &run->documents[at], worker->encoder);
    return NULL;
}

/* Encodes the documents of a block. A thread that cannot be started is done without. */
static void encode_all(const struct reading *reading)
{
    const struct run *const run = reading->run;
    struct worker workers[CLI_TOKENIZE_THREADS_MAX];
    atomic_size_t next = 0;
    uint32_t count = run->request->threads;
    if (count > run->document_count) count = (uint32_t)run->document_count;
    for (uint32_t i = 0; i < count; i++) {
        workers[i] = (struct worker){.reading = reading, .encoder = run->encoders[i], .next = &next};
        workers[i].started = i > 0 && pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0;
    }
    if (count > 0) work(&workers[0]);
    for (uint32_t i = 0; i < count; i++)
        if (workers[i].started) pthread_join(workers[i].thread, NULL);
}

/* --- blocks ----------------------------------------------------------------------------------------- */

/* Counts a row, and writes it. */
static enum status keep_row(struct reading *reading, const struct document *document, struct error *err)
{
    const uint64_t count = document->tokens.count;
    if (document->skipped) return STATUS_OK;
    for (size_t i = 0; i < document->span_count; i++) {
        const uint64_t first = document->spans[i].first > 0 ? document->spans[i].first : 1;
        if (document->spans[i].last > first) reading->counts->learned += document->spans[i].last - first;
    }
    if (count > reading->counts->longest) reading->counts->longest = count;
    if (!reading->run->rows) return STATUS_OK;
    return rows_write_row(reading->run->rows, document->tokens.ids, count, document->spans, document->span_count, err);
}

static void keep_tokens(struct run *run, const struct token_list *tokens)
{
    for (size_t i = 0; run->spool && i < tokens->count; i++) {
        const uint32_t id = tokens->ids[i];
        const unsigned char bytes[4] = {(unsigned char)id, (unsigned char)(id >> 8), (unsigned char)(id >> 16),
                                        (unsigned char)(id >> 24)};
        spool_write(run->spool, bytes, run->token_bytes);
    }
    run->tokens += tokens->count;
}

static enum status add_document(struct reading *reading, const char *text, size_t length, uint64_t line,
                                struct error *err)
{
    struct run *const run = reading->run;
    TRY(array_reserve(&run->documents, &run->document_capacity, run->document_count, sizeof *run->documents,
                      SIZE_MAX / 256, "documents", err));
    run->documents[run->document_count++] = (struct document){.text = text, .length = length, .line = line};
    return STATUS_OK;
}

/* Encodes the block's documents and counts them, in their order. The first fault counts. */
static enum status end_block(struct reading *reading, struct error *err)
{
    struct run *const run = reading->run;
    enum status status = STATUS_OK;
    encode_all(reading);
    for (size_t i = 0; i < run->document_count; i++) {
        struct document *const document = &run->documents[i];
        if (!status && document->failed.status) {
            *err = document->failed;
            status = err->status;
        }
        if (!status && run->request->rows) status = keep_row(reading, document, err);
        if (!status) keep_tokens(run, &document->tokens);
        reading->counts->documents += !document->skipped;
        reading->counts->skipped += document->skipped;
        reading->counts->bytes += document->bytes;
        reading->counts->tokens += document->tokens.count;
        token_list_release(&document->tokens);
        free(document->spans);
    }
    run->document_count = 0;
    return status;
}

/* Makes documents of the block's whole lines, and of the rest at the end of the file. Empty lines are none. */
static enum status take_lines(struct reading *reading, bool at_end, struct error *err)
{
    size_t begin = 0;
    enum status status = STATUS_OK;
    while (!status && begin < reading->filled) {
        const char *const line = reading->block + begin, *const end = memchr(line, '\n', reading->filled - begin);
        if (!end && !at_end) break;
        size_t length = end ? (size_t)(end - line) : reading->filled - begin;
        begin += length + (end != NULL);
        if (length > 0 && line[length - 1] == '\r') length--;
        if (length > 0) status = add_document(reading, line, length, reading->line, err);
        reading->line++;
    }
    if (!status) status = end_block(reading, err);
    memmove(reading->block, reading->block + begin, reading->filled - begin);
    reading->filled -= begin;
    return status;
}

static enum status grow_block(struct reading *reading, struct error *err)
{
    if (reading->capacity - reading->filled >= BLOCK_BYTES) return STATUS_OK;
    const size_t capacity = 2 * reading->capacity + BLOCK_BYTES;
    char *const grown = alloc_resize(reading->block, capacity);
    if (!grown) return error_memory(err, "a block of text", capacity);
    reading->block = grown;
    reading->capacity = capacity;
    return STATUS_OK;
}

static enum status read_blocks(struct reading *reading, struct error *err)
{
    const bool whole = reading->documents == CLI_DOCUMENTS_FILES;
    for (size_t got = 1; got > 0;) {
        TRY(grow_block(reading, err));
        TRY(file_in_read(reading->file, reading->block + reading->filled, BLOCK_BYTES, &got, err));
        reading->filled += got;
        if (!whole && (got == 0 || reading->filled >= BLOCK_BYTES)) TRY(take_lines(reading, got == 0, err));
    }
    if (!whole) return STATUS_OK;
    TRY(add_document(reading, reading->block, reading->filled, 1, err));
    return end_block(reading, err);
}

/* --- files ------------------------------------------------------------------------------------------ */

static enum cli_documents documents_of(const struct cli_tokenize_request *request, const char *path)
{
    static const char *const endings[] = {".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"};
    if (request->documents != CLI_DOCUMENTS_BY_NAME) return request->documents;
    for (size_t i = 0; i < ARRAY_COUNT(endings); i++)
        if (text_ends_like(path, endings[i])) return CLI_DOCUMENTS_JSON;
    return CLI_DOCUMENTS_FILES;
}

static enum status read_file(struct run *run, const char *path, struct cli_tokenized *counts, struct error *err)
{
    struct reading reading = {.run = run, .path = path, .documents = documents_of(run->request, path), .line = 1,
                              .counts = counts};
    const double begin_s = clock_s();
    enum status status = file_in_open(path, &reading.file, err);
    if (!status) status = read_blocks(&reading, err);
    counts->seconds = clock_s() - begin_s;
    counts->token_bytes = run->token_bytes;
    file_in_close(reading.file);
    free(reading.block);
    return status;
}

static void write_number(struct file_out *file, uint32_t number)
{
    const unsigned char bytes[4] = {(unsigned char)number, (unsigned char)(number >> 8), (unsigned char)(number >> 16),
                                    (unsigned char)(number >> 24)};
    file_out_write(file, bytes, sizeof bytes);
}

static enum status write_tokens(const struct run *run, struct file_out *file, struct error *err)
{
    char room[COPY_BYTES];
    write_number(file, llmc_magic[run->token_bytes]);
    write_number(file, llmc_version[run->token_bytes]);
    write_number(file, (uint32_t)run->tokens);
    for (int i = 3; i < LLMC_HEADER_NUMBERS; i++) write_number(file, 0);
    const uint64_t length = spool_length(run->spool);
    for (uint64_t at = 0; at < length;) {
        const size_t piece = length - at < sizeof room ? (size_t)(length - at) : sizeof room;
        TRY(spool_read(run->spool, at, room, piece, err));
        file_out_write(file, room, piece);
        at += piece;
    }
    return STATUS_OK;
}

static enum status write_output(const struct run *run, struct error *err)
{
    struct file_out *file;
    if (!run->request->output) return STATUS_OK;
    if (run->rows) return rows_write_commit(run->rows, err);
    if (run->tokens > UINT32_MAX)
        return error_set(err, STATUS_LIMIT,
                         "%s: %" PRIu64 " tokens are too many for a file (limit is %" PRIu32 "): divide the texts",
                         run->request->output, run->tokens, UINT32_MAX);
    TRY(file_out_create(run->request->output, &file, err));
    if (write_tokens(run, file, err) == STATUS_OK) return file_out_commit(file, err);
    file_out_discard(file);
    return err->status;
}

enum status cli_tokenize(const struct cli_tokenize_request *request, struct cli_tokenized *counts, struct error *err)
{
    struct run run = {.request = request, .token_bytes = tokenizer_vocabulary(request->tokenizer) <= 1 << 16 ? 2 : 4};
    enum status status = STATUS_OK;
    for (uint32_t i = 0; !status && i < request->threads; i++)
        status = tokenizer_encoder_create(request->tokenizer, &run.encoders[i], err);
    if (!status && request->output && request->rows)
        status = rows_write_create(request->output, tokenizer_vocabulary(request->tokenizer),
                                   rows_file_hash(request->path_of_tokenizer), &run.rows, err);
    else if (!status && request->output) status = spool_create(request->output, &run.spool, err);
    for (size_t i = 0; !status && i < request->path_count; i++)
        status = read_file(&run, request->paths[i], &counts[i], err);
    if (!status) status = write_output(&run, err);
    for (uint32_t i = 0; i < request->threads; i++) tokenizer_encoder_destroy(run.encoders[i]);
    spool_destroy(run.spool);
    rows_write_destroy(run.rows);
    free(run.documents);
    return status;
}
