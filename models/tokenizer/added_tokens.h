/* Tokens that are found in a text before it is cut into pieces: "<|endoftext|>", and what users add. */
#ifndef SPILLWAY_MODELS_TOKENIZER_ADDED_TOKENS_H
#define SPILLWAY_MODELS_TOKENIZER_ADDED_TOKENS_H

#include <stdbool.h>

#include "models/tokenizer/vocabulary.h"

struct added_token {
    uint32_t id;
    bool alone;        /* only where no character of a word is next to it */
    bool left, right;  /* takes the white space there */
};

/* Tokens that are looked for together. A zeroed one is empty; its memory is in an arena. */
struct added_tokens {
    struct vocabulary texts;    /* a word's id is the number of its token here */
    struct added_token *tokens;
    uint32_t *lengths;          /* of texts, each once, the longest first */
    uint32_t length_count;
    bool begins[256];           /* a text begins with this byte */
};

MUST_CHECK enum status added_tokens_begin(struct added_tokens *added, struct arena *arena, size_t capacity,
                                          struct error *err);

/* Adds a token. A text that is empty, or there, is passed over. */
MUST_CHECK enum status added_tokens_add(struct added_tokens *added, struct arena *arena, const char *text,
                                        size_t length, const struct added_token *token, struct error *err);

/*
 * Finds the next token in text[done .. length); *begin and *end include the white space that it takes. `from` is where
 * the search goes on, at least `done`; it is moved. Returns NULL without one. Of several at a place the longest counts.
 */
const struct added_token *added_tokens_find(const struct added_tokens *added, const char *text, size_t length,
                                            size_t done, size_t *from, size_t *begin, size_t *end);

#endif
