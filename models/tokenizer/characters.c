#include "models/tokenizer/characters.h"

#include <utf8proc.h>

/* Reads the character at `at`; its length goes to *bytes. */
static utf8proc_int32_t character_at(const char *text, size_t length, size_t at, size_t *bytes)
{
    utf8proc_int32_t code = -1;
    const utf8proc_ssize_t read = utf8proc_iterate((const utf8proc_uint8_t *)text + at, (utf8proc_ssize_t)(length - at),
                                                   &code);
    *bytes = read > 0 ? (size_t)read : 1;
    return code;
}

/* Returns where the character before `at`, which is not 0, begins. */
static size_t before(const char *text, size_t at)
{
    do at--;
    while (at > 0 && ((unsigned char)text[at] & 0xc0) == 0x80);
    return at;
}

size_t characters_valid(const char *text, size_t length)
{
    size_t at = 0, bytes;
    while (at < length) {
        if ((unsigned char)text[at] < 0x80) {
            at++;
            continue;
        }
        if (character_at(text, length, at, &bytes) < 0) return at;
        at += bytes;
    }
    return length;
}

/* \w of Unicode: letters and numbers that are letters, marks, decimal digits, connecting punctuation, joiners. */
static bool is_of_word(utf8proc_int32_t code)
{
    switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_PC: return true;
    default: return code == 0x200c || code == 0x200d || (code >= 0x24b6 && code <= 0x24e9);
    }
}

/* Unicode's White_Space. */
static bool is_space(utf8proc_int32_t code)
{
    return (code >= 9 && code <= 13) || code == 0x20 || code == 0x85 || code == 0xa0 || code == 0x1680 ||
           (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f ||
           code == 0x3000;
}

bool character_of_word_before(const char *text, size_t at)
{
    size_t bytes;
    return at > 0 && is_of_word(character_at(text, at, before(text, at), &bytes));
}

bool character_of_word_at(const char *text, size_t length, size_t at)
{
    size_t bytes;
    return at < length && is_of_word(character_at(text, length, at, &bytes));
}

size_t characters_space_before(const char *text, size_t at)
{
    size_t bytes;
    while (at > 0 && is_space(character_at(text, at, before(text, at), &bytes))) at = before(text, at);
    return at;
}

size_t characters_space_after(const char *text, size_t length, size_t at)
{
    size_t bytes;
    while (at < length && is_space(character_at(text, length, at, &bytes))) at += bytes;
    return at;
}
