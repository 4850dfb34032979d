/* Parts of a tokenizer, for the files of this folder. */
#ifndef SPILLWAY_MODELS_TOKENIZER_TOKENIZER_STATE_H
#define SPILLWAY_MODELS_TOKENIZER_TOKENIZER_STATE_H

#include "base/arena.h"
#include "base/json/json_in.h"
#include "models/tokenizer/added_tokens.h"
#include "models/tokenizer/merges.h"
#include "models/tokenizer/normalizer.h"
#include "models/tokenizer/pieces.h"

struct tokenizer {
    struct arena arena;
    struct merges merges;
    struct normalizer normalizer;
    struct pieces pieces;
    struct vocabulary names;              /* all added tokens */
    struct added_tokens raw, normalized;  /* looked for before the normalizer, and after it */
    uint32_t next_added;                  /* one more than the largest of them */
    uint32_t *before, *after;             /* tokens around a text */
    size_t before_count, after_count;
    uint32_t vocabulary;                  /* one more than the largest token */
};

/* Reads the root of a tokenizer.json into a zeroed tokenizer. */
MUST_CHECK enum status tokenizer_read_root(const struct json_input *in, struct tokenizer *out, struct error *err);

/* Reads what changes and cuts texts: a normalizer, a pre-tokenizer. */
MUST_CHECK enum status tokenizer_read_normalizer(const struct json_input *in, const json_t *value,
                                                 struct tokenizer *out, struct error *err);
MUST_CHECK enum status tokenizer_read_pieces(const struct json_input *in, const json_t *value, struct tokenizer *out,
                                             struct error *err);

#endif
