#include "models/tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/files/path.h"
#include "base/hash.h"
#include "base/try.h"
#include "models/tokenizer/characters.h"
#include "models/tokenizer/tokenizer_state.h"

/* Tokens of pieces that come again and again: most words of a text. */
enum { KEPT_PIECES = 1 << 14, KEPT_BYTES = 27, KEPT_TOKENS = 8 };
struct kept_piece {
    uint32_t ids[KEPT_TOKENS];
    char text[KEPT_BYTES];
    uint8_t length, count; /* length 0: free */
};

struct tokenizer_encoder {
    const struct tokenizer *tokenizer;
    struct text_search *search;
    struct merge_room room;
    struct byte_list normal, spare;
    struct byte_list rooms[PIECE_STEPS_MAX]; /* of the pre-tokenizer's steps */
    struct kept_piece *kept;
};

/* --- reading -------------------------------------------------------------------------------------- */

static enum status read_from(struct json_input *in, struct tokenizer **out, struct error *err)
{
    struct tokenizer *const tokenizer = alloc_zeroed(1, sizeof *tokenizer);
    *out = NULL;
    if (!tokenizer) return error_memory(err, "a tokenizer", sizeof *tokenizer);
    const enum status status = tokenizer_read_root(in, tokenizer, err);
    if (status) tokenizer_destroy(tokenizer);
    else *out = tokenizer;
    return status;
}

enum status tokenizer_read(const char *path, struct tokenizer **out, struct error *err)
{
    struct arena arena = {0};
    struct json_input *in = NULL;
    struct stat info;
    enum status status = STATUS_OK;
    *out = NULL;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        status = path_absolute(path, "tokenizer.json", &arena, &path, err);
    if (!status) status = json_input_read(path, &in, err);
    if (!status) status = read_from(in, out, err);
    json_input_destroy(in);
    arena_release(&arena);
    return status;
}

enum status tokenizer_parse(const char *name, const char *text, size_t length, struct tokenizer **out,
                            struct error *err)
{
    struct json_input *in = NULL;
    *out = NULL;
    enum status status = json_input_parse(name, text, length, &in, err);
    if (!status) status = read_from(in, out, err);
    json_input_destroy(in);
    return status;
}

void tokenizer_destroy(struct tokenizer *tokenizer)
{
    if (!tokenizer) return;
    normalizer_release(&tokenizer->normalizer);
    pieces_release(&tokenizer->pieces);
    arena_release(&tokenizer->arena);
    free(tokenizer);
}

uint32_t tokenizer_vocabulary(const struct tokenizer *tokenizer)
{
    return tokenizer->vocabulary;
}

bool tokenizer_find(const struct tokenizer *tokenizer, const char *text, uint32_t *out)
{
    uint32_t id = vocabulary_find(&tokenizer->names, text, strlen(text));
    if (id == VOCABULARY_NONE) id = vocabulary_find(&tokenizer->merges.vocabulary, text, strlen(text));
    if (id != VOCABULARY_NONE) *out = id;
    return id != VOCABULARY_NONE;
}

/* --- encoding ------------------------------------------------------------------------------------- */

enum status tokenizer_encoder_create(const struct tokenizer *tokenizer, struct tokenizer_encoder **out,
                                     struct error *err)
{
    struct tokenizer_encoder *const encoder = alloc_zeroed(1, sizeof *encoder);
    *out = NULL;
    if (!encoder) return error_memory(err, "an encoder", sizeof *encoder);
    encoder->tokenizer = tokenizer;
    encoder->kept = alloc_zeroed(KEPT_PIECES, sizeof *encoder->kept);
    enum status status = encoder->kept ? STATUS_OK
                                       : error_memory(err, "an encoder", KEPT_PIECES * sizeof *encoder->kept);
    if (!status) status = text_search_create(&encoder->search, err);
    if (status) tokenizer_encoder_destroy(encoder);
    else *out = encoder;
    return status;
}

void tokenizer_encoder_destroy(struct tokenizer_encoder *encoder)
{
    if (!encoder) return;
    for (size_t i = 0; i < PIECE_STEPS_MAX; i++) free(encoder->rooms[i].bytes);
    text_search_destroy(encoder->search);
    merge_room_release(&encoder->room);
    free(encoder->normal.bytes);
    free(encoder->spare.bytes);
    free(encoder->kept);
    free(encoder);
}

