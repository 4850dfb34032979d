/* Small questions about texts, and texts for a terminal. */
#ifndef SPILLWAY_BASE_TEXT_H
#define SPILLWAY_BASE_TEXT_H

#include <stdbool.h>
#include <string.h>

/* Does `text` end in `ending`, with something in front of it? */
static inline bool text_ends_in(const char *text, const char *ending)
{
    size_t length = strlen(text), wanted = strlen(ending);
    return length > wanted && strcmp(text + length - wanted, ending) == 0;
}

/* Replaces control characters, of ASCII and those of U+0080 to U+009F, by '?', byte by byte, but for those in `kept`: names come
 * from files and command lines, and a terminal would obey them. Bytes 0x80 to 0x9f outside of UTF-8 count as such. */
void text_clean(char *text, size_t length, const char *kept);

#endif
