/*
 * Text to tokens, by a tokenizer.json as folders of the Hub have it.
 *
 * Read are models of kind BPE with what GPT-2, GPT-NeoX, Llama 2 and 3, Mistral, Gemma and Qwen need: byte level and
 * byte fallback, normalizers, pre-tokenizers, added tokens, and post-processors that put tokens around a text. Anything
 * else is refused by name. The tokens are those of the `tokenizers` library. Its steps:
 *
 *     text -> added tokens that stand in it -> normalizer -> added tokens of normalized text
 *          -> pre-tokenizer: pieces -> byte pair encoding of each piece -> tokens around the whole
 *
 * A tokenizer does not change and serves several threads; each thread has an encoder.
 */
#ifndef SPILLWAY_MODELS_TOKENIZER_TOKENIZER_H
#define SPILLWAY_MODELS_TOKENIZER_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { TOKENIZER_VOCABULARY_MAX = 1 << 24 };

struct tokenizer;
struct tokenizer_encoder;

/* A growing list of tokens. A zeroed one is empty; token_list_release() frees it. */
struct token_list {
    uint32_t *ids;
    size_t count, capacity;
};
MUST_CHECK enum status token_list_add(struct token_list *list, uint32_t id, struct error *err);
void token_list_release(struct token_list *list);

/* Reads a tokenizer.json, or the one in a folder. Errors: STATUS_IO; STATUS_BAD_INPUT for a broken file, and for kinds
 * that are not known, with line and column. */
MUST_CHECK enum status tokenizer_read(const char *path, struct tokenizer **out, struct error *err);

/* Reads one in memory; `name` is for messages. */
MUST_CHECK enum status tokenizer_parse(const char *name, const char *text, size_t length, struct tokenizer **out,
                                       struct error *err);
void tokenizer_destroy(struct tokenizer *tokenizer); /* NULL does nothing */

/* Returns one more than the largest token. */
uint32_t tokenizer_vocabulary(const struct tokenizer *tokenizer);

/* Finds a token by its text, such as "<|endoftext|>". Returns false when there is none. */
bool tokenizer_find(const struct tokenizer *tokenizer, const char *text, uint32_t *out);

/* The tokenizer outlives the encoder. */
MUST_CHECK enum status tokenizer_encoder_create(const struct tokenizer *tokenizer, struct tokenizer_encoder **out,
                                            struct error *err);
void tokenizer_encoder_destroy(struct tokenizer_encoder *encoder); /* NULL does nothing */

/*
 * Appends the tokens of a text of `length` bytes to *out; with `around`, also the tokens that the post-processor puts
 * before and after a text. *out is unchanged, but for its capacity, after an error. Errors: STATUS_BAD_INPUT when the
 * text is not UTF-8, with the number of the byte, or makes a pattern of the pre-tokenizer search too long.
 */
MUST_CHECK enum status tokenizer_encode(struct tokenizer_encoder *encoder, const char *text, size_t length, bool around,
                                    struct token_list *out, struct error *err);

#endif
