/* Finds the known word nearest to a misspelt word. */
#ifndef SPILLWAY_BASE_TEXT_SUGGEST_H
#define SPILLWAY_BASE_TEXT_SUGGEST_H

#include <stddef.h>

/*
 * Returns the likely intended word, borrowed from `words`, or NULL when no word is near. The first match of these
 * counts:
 *   the only word that starts with `word`, which has 3 letters or more;
 *   the nearest word by edit distance (swaps count once), at most 1 + length / 4;
 *   the longest word that is a prefix of `word`, ignoring separators, and makes up at least half of it.
 */
const char *suggest(const char *word, const char *const *words, size_t count);

/* Writes "adam, adamw or sgd" into `buffer`, cut with "..." to fit. Returns `buffer`. */
const char *suggest_list(const char *const *words, size_t count, char *buffer, size_t size);

/*
 * Write the end of a message about an unknown word, with a leading blank. It lists all words that start with `word`
 * (" (did you mean 'gpt2', 'gpt2-xl', 'gpt2-medium' or 1 more?)"), or the nearest word (" (did you mean 'steps'?)").
 * Without a near word it is " (expected adam, adamw or sgd)", or `otherwise`, which may be "". Return `buffer`.
 */
enum { SUGGEST_BYTES = 512 };
const char *suggest_ending(const char *word, const char *const *words, size_t count, char buffer[SUGGEST_BYTES]);
const char *suggest_ending_or(const char *word, const char *const *words, size_t count, const char *otherwise,
                              char buffer[SUGGEST_BYTES]);

#endif
