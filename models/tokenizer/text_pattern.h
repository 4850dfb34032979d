/*
 * Patterns of a tokenizer: fixed texts, and regular expressions as the `tokenizers` library has them (Oniguruma), by
 * PCRE2 with Unicode properties.
 *
 * White space is Unicode's property White_Space, as in Oniguruma; PCRE2's \s has U+180E as well. What PCRE2 would read
 * otherwise than Oniguruma is refused: sets within sets, "&&", and \h.
 */
#ifndef SPILLWAY_MODELS_TOKENIZER_TEXT_PATTERN_H
#define SPILLWAY_MODELS_TOKENIZER_TEXT_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct text_pattern; /* serves several threads */
struct text_search;  /* a thread's place for searches */

/* Compiles a regular expression. Errors: STATUS_BAD_INPUT with the fault and its place in the expression. */
MUST_CHECK enum status text_pattern_create(const char *expression, struct text_pattern **out, struct error *err);

/* Makes a pattern that matches exactly this text, which is not empty. */
MUST_CHECK enum status text_pattern_fixed(const char *text, size_t length, struct text_pattern **out,
                                          struct error *err);
void text_pattern_destroy(struct text_pattern *pattern); /* NULL does nothing */

MUST_CHECK enum status text_search_create(struct text_search **out, struct error *err);
void text_search_destroy(struct text_search *search); /* NULL does nothing */

/* Finds the first match at or after `from` in valid UTF-8. *found is false without one; else it is [*begin, *end),
 * which may be empty. Errors: STATUS_BAD_INPUT when the search takes too long. */
MUST_CHECK enum status text_pattern_find(const struct text_pattern *pattern, struct text_search *search,
                                         const char *text,
                                         size_t length, size_t from, bool *found, size_t *begin, size_t *end,
                                         struct error *err);

#endif
