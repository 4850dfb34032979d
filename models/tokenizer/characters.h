/* Characters of UTF-8. */
#ifndef SPILLWAY_MODELS_TOKENIZER_CHARACTERS_H
#define SPILLWAY_MODELS_TOKENIZER_CHARACTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the length of the character that begins here in valid UTF-8; 1 at the end of a text. */
static inline size_t character_bytes(const char *text)
{
    const unsigned char first = (unsigned char)*text;
    return first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* Returns the number of bytes of `text` that are valid UTF-8: `length`, or where the first fault is. */
size_t characters_valid(const char *text, size_t length);

/* Return true if the text has a letter, digit, mark or '_' before `at`, and at `at`: characters of words. */
bool character_of_word_before(const char *text, size_t at);
bool character_of_word_at(const char *text, size_t length, size_t at);

/* Return where the white space that ends before `at`, or begins at it, begins or ends. */
size_t characters_space_before(const char *text, size_t at);
size_t characters_space_after(const char *text, size_t length, size_t at);

#endif
