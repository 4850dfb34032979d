/*
 * Byte pair encoding: the characters of a piece become tokens, of which neighbours merge, the pair with the lowest rank
 * first, the leftmost of equal ones.
 */
#ifndef SPILLWAY_MODELS_TOKENIZER_MERGES_H
#define SPILLWAY_MODELS_TOKENIZER_MERGES_H

#include <stdbool.h>
#include <stdint.h>

#include "models/tokenizer/tokenizer.h"
#include "models/tokenizer/vocabulary.h"

struct merge {
    uint64_t pair; /* left token << 32 | right token; UINT64_MAX: no merge */
    uint32_t rank, id;
};

struct merges {
    struct vocabulary vocabulary;
    struct merge *table; /* hash table by pair */
    uint32_t mask;
    uint32_t byte_ids[256]; /* tokens "<0x00>" to "<0xFF>"; VOCABULARY_NONE: there is none */
    uint32_t unknown;       /* token of what has no token; VOCABULARY_NONE: it is left out */
    bool falls_back;        /* characters without a token are written in those of bytes */
    bool joins_unknown;     /* unknown characters in a row are one token */
    bool takes_whole;       /* a piece that is a token is not divided */
};

/* Makes room for `count` merges in the arena. */
MUST_CHECK enum status merges_begin(struct merges *merges, struct arena *arena, size_t count, struct error *err);

/* Adds the merge of the next rank. A pair that is there keeps the later rank. */
void merges_add(struct merges *merges, uint32_t left, uint32_t right, uint32_t rank, uint32_t id);

struct merge_symbol {
    uint32_t id;
    int32_t previous, next; /* -1: none */
    bool merged;            /* into its left neighbour */
};

struct merge_candidate {
    uint32_t rank, at, id;
};

/* Room that is used again. A zeroed one is empty; merge_room_release() frees it. */
struct merge_room {
    struct merge_symbol *symbols;
    size_t symbol_count, symbol_capacity;
    struct merge_candidate *heap;
    size_t heap_count, heap_capacity;
};
void merge_room_release(struct merge_room *room);

/* Appends the tokens of a piece, which is valid UTF-8. */
MUST_CHECK enum status merges_encode(const struct merges *merges, struct merge_room *room, const char *piece,
                                     size_t length, struct token_list *out, struct error *err);

#endif
