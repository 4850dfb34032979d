/* Offsets, mask and tokens are spooled apart and joined at the end: their numbers are known only then. */
#include "models/rows/rows_write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files/file.h"
#include "base/files/spool.h"
#include "base/try.h"

enum { COPY_BYTES = 1 << 16 };

struct rows_write {
    const char *path; /* borrowed */
    struct spool *offsets, *learned, *tokens;
    uint64_t rows, token_count, vocabulary, tokenizer;
    uint32_t token_bytes;
    uint64_t word; /* the mask's last word, unless it is whole */
};

static void put(unsigned char *to, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++) to[i] = (unsigned char)(number >> 8 * i);
}

static void spool_number(struct spool *spool, uint64_t number, int bytes)
{
    unsigned char text[8];
    put(text, number, bytes);
    spool_write(spool, text, (size_t)bytes);
}

enum status rows_write_create(const char *path, uint64_t vocabulary, uint64_t tokenizer, struct rows_write **out,
                              struct error *err)
{
    struct rows_write *rows = alloc_zeroed(1, sizeof *rows);
    if (!rows) return error_memory(err, "a file of rows", sizeof *rows);
    *rows = (struct rows_write){.path = path, .vocabulary = vocabulary, .tokenizer = tokenizer,
                                .token_bytes = vocabulary <= 1 << 16 ? 2 : 4};
    enum status status = spool_create(path, &rows->offsets, err);
    if (!status) status = spool_create(path, &rows->learned, err);
    if (!status) status = spool_create(path, &rows->tokens, err);
    if (status) {
        rows_write_destroy(rows);
        return status;
    }
    spool_number(rows->offsets, 0, 8);
    *out = rows;
    return STATUS_OK;
}

/* Takes the mark of the token that was counted last. */
static void mark(struct rows_write *rows, bool learned)
{
    const uint64_t bit = (rows->token_count - 1) % 64;
    rows->word |= (uint64_t)learned << bit;
    if (bit < 63) return;
    spool_number(rows->learned, rows->word, 8);
    rows->word = 0;
}

enum status rows_write_row(struct rows_write *rows, const uint32_t *tokens, uint64_t count,
                           const struct rows_write_span *spans, uint64_t span_count, struct error *err)
{
    uint64_t span = 0;
    if (rows->rows == ROWS_FILE_ROWS_MAX || count > UINT32_MAX || rows->token_count > ROWS_FILE_TOKENS_MAX - count)
        return error_set(err, STATUS_LIMIT,
                         "%s: too many rows or tokens for a file (limits are %" PRIu64 " rows, %" PRIu64
                         " tokens, %" PRIu32 " in a row)",
                         rows->path, ROWS_FILE_ROWS_MAX, ROWS_FILE_TOKENS_MAX, UINT32_MAX);
    for (uint64_t i = 0; i < count; i++) {
        while (span < span_count && i >= spans[span].last) span++;
        rows->token_count++;
        spool_number(rows->tokens, tokens[i], (int)rows->token_bytes);
        mark(rows, i > 0 && span < span_count && i >= spans[span].first);
    }
    rows->rows++;
    spool_number(rows->offsets, rows->token_count, 8);
    return STATUS_OK;
}

static enum status copy(struct spool *spool, struct file_out *file, struct error *err)
{
    char room[COPY_BYTES];
    const uint64_t length = spool_length(spool);
    for (uint64_t at = 0; at < length;) {
        const size_t piece = length - at < sizeof room ? (size_t)(length - at) : sizeof room;
        TRY(spool_read(spool, at, room, piece, err));
        file_out_write(file, room, piece);
        at += piece;
    }
    return STATUS_OK;
}

static enum status write_all(struct rows_write *rows, struct file_out *file, struct error *err)
{
    unsigned char head[ROWS_FILE_HEADER_BYTES] = ROWS_FILE_MAGIC;
    put(head + 8, ROWS_FILE_VERSION, 4);
    put(head + 12, rows->token_bytes, 4);
    put(head + 16, rows->rows, 8);
    put(head + 24, rows->token_count, 8);
    put(head + 32, rows->vocabulary, 8);
    put(head + 40, rows->tokenizer, 8);
    file_out_write(file, head, sizeof head);
    TRY(copy(rows->offsets, file, err));
    TRY(copy(rows->learned, file, err));
    return copy(rows->tokens, file, err);
}

enum status rows_write_commit(struct rows_write *rows, struct error *err)
{
    struct file_out *file;
    if (rows->token_count % 64 != 0) spool_number(rows->learned, rows->word, 8);
    TRY(file_out_create(rows->path, &file, err));
    if (write_all(rows, file, err) == STATUS_OK) return file_out_commit(file, err);
    file_out_discard(file);
    return err->status;
}

void rows_write_destroy(struct rows_write *rows)
{
    if (!rows) return;
    spool_destroy(rows->offsets);
    spool_destroy(rows->learned);
    spool_destroy(rows->tokens);
    free(rows);
}
