/*
 * Arenas: memory that is freed all at once.
 *
 * An arena hands out zeroed pieces of growing blocks. Pieces are not freed one by one. A zeroed struct arena is empty
 * and ready for use. arena_release() frees all pieces, but for those that another arena shares, and leaves
 * the arena empty.
 */
#ifndef SPILLWAY_BASE_ARENA_H
#define SPILLWAY_BASE_ARENA_H

#include <stddef.h>

#include "base/error.h"

struct arena_block;
struct arena_adopted;
struct arena_shared;

struct arena {
    struct arena_block *newest; /* may be NULL */
    struct arena_adopted *adopted; /* may be NULL */
    struct arena_shared *shared; /* pieces that other arenas hold, too; may be NULL */
    size_t total_bytes;         /* handed out so far */
};

/*
 * Allocates an array of `count` zeroed elements and stores its address in `pointer`, whose type gives the
 * size of an element:
 *
 *     struct job *jobs;
 *     TRY(ARENA_NEW(arena, job_count, jobs, err));
 *
 * count 0 gives a valid pointer that must not be dereferenced. The array is aligned to 16 bytes.
 * Errors: STATUS_NO_MEMORY, also when the size overflows. `pointer` is untouched then.
 */
#define ARENA_NEW(arena, count, pointer, err) arena_array(arena, count, sizeof *(pointer), &(pointer), err)

/* As ARENA_NEW() with the size of an element in bytes: for tables of arrays, and for copies of unknown type.
 * `pointer` is the address of the pointer (a struct x **, passed as void *). */
MUST_CHECK enum status arena_array(struct arena *arena, size_t count, size_t size, void *pointer,
                                   struct error *err);

/* Sets *out to a copy of `text` that lives as long as the arena. */
MUST_CHECK enum status arena_string(struct arena *arena, const char *text, const char **out,
                                    struct error *err);

/* Takes over `memory`, `bytes` long, which alloc_resize() returned. It keeps its address and is freed with the arena.
 * Errors: STATUS_NO_MEMORY; the memory stays the caller's then. */
MUST_CHECK enum status arena_adopt(struct arena *arena, void *memory, size_t bytes, struct error *err);

/* Lets the empty arena `to` hold the pieces of `from` so far, too. They are freed when both arenas, and all others that
 * share them, are released. Not for several threads. Errors: STATUS_NO_MEMORY; both arenas are untouched then. */
MUST_CHECK enum status arena_share(struct arena *from, struct arena *to, struct error *err);

void arena_release(struct arena *arena);

/*
 * Makes room for one more element at the end of a malloc'ed array. A full array is doubled. `items` is the address of
 * the array pointer (a struct x **, passed as void *); the caller frees the array with free(). `limit` is the largest
 * number of elements, `what` the name of the elements in the message ("too many tasks (limit is 16777216)").
 * Errors: STATUS_LIMIT, STATUS_NO_MEMORY; the array is untouched then.
 */
MUST_CHECK static inline enum status array_reserve(void *items, size_t *capacity, size_t count, size_t size,
                                                   size_t limit, const char *what, struct error *err);

/* --- inline, because it is called for each of millions of elements ------------------------------ */

/* Does the slow path of array_reserve(): the array is full, or `limit` is reached. */
MUST_CHECK enum status array_grow(void *items, size_t *capacity, size_t count, size_t size,
                                  size_t limit, const char *what, struct error *err);

static inline enum status array_reserve(void *items, size_t *capacity, size_t count, size_t size,
                                        size_t limit, const char *what, struct error *err)
{
    if (count < *capacity && count < limit) return STATUS_OK;
    return array_grow(items, capacity, count, size, limit, what, err);
}

#endif
