/*
 * Files of rows: tokenized samples of any length, as `spillway tokenize --rows` writes them.
 *
 *     offset  bytes         little-endian
 *          0      8         "SPILROWS"
 *          8      4         version, 1
 *         12      4         bytes of a token, 2 or 4
 *         16      8         rows, N
 *         24      8         tokens of all rows, M
 *         32      8         vocabulary: every token is below it
 *         40      8         hash of the tokenizer.json that made the tokens (rows_file_hash()); 0: not known
 *         48      16        zeros
 *         64      8 (N+1)   offsets: row i has the tokens [offset i, offset i + 1); the first is 0, the last is M
 *                 8 W       W = M / 64, rounded up: bit i % 64 of word i / 64 is 1 if token i is learned; the rest is 0
 *                 M tokens
 *
 * A token is learned if it counts as a target of the tokens before it. The first token of a row never is, as nothing
 * precedes it.
 */
#ifndef SPILLWAY_MODELS_ROWS_ROWS_FILE_H
#define SPILLWAY_MODELS_ROWS_ROWS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/files/mapped_file.h"
#include "base/little_endian.h"

#define ROWS_FILE_MAGIC "SPILROWS"
enum { ROWS_FILE_MAGIC_BYTES = 8, ROWS_FILE_VERSION = 1, ROWS_FILE_HEADER_BYTES = 64 };

/* Row numbers and lengths are kept in 32 bits. */
#define ROWS_FILE_ROWS_MAX ((UINT64_C(1) << 32) - 2)
#define ROWS_FILE_TOKENS_MAX (UINT64_C(1) << 48)

struct rows_file {
    const char *name;            /* borrowed; for messages */
    struct mapped_file file;     /* empty when the bytes are borrowed */
    const unsigned char *offsets, *learned, *tokens;
    uint64_t rows, token_count;
    uint32_t token_bytes;
    uint64_t vocabulary, tokenizer;
    uint64_t first_byte;         /* of the tokens, in the file */
};

/* Maps a file and checks all but the tokens. `path` is borrowed. Release with rows_file_close().
 * Errors: STATUS_IO; STATUS_BAD_INPUT for another format or version, a wrong length, offsets that fall. */
MUST_CHECK enum status rows_file_open(const char *path, struct rows_file *out, struct error *err);

/* Reads bytes in memory, which it borrows. */
MUST_CHECK enum status rows_file_parse(const char *name, const void *data, uint64_t bytes, struct rows_file *out,
                                       struct error *err);
void rows_file_close(struct rows_file *file);

/* Checks that every token is below `vocabulary`. Errors: STATUS_BAD_INPUT. */
MUST_CHECK enum status rows_file_check_tokens(const struct rows_file *file, uint64_t vocabulary, struct error *err);

/* Returns true for a regular file that begins as a file of rows does. */
bool rows_file_is(const char *path);

/* Returns the hash of a tokenizer.json, or of the one in a folder; 0 if it cannot be read. */
uint64_t rows_file_hash(const char *path);

/* Returns the first token of a row; of row `rows`, the number of tokens. */
static inline uint64_t rows_file_begin(const struct rows_file *file, uint64_t row)
{
    return little_u64(file->offsets + 8 * row);
}

static inline uint64_t rows_file_length(const struct rows_file *file, uint64_t row)
{
    return rows_file_begin(file, row + 1) - rows_file_begin(file, row);
}

static inline uint32_t rows_file_token(const struct rows_file *file, uint64_t i)
{
    const unsigned char *p = file->tokens + i * file->token_bytes;
    return file->token_bytes == 2 ? little_u16(p) : little_u32(p);
}

static inline bool rows_file_learns(const struct rows_file *file, uint64_t i)
{
    return file->learned[i / 8] >> i % 8 & 1;
}

/* Counts the learned ones among tokens [first, first + count). */
uint64_t rows_file_count_learned(const struct rows_file *file, uint64_t first, uint64_t count);

#endif
