/*
 * A plan consists of millions of small objects that are made one after the other and freed
 * together. Freeing them one by one costs time and, on an error path, may leak; an arena makes the
 * lifetime a single object.
 *
 *     newest ->  [ header | piece | piece | free ... ]  ->  [ header | piece | ... ]  ->  NULL
 *
 * Blocks double from 64 KiB to 16 MiB, so that a small job set costs a page or two and a large plan
 * few calls. A piece that needs more than the next block gets a block of its own. That block
 * follows the newest one in the list, so that the free part of the newest block stays in use.
 * Blocks come zeroed from calloc, which gets fresh pages from the kernel without touching them: a
 * large array costs no memory until it is written.
 */
#include "base/arena.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "base/try.h"

enum { PARTITION_ARENA_ALIGNMENT = 16 };

static const size_t first_block_bytes = (size_t)64 << 10;
static const size_t largest_block_bytes = (size_t)16 << 20;

struct arena_block {
    struct arena_block *older; /* may be NULL */
    size_t capacity_bytes;     /* after the header */
    size_t used_bytes;         /* a multiple of PARTITION_ARENA_ALIGNMENT */
};

static_assert(sizeof(struct arena_block) <= 2 * PARTITION_ARENA_ALIGNMENT, "the header fits HEADER_BYTES");
enum { HEADER_BYTES = 2 * PARTITION_ARENA_ALIGNMENT };

/* Memory taken over by the arena; this record is a piece of the arena. */
struct arena_adopted {
    struct arena_adopted *older; /* may be NULL */
    void *memory;
};

/* Pieces of several arenas. */
struct arena_shared {
    struct arena arena;
    size_t holders; /* at least 1 */
};

/* --- blocks --------------------------------------------------------------------------------- */

static struct arena_block *block_create(size_t capacity_bytes)
{
    struct arena_block *block = alloc_zeroed(1, HEADER_BYTES + capacity_bytes);
    if (block) block->capacity_bytes = capacity_bytes;
    return block;
}

static void *block_take(struct arena_block *block, size_t bytes)
{
    assert(bytes <= block->capacity_bytes - block->used_bytes);
    void *piece = (char *)block + HEADER_BYTES + block->used_bytes;
    block->used_bytes += bytes;
    return piece;
}

/* Returns NULL if memory ends; `bytes` is a multiple of the alignment. */
static void *allocate_block(struct arena *arena, size_t bytes)
{
    struct arena_block *newest = arena->newest;
    size_t next_bytes = first_block_bytes;
    if (newest && newest->capacity_bytes < largest_block_bytes / 2)
        next_bytes = newest->capacity_bytes * 2;
    else if (newest)
        next_bytes = largest_block_bytes;
    if (next_bytes < first_block_bytes) next_bytes = first_block_bytes;

    bool own = bytes > next_bytes;
    struct arena_block *block = block_create(own ? bytes : next_bytes);
    if (!block) return NULL;
    if (own && newest) {
        block->older = newest->older;
        newest->older = block;
    } else {
        block->older = newest;
        arena->newest = block;
    }
    return block_take(block, bytes);
}

/* --- public --------------------------------------------------------------------------------- */

enum status arena_array(struct arena *arena, size_t count, size_t size, void *pointer,
                        struct error *err)
{
    uint64_t wanted;
    if (!size_mul(count, size, &wanted) || wanted > SIZE_MAX / 2)
        return error_set(err, STATUS_NO_MEMORY, "no memory for %zu elements of %zu bytes", count,
                         size);
    size_t bytes = (size_t)size_align(wanted > 0 ? wanted : 1, PARTITION_ARENA_ALIGNMENT);
    struct arena_block *newest = arena->newest;
    void *piece;
    if (newest && bytes <= newest->capacity_bytes - newest->used_bytes)
        piece = block_take(newest, bytes);
    else
        piece = allocate_block(arena, bytes);
    if (!piece)
        return error_set(err, STATUS_NO_MEMORY, "no memory for %zu elements of %zu bytes", count,
                         size);
    arena->total_bytes += bytes;
    memcpy(pointer, &piece, sizeof piece);
    return STATUS_OK;
}

enum status arena_string(struct arena *arena, const char *text, const char **out,
                         struct error *err)
{
    size_t bytes = strlen(text) + 1;
    void *copy;
    TRY(arena_array(arena, bytes, 1, &copy, err));
    memcpy(copy, text, bytes);
    *out = copy;
    return STATUS_OK;
}

enum status arena_adopt(struct arena *arena, void *memory, size_t bytes, struct error *err)
{
    void *piece;
    TRY(arena_array(arena, 1, sizeof *arena->adopted, &piece, err));
    struct arena_adopted *adopted = piece;
    *adopted = (struct arena_adopted){.older = arena->adopted, .memory = memory};
    arena->adopted = adopted;
    arena->total_bytes += bytes;
    return STATUS_OK;
}

enum status arena_share(struct arena *from, struct arena *to, struct error *err)
{
    assert(!to->newest && !to->adopted && !to->shared);
    if (from->newest || from->adopted || !from->shared) {
        struct arena_shared *shared = alloc_zeroed(1, sizeof *shared);
        if (!shared) return error_memory(err, "shared memory", sizeof *shared);
        *shared = (struct arena_shared){.arena = *from, .holders = 1};
        *from = (struct arena){.shared = shared, .total_bytes = from->total_bytes};
    }
    from->shared->holders++;
    to->shared = from->shared;
    return STATUS_OK;
}

static void release_shared(struct arena_shared *shared)
{
    if (!shared || --shared->holders > 0) return;
    arena_release(&shared->arena);
    free(shared);
}

void arena_release(struct arena *arena)
{
    release_shared(arena->shared);
    for (const struct arena_adopted *adopted = arena->adopted; adopted; adopted = adopted->older)
        free(adopted->memory);
    struct arena_block *block = arena->newest;
    while (block) {
        struct arena_block *older = block->older;
        free(block);
        block = older;
    }
    *arena = (struct arena){0};
}

enum status array_grow(void *items, size_t *capacity, size_t count, size_t size, size_t limit,
                       const char *what, struct error *err)
{
    assert(count <= *capacity);
    assert(size > 0);
    if (count >= limit)
        return error_set(err, STATUS_LIMIT, "too many %s (limit is %zu)", what, limit);

    size_t larger = *capacity < 8 ? 16 : *capacity <= SIZE_MAX / 2 ? *capacity * 2 : SIZE_MAX;
    if (larger > limit) larger = limit;
    uint64_t bytes;
    if (!size_mul(larger, size, &bytes) || bytes > SIZE_MAX / 2)
        return error_memory(err, what, SIZE_MAX);

    /* The array pointer may be of any object type: copied as bytes, never read as a void *. */
    void *memory;
    memcpy(&memory, items, sizeof memory);
    memory = alloc_resize(memory, (size_t)bytes);
    if (!memory) return error_memory(err, what, bytes);
    memcpy(items, &memory, sizeof memory);
    *capacity = larger;
    return STATUS_OK;
}
