/* A growing text. */
#ifndef SPILLWAY_MODELS_TOKENIZER_BYTE_LIST_H
#define SPILLWAY_MODELS_TOKENIZER_BYTE_LIST_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

/* A zeroed one is empty; free() its bytes. */
struct byte_list {
    char *bytes;
    size_t count, capacity;
};

/* Appends bytes. Errors: STATUS_NO_MEMORY. */
MUST_CHECK static inline enum status byte_list_add(struct byte_list *list, const char *bytes, size_t count,
                                                   struct error *err)
{
    if (list->capacity - list->count < count) {
        const size_t capacity = 2 * (list->count + count) + 64;
        char *const grown = alloc_resize(list->bytes, capacity);
        if (!grown) return error_memory(err, "a text", capacity);
        list->bytes = grown;
        list->capacity = capacity;
    }
    if (count > 0) memcpy(list->bytes + list->count, bytes, count);
    list->count += count;
    return STATUS_OK;
}

/* Returns the text, which is not NULL also where it is empty. */
static inline const char *byte_list_text(const struct byte_list *list)
{
    return list->bytes ? list->bytes : "";
}

#endif
