/* Small questions about texts. */
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

#endif
