/* Texts of tokens, found by text and by number. */
#ifndef SPILLWAY_MODELS_TOKENIZER_VOCABULARY_H
#define SPILLWAY_MODELS_TOKENIZER_VOCABULARY_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

#define VOCABULARY_NONE UINT32_MAX

struct vocabulary_word {
    const char *text; /* in the arena; no NUL counts as its end */
    uint32_t length, id;
};

/* A zeroed one is empty. Its memory is in the arena that it is filled from. */
struct vocabulary {
    struct vocabulary_word *words; /* in the order in which they were added */
    uint32_t count, capacity;
    uint32_t *slots;               /* hash table: numbers of words, VOCABULARY_NONE: free */
    uint32_t mask;
};

/* Makes room for `capacity` words. */
MUST_CHECK enum status vocabulary_begin(struct vocabulary *vocabulary, struct arena *arena, size_t capacity,
                                        struct error *err);

/* Adds a copy of a text that is not there yet. */
MUST_CHECK enum status vocabulary_add(struct vocabulary *vocabulary, struct arena *arena, const char *text,
                                      size_t length, uint32_t id, struct error *err);

/* Returns the word's id, or VOCABULARY_NONE. */
uint32_t vocabulary_find(const struct vocabulary *vocabulary, const char *text, size_t length);

#endif
