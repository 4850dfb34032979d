/* The nearest known word to a misspelt one. */
#ifndef SPILLWAY_BASE_SUGGEST_H
#define SPILLWAY_BASE_SUGGEST_H

#include <stddef.h>

/*
 * The word that was meant, or NULL when none is near. Borrowed from `words`. In this order:
 *   the only word that starts with `word`, of 3 letters or more;
 *   the nearest by edit distance (swaps count once), at most 1 + length / 4;
 *   the longest word that `word` starts with, separators apart, and that makes up half of it.
 */
const char *suggest(const char *word, const char *const *words, size_t count);

/* "adam, adamw or sgd" into `buffer`, cut with "..." when it does not fit. Returns `buffer`. */
const char *suggest_list(const char *const *words, size_t count, char *buffer, size_t size);

/*
 * How a message about an unknown word ends, a blank included: " (did you mean 'steps'?)", with all words that start with
 * it if there are any (" (did you mean 'gpt2', 'gpt2-xl', 'gpt2-medium' or 1 more?)"); where no word is near,
 * " (expected adam, adamw or sgd)", or what `otherwise` says, which may be "". Returns `buffer`.
 */
enum { SUGGEST_BYTES = 512 };
const char *suggest_ending(const char *word, const char *const *words, size_t count, char buffer[SUGGEST_BYTES]);
const char *suggest_ending_or(const char *word, const char *const *words, size_t count, const char *otherwise,
                              char buffer[SUGGEST_BYTES]);

#endif
