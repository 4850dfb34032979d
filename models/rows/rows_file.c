/* The offsets are checked when a file is opened: 8 bytes a row. The tokens are not: a file may have many gigabytes of
 * them. */
#include "models/rows/rows_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/file.h"
#include "base/hash.h"
#include "base/try.h"

enum { TOKENIZER_BYTES_MAX = 1 << 30 };

static enum status check_head(const unsigned char *data, uint64_t bytes, const char *name, struct error *err)
{
    static const unsigned char zeros[16];
    if (bytes < ROWS_FILE_HEADER_BYTES)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s: %" PRIu64 " bytes are too few (a file of rows has a header of %d)", name,
                         bytes, (int)ROWS_FILE_HEADER_BYTES);
    if (memcmp(data, ROWS_FILE_MAGIC, ROWS_FILE_MAGIC_BYTES) != 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s: this is no file of rows (expected one that 'spillway tokenize --rows' wrote)", name);
    if (little_u32(data + 8) != ROWS_FILE_VERSION)
        return error_set(err, STATUS_BAD_INPUT, "%s: unknown version %" PRIu32 " (expected %d)", name,
                         little_u32(data + 8), (int)ROWS_FILE_VERSION);
    if (little_u32(data + 12) != 2 && little_u32(data + 12) != 4)
        return error_set(err, STATUS_BAD_INPUT, "%s: tokens of %" PRIu32 " bytes (expected 2 or 4)", name,
                         little_u32(data + 12));
    if (memcmp(data + 48, zeros, sizeof zeros) != 0)
        return error_set(err, STATUS_BAD_INPUT, "%s: bytes 48 to 63 are not 0", name);
    return STATUS_OK;
}

static enum status check_offsets(const struct rows_file *file, struct error *err)
{
    uint64_t last = 0;
    if (rows_file_begin(file, 0) != 0)
        return error_set(err, STATUS_BAD_INPUT, "%s: row 0 begins at token %" PRIu64 " (expected 0)", file->name,
                         rows_file_begin(file, 0));
    for (uint64_t row = 0; row < file->rows; row++) {
        const uint64_t end = rows_file_begin(file, row + 1);
        if (end < last || end > file->token_count || end - last > UINT32_MAX)
            return error_set(err, STATUS_BAD_INPUT,
                             "%s: row %" PRIu64 " has the tokens from %" PRIu64 " to %" PRIu64 " of %" PRIu64,
                             file->name, row, last, end, file->token_count);
        last = end;
    }
    if (last != file->token_count)
        return error_set(err, STATUS_BAD_INPUT, "%s: the rows have %" PRIu64 " tokens (expected %" PRIu64 ")",
                         file->name, last, file->token_count);
    return STATUS_OK;
}

static enum status check_rest_of_mask(const struct rows_file *file, struct error *err)
{
    const uint64_t words = (file->token_count + 63) / 64, used = file->token_count % 64;
    if (used == 0 || little_u64(file->learned + 8 * (words - 1)) >> used == 0) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "%s: tokens after the last one are marked as learned", file->name);
}

enum status rows_file_parse(const char *name, const void *bytes_of_file, uint64_t bytes, struct rows_file *out,
                            struct error *err)
{
    const unsigned char *const data = bytes_of_file;
    TRY(check_head(data, bytes, name, err));
    struct rows_file file = {.name = name,
                             .rows = little_u64(data + 16),
                             .token_count = little_u64(data + 24),
                             .token_bytes = little_u32(data + 12),
                             .vocabulary = little_u64(data + 32),
                             .tokenizer = little_u64(data + 40)};
    if (file.rows > ROWS_FILE_ROWS_MAX || file.token_count > ROWS_FILE_TOKENS_MAX)
        return error_set(err, STATUS_BAD_INPUT, "%s: %" PRIu64 " rows of %" PRIu64 " tokens are too many", name,
                         file.rows, file.token_count);
    const uint64_t offsets = 8 * (file.rows + 1), mask = (file.token_count + 63) / 64 * 8;
    const uint64_t expected = ROWS_FILE_HEADER_BYTES + offsets + mask + file.token_count * file.token_bytes;
    if (bytes != expected)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s: %" PRIu64 " bytes (expected %" PRIu64 ": the header announces %" PRIu64
                         " rows of %" PRIu64 " tokens)",
                         name, bytes, expected, file.rows, file.token_count);
    file.offsets = data + ROWS_FILE_HEADER_BYTES;
    file.learned = file.offsets + offsets;
    file.tokens = file.learned + mask;
    file.first_byte = ROWS_FILE_HEADER_BYTES + offsets + mask;
    TRY(check_offsets(&file, err));
    TRY(check_rest_of_mask(&file, err));
    *out = file;
    return STATUS_OK;
}

enum status rows_file_open(const char *path, struct rows_file *out, struct error *err)
{
    struct mapped_file mapped = {0};
    TRY(mapped_file_open(path, &mapped, err));
    const enum status status = rows_file_parse(path, mapped.data, mapped.bytes, out, err);
    if (status == STATUS_OK)
        out->file = mapped;
    else
        mapped_file_close(&mapped);
    return status;
}

void rows_file_close(struct rows_file *file)
{
    mapped_file_close(&file->file);
    *file = (struct rows_file){0};
}

enum status rows_file_check_tokens(const struct rows_file *file, uint64_t vocabulary, struct error *err)
{
    if (vocabulary > (UINT64_C(1) << 8 * file->token_bytes) - 1) return STATUS_OK;
    for (uint64_t i = 0; i < file->token_count; i++) {
        const uint32_t token = rows_file_token(file, i);
        if (token >= vocabulary)
            return error_set(err, STATUS_BAD_INPUT,
                             "%s: token %" PRIu64 " is %" PRIu32 " (expected less than the vocabulary, %"
                             PRIu64 ")", file->name, i, token, vocabulary);
    }
    return STATUS_OK;
}

bool rows_file_is(const char *path)
{
    char head[ROWS_FILE_MAGIC_BYTES];
    return file_read_head(path, head, sizeof head) == sizeof head && memcmp(head, ROWS_FILE_MAGIC, sizeof head) == 0;
}

uint64_t rows_file_hash(const char *path)
{
    struct stat info;
    struct error ignored = {0};
    char inside[4096 + sizeof "/tokenizer.json"], *text = NULL;
    size_t length = 0;
    const bool folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    if (strlen(path) + sizeof "/tokenizer.json" > sizeof inside) return 0;
    strcpy(inside, path);
    if (folder) strcat(inside, "/tokenizer.json");
    if (file_read(inside, TOKENIZER_BYTES_MAX, &text, &length, &ignored) != STATUS_OK) return 0;
    const uint64_t hash = hash_bytes(HASH_BEGIN, text, length);
    free(text);
    return hash;
}

uint64_t rows_file_count_learned(const struct rows_file *file, uint64_t first, uint64_t count)
{
    uint64_t learned = 0, i = first;
    const uint64_t end = first + count;
    for (; i < end && i % 64 != 0; i++) learned += rows_file_learns(file, i);
    for (; i + 64 <= end; i += 64) learned += (uint64_t)__builtin_popcountll(little_u64(file->learned + i / 8));
    for (; i < end; i++) learned += rows_file_learns(file, i);
    return learned;
}
