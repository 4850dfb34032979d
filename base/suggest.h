/* The nearest known word to a misspelt one. */
#ifndef SPILLWAY_BASE_SUGGEST_H
#define SPILLWAY_BASE_SUGGEST_H

#include <stddef.h>

/* The entry of words[0 .. count) nearest to `word` by edit distance (swaps count once), or NULL
 * when none is near enough to be meant: distance at most 1 + length / 4. Borrowed from words. */
const char *suggest(const char *word, const char *const *words, size_t count);

/* "adam, adamw or sgd" into `buffer`, cut with "..." when it does not fit. Returns `buffer`. */
const char *suggest_list(const char *const *words, size_t count, char *buffer, size_t size);

/*
 * How a message about an unknown word ends, a blank included: " (did you mean 'steps'?)"; where no word is near,
 * " (expected adam, adamw or sgd)", or what `otherwise` says, which may be "". Returns `buffer`.
 */
enum { SUGGEST_BYTES = 512 };
const char *suggest_ending(const char *word, const char *const *words, size_t count, char buffer[SUGGEST_BYTES]);
const char *suggest_ending_or(const char *word, const char *const *words, size_t count, const char *otherwise,
                              char buffer[SUGGEST_BYTES]);

#endif
