/*
 * Memory that dies together.
 *
 * An arena hands out zeroed pieces of growing blocks; nothing is freed on its own. A zeroed struct
 * arena is empty and ready. arena_release() gives everything back and leaves it empty again.
 */
#ifndef SPILLWAY_BASE_ARENA_H
#define SPILLWAY_BASE_ARENA_H

#include <stddef.h>

#include "base/error.h"

struct arena_block;
struct arena_adopted;

struct arena {
    struct arena_block *newest; /* may be NULL */
    struct arena_adopted *adopted; /* may be NULL */
    size_t total_bytes;         /* handed out so far */
};

/*
 * `count` zeroed elements of `size` bytes, aligned to 16.
 * count 0 gives a valid pointer that must not be read.
 * Errors: STATUS_NO_MEMORY, also when count * size overflows. *out is untouched then.
 */
MUST_CHECK enum status arena_array(struct arena *arena, size_t count, size_t size, void **out,
                                   struct error *err);

/* A copy of `text` that lives as long as the arena. */
MUST_CHECK enum status arena_string(struct arena *arena, const char *text, const char **out,
                                    struct error *err);

/* Takes memory over that alloc_resize() made, `bytes` long: it is freed with the arena, where it is. On failure,
 * STATUS_NO_MEMORY, it stays the caller's. */
MUST_CHECK enum status arena_adopt(struct arena *arena, void *memory, size_t bytes, struct error *err);

void arena_release(struct arena *arena);

/*
 * Make room for one more element at the end of a malloc'ed array, doubling it when it is full.
 * `items` is the address of the array pointer (a struct x **, passed as void *), which the caller
 * frees with free(). `limit` is the most elements allowed and `what` its name in the message
 * ("too many tasks (limit is 16777216)").
 * Errors: STATUS_LIMIT, STATUS_NO_MEMORY; the array is untouched then.
 */
MUST_CHECK static inline enum status array_reserve(void *items, size_t *capacity, size_t count, size_t size,
                                                   size_t limit, const char *what, struct error *err);

/* --- what is called for each element of millions is no call ----------------------------------- */

/* Of array_reserve(), where there is no room or no more is allowed. */
MUST_CHECK enum status array_grow(void *items, size_t *capacity, size_t count, size_t size,
                                  size_t limit, const char *what, struct error *err);

static inline enum status array_reserve(void *items, size_t *capacity, size_t count, size_t size,
                                        size_t limit, const char *what, struct error *err)
{
    if (count < *capacity && count < limit) return STATUS_OK;
    return array_grow(items, capacity, count, size, limit, what, err);
}

#endif
