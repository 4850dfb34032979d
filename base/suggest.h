/* The nearest known word to a misspelt one. */
#ifndef SPILLWAY_BASE_SUGGEST_H
#define SPILLWAY_BASE_SUGGEST_H

#include <stddef.h>

/* The entry of words[0 .. count) nearest to `word` by edit distance (swaps count once), or NULL
 * when none is near enough to be meant: distance at most 1 + length / 4. Borrowed from words. */
const char *suggest(const char *word, const char *const *words, size_t count);

/* "adam, adamw or sgd" into `buffer`, cut with "..." when it does not fit. Returns `buffer`. */
const char *suggest_list(const char *const *words, size_t count, char *buffer, size_t size);

#endif
