#include "base/text.h"

/* Returns the length of the UTF-8 character that begins at `text`; 0 when none begins there. */
static size_t character_bytes(const unsigned char *text, size_t left)
{
    const unsigned char lead = text[0];
    const size_t wanted = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
    if (wanted > left) return 0;
    for (size_t i = 1; i < wanted; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    return wanted;
}

void text_clean(char *text, size_t length, const char *kept)
{
    unsigned char *const bytes = (unsigned char *)text;
    for (size_t i = 0; i < length;) {
        const size_t wide = character_bytes(bytes + i, length - i), step = wide > 0 ? wide : 1;
        const bool c0 = wide == 1 && (bytes[i] < 0x20 || bytes[i] == 0x7f) && !(bytes[i] && strchr(kept, bytes[i]));
        const bool c1 = wide == 2 && bytes[i] == 0xc2 && bytes[i + 1] < 0xa0;
        const bool stray = wide == 0 && bytes[i] >= 0x80 && bytes[i] < 0xa0;
        if (c0 || c1 || stray) memset(text + i, '?', step);
        i += step;
    }
}