struct encoding {
    struct tokenizer_encoder *encoder;
    struct token_list *out;
};

static enum status add_all(struct token_list *out, const uint32_t *ids, size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++) TRY(token_list_add(out, ids[i], err));
    return STATUS_OK;
}

static enum status encode_piece(void *context, const char *piece, size_t length, struct error *err)
{
    const struct encoding *const encoding = context;
    struct tokenizer_encoder *const encoder = encoding->encoder;
    struct token_list *const out = encoding->out;
    const struct merges *const merges = &encoder->tokenizer->merges;
    if (length > KEPT_BYTES) return merges_encode(merges, &encoder->room, piece, length, out, err);
    const uint64_t hash = hash_bytes(HASH_BEGIN, piece, length);
    struct kept_piece *const kept = &encoder->kept[(hash ^ hash >> 32) % KEPT_PIECES];
    if (kept->length == length && memcmp(kept->text, piece, length) == 0)
        return add_all(out, kept->ids, kept->count, err);
    const size_t begin = out->count;
    TRY(merges_encode(merges, &encoder->room, piece, length, out, err));
    const size_t count = out->count - begin;
    if (count > KEPT_TOKENS) return STATUS_OK;
    kept->length = (uint8_t)length;
    kept->count = (uint8_t)count;
    memcpy(kept->text, piece, length);
    if (count > 0) memcpy(kept->ids, out->ids + begin, count * sizeof *kept->ids);
    return STATUS_OK;
}

/* Cuts normalized text at added tokens, and the rest into pieces. `first` says that the whole text begins with it. */
static enum status encode_normalized(struct encoding *encoding, const char *text, size_t length, bool first,
                                     struct error *err)
{
    struct tokenizer_encoder *const encoder = encoding->encoder;
    const struct tokenizer *const tokenizer = encoder->tokenizer;
    size_t done = 0, from = 0, begin, end;
    const struct added_token *token;
    do {
        token = added_tokens_find(&tokenizer->normalized, text, length, done, &from, &begin, &end);
        if (!token) begin = end = length;
        TRY(pieces_each(&tokenizer->pieces, encoder->search, encoder->rooms, text + done, begin - done,
                        first && done == 0, encode_piece, encoding, err));
        if (token) TRY(token_list_add(encoding->out, token->id, err));
        done = end;
    } while (token);
    return STATUS_OK;
}

/* Cuts a text at added tokens, and normalizes the rest. */
static enum status encode_text(struct encoding *encoding, const char *text, size_t length, struct error *err)
{
    struct tokenizer_encoder *const encoder = encoding->encoder;
    const struct tokenizer *const tokenizer = encoder->tokenizer;
    size_t done = 0, from = 0, begin, end;
    const struct added_token *token;
    do {
        token = added_tokens_find(&tokenizer->raw, text, length, done, &from, &begin, &end);
        if (!token) begin = end = length;
        encoder->normal.count = 0;
        TRY(normalizer_apply(&tokenizer->normalizer, encoder->search, text + done, begin - done, &encoder->normal,
                             &encoder->spare, err));
        TRY(encode_normalized(encoding, byte_list_text(&encoder->normal), encoder->normal.count, done == 0, err));
        if (token) TRY(token_list_add(encoding->out, token->id, err));
        done = end;
    } while (token);
    return STATUS_OK;
}

static enum status encode_around(struct encoding *encoding, const char *text, size_t length, struct error *err)
{
    const struct tokenizer *const tokenizer = encoding->encoder->tokenizer;
    TRY(add_all(encoding->out, tokenizer->before, tokenizer->before_count, err));
    TRY(encode_text(encoding, text, length, err));
    return add_all(encoding->out, tokenizer->after, tokenizer->after_count, err);
}

enum status tokenizer_encode(struct tokenizer_encoder *encoder, const char *text, size_t length, bool around,
                             struct token_list *out,
                         struct error *err)
{
    struct encoding encoding = {encoder, out};
    const size_t count = out->count, valid = characters_valid(text, length);
    if (valid < length) return error_set(err, STATUS_BAD_INPUT, "byte %zu is not UTF-8", valid);
    const enum status status = (around ? encode_around : encode_text)(&encoding, text, length, err);
    if (status) out->count = count;
    return status;
}
