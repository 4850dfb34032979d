/* Pre-tokenizers of a tokenizer: how a text is cut into pieces, each of which is encoded by itself. */
#ifndef SPILLWAY_MODELS_TOKENIZER_PIECES_H
#define SPILLWAY_MODELS_TOKENIZER_PIECES_H

#include "models/tokenizer/byte_list.h"
#include "models/tokenizer/text_pattern.h"

enum piece_kind {
    PIECE_SPLIT,    /* at the matches of a pattern */
    PIECE_BYTES,    /* each byte becomes a printable character */
    PIECE_METASPACE /* each space becomes `text` */
};

/* What becomes of the matches of a pattern. */
enum piece_matches { PIECE_MATCHES_REMOVED, PIECE_MATCHES_ISOLATED, PIECE_MATCHES_WITH_PREVIOUS,
                    PIECE_MATCHES_WITH_NEXT, PIECE_MATCHES_CONTIGUOUS, PIECE_MATCHES_COUNT };

/* When a mark of a word's begin is put before a text that does not begin with one. */
enum piece_prefix { PIECE_PREFIX_NEVER, PIECE_PREFIX_FIRST, PIECE_PREFIX_ALWAYS, PIECE_PREFIX_COUNT };

struct piece_step {
    enum piece_kind kind;
    struct text_pattern *pattern; /* owned; NULL: no split */
    enum piece_matches matches;   /* with a pattern */
    bool inverted;                /* pieces between matches count as matches */
    enum piece_prefix prefix;
    const char *text;             /* of a mark; NULL: none */
    size_t length;
};

enum { PIECE_STEPS_MAX = 32 };
struct pieces {
    struct piece_step steps[PIECE_STEPS_MAX];
    size_t count;
};

/* GPT-2's expression, which the byte-level pre-tokenizer has by itself. */
extern const char pieces_gpt2_expression[];

typedef enum status (*piece_visit)(void *context, const char *piece, size_t length, struct error *err);

/* Visits the pieces of a text, none of which is empty, in order. `first` says that the text begins the whole one.
 * `rooms` has a list for each step. Errors: those of `visit` and of text_pattern.h. */
MUST_CHECK enum status pieces_each(const struct pieces *pieces, struct text_search *search, struct byte_list *rooms,
                                   const char *text,
                                   size_t length, bool first, piece_visit visit, void *context, struct error *err);

void pieces_release(struct pieces *pieces);

#endif
