/* Checks of texts, and cleaning of texts for a terminal. */
#ifndef SPILLWAY_BASE_TEXT_H
#define SPILLWAY_BASE_TEXT_H

#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* Returns true when `text` ends in `ending` and is longer than `ending`. */
static inline bool text_ends_in(const char *text, const char *ending)
{
    size_t length = strlen(text), wanted = strlen(ending);
    return length > wanted && strcmp(text + length - wanted, ending) == 0;
}

/* The same, whatever the case of ASCII letters: names of files from other systems. */
static inline bool text_ends_like(const char *text, const char *ending)
{
    size_t length = strlen(text), wanted = strlen(ending);
    return length > wanted && strcasecmp(text + length - wanted, ending) == 0;
}

/* Replaces control characters by '?', byte by byte, except the characters in `kept`. Names come from files and
 * command lines, and a terminal would obey their control characters. Control characters are 0 to 0x1f and 0x7f of
 * ASCII, U+0080 to U+009F, and bytes 0x80 to 0x9f that are not part of UTF-8. */
void text_clean(char *text, size_t length, const char *kept);

#endif
