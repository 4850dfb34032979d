/*
 * Blocks are records, linked with their neighbours in a segment. A pool's free blocks are in an array sorted by size
 * and age: binary search finds the best fit, and a removal moves the rest.
 */
#include "sim/caching.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define NONE UINT32_MAX
#define BLOCK_MIN UINT64_C(512)
#define MEBI (UINT64_C(1) << 20)
#define SMALL_MOST MEBI
#define SMALL_SEGMENT (2 * MEBI)
#define LARGE_SEGMENT (20 * MEBI)
#define LARGE_SEGMENT_BELOW (10 * MEBI)
#define SEGMENT_MULTIPLE (2 * MEBI)

enum pool { POOL_SMALL, POOL_LARGE, POOL_COUNT };

struct block {
    uint64_t address;      /* consecutive, in the order of reservation */
    uint64_t bytes;
    uint32_t before, behind; /* neighbours in the segment, or NONE; `behind` of an unused record: the next one */
    uint8_t pool;
    bool in_use;
};

struct caching_row {
    uint32_t *blocks; /* by (bytes, address) */
    uint32_t count, capacity;
};

struct sim_caching {
    uint64_t capacity_bytes, next_address;
    struct block *blocks;
    uint32_t count, capacity, unused; /* unused: a list */
    struct caching_row rows[POOL_COUNT];
    struct sim_reserved reserved;
};

struct sim_caching *sim_caching_create(uint64_t capacity_bytes)
{
    struct sim_caching *c = alloc_zeroed(1, sizeof *c);
    if (!c) return NULL;
    c->capacity_bytes = capacity_bytes;
    c->unused = NONE;
    return c;
}

void sim_caching_destroy(struct sim_caching *caching)
{
    if (!caching) return;
    free(caching->blocks);
    for (int p = 0; p < POOL_COUNT; p++) free(caching->rows[p].blocks);
    free(caching);
}

const struct sim_reserved *sim_caching_reserved(const struct sim_caching *caching) { return &caching->reserved; }

/* --- records ---------------------------------------------------------------------------------- */

/* Doubles an array. Returns NULL without memory, with the array unchanged. */
static void *grow(void *items, uint32_t *capacity, size_t size)
{
    uint32_t larger = *capacity > 0 ? 2 * *capacity : 16;
    void *memory = larger < NONE / 2 ? alloc_resize(items, larger * size) : NULL;
    if (memory) *capacity = larger;
    return memory;
}

/* Makes room for a request or release: two records, and a place in each row for every record. */
static bool make_room(struct sim_caching *c)
{
    if (c->count + 2 > c->capacity) {
        struct block *blocks = grow(c->blocks, &c->capacity, sizeof *c->blocks);
        if (!blocks) return false;
        c->blocks = blocks;
    }
    for (int p = 0; p < POOL_COUNT; p++) {
        struct caching_row *row = &c->rows[p];
        while (row->capacity < c->capacity) {
            uint32_t *blocks = grow(row->blocks, &row->capacity, sizeof *row->blocks);
            if (!blocks) return false;
            row->blocks = blocks;
        }
    }
    return true;
}

static uint32_t new_block(struct sim_caching *c, struct block block)
{
    uint32_t index = c->unused;
    if (index != NONE)
        c->unused = c->blocks[index].behind;
    else
        index = c->count++;
    c->blocks[index] = block;
    return index;
}

static void drop_block(struct sim_caching *c, uint32_t index)
{
    c->blocks[index].behind = c->unused;
    c->unused = index;
}

/* --- sorted arrays of free blocks -------------------------------------------------------------- */

/* Returns a block's position, present or not. */
static uint32_t place_in_row(const struct sim_caching *c, const struct caching_row *row, uint64_t bytes,
                             uint64_t address)
{
    uint32_t low = 0, high = row->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        const struct block *block = &c->blocks[row->blocks[middle]];
        if (block->bytes < bytes || (block->bytes == bytes && block->address < address))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void row_add(struct sim_caching *c, uint32_t index)
{
    const struct block *block = &c->blocks[index];
    struct caching_row *row = &c->rows[block->pool];
    uint32_t at = place_in_row(c, row, block->bytes, block->address);
    memmove(&row->blocks[at + 1], &row->blocks[at], (row->count - at) * sizeof *row->blocks);
    row->blocks[at] = index;
    row->count++;
}

static void row_remove(struct sim_caching *c, uint32_t index)
{
    const struct block *block = &c->blocks[index];
    struct caching_row *row = &c->rows[block->pool];
    uint32_t at = place_in_row(c, row, block->bytes, block->address);
    assert(row->blocks[at] == index);
    row->count--;
    memmove(&row->blocks[at], &row->blocks[at + 1], (row->count - at) * sizeof *row->blocks);
}

/* --- segments --------------------------------------------------------------------------------- */

static uint64_t round_up(uint64_t bytes, uint64_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

static uint64_t segment_bytes(uint64_t bytes)
{
    if (bytes <= SMALL_MOST) return SMALL_SEGMENT;
    return bytes < LARGE_SEGMENT_BELOW ? LARGE_SEGMENT : round_up(bytes, SEGMENT_MULTIPLE);
}

static void give_segments_back(struct sim_caching *c)
{
    c->reserved.given_back++;
    for (int p = 0; p < POOL_COUNT; p++) {
        struct caching_row *row = &c->rows[p];
        uint32_t kept = 0;
        for (uint32_t i = 0; i < row->count; i++) {
            uint32_t index = row->blocks[i];
            const struct block *block = &c->blocks[index];
            if (block->before != NONE || block->behind != NONE) {
                row->blocks[kept++] = index;
                continue;
            }
            c->reserved.reserved_bytes -= block->bytes;
            drop_block(c, index);
        }
        row->count = kept;
    }
}

/* Reserves a segment and returns its free block, which is in no row. */
static uint32_t reserve(struct sim_caching *c, uint64_t bytes, enum pool pool)
{
    struct sim_reserved *r = &c->reserved;
    uint64_t segment = segment_bytes(bytes);
    if (r->reserved_bytes + segment > c->capacity_bytes) give_segments_back(c);
    r->reserved_bytes += segment;
    r->segments++;
    if (r->reserved_bytes > r->reserved_peak_bytes) r->reserved_peak_bytes = r->reserved_bytes;
    if (r->reserved_bytes > c->capacity_bytes && r->reserved_bytes - c->capacity_bytes > r->short_bytes)
        r->short_bytes = r->reserved_bytes - c->capacity_bytes;
    c->next_address += segment;
    return new_block(c, (struct block){c->next_address - segment, segment, NONE, NONE, (uint8_t)pool, false});
}

/* --- public ----------------------------------------------------------------------------------- */

static void split(struct sim_caching *c, uint32_t index, uint64_t bytes)
{
    struct block *block = &c->blocks[index];
    uint64_t left = block->bytes - bytes;
    if (block->pool == POOL_SMALL ? left < BLOCK_MIN : left <= SMALL_MOST) return;
    uint32_t rest = new_block(c,
                              (struct block){block->address + bytes, left, index, block->behind, block->pool, false});
    if (block->behind != NONE) c->blocks[block->behind].before = rest;
    block->behind = rest;
    block->bytes = bytes;
    row_add(c, rest);
}

bool sim_caching_allocate(struct sim_caching *c, uint64_t bytes, uint32_t *out)
{
    struct sim_reserved *r = &c->reserved;
    uint64_t size = round_up(bytes > 0 ? bytes : 1, BLOCK_MIN);
    enum pool pool = size <= SMALL_MOST ? POOL_SMALL : POOL_LARGE;
    const struct caching_row *row = &c->rows[pool];
    if (!make_room(c)) return false;
    uint32_t at = place_in_row(c, row, size, 0), index;
    if (at < row->count) {
        index = row->blocks[at];
        row_remove(c, index);
    } else {
        index = reserve(c, size, pool);
    }
    split(c, index, size);
    c->blocks[index].in_use = true;
    r->allocated_bytes += c->blocks[index].bytes;
    if (r->allocated_bytes > r->allocated_peak_bytes) r->allocated_peak_bytes = r->allocated_bytes;
    *out = index;
    return true;
}

/* Merges the block after `front` into it; both are in no row. */
static uint32_t merge(struct sim_caching *c, uint32_t front, uint32_t back)
{
    c->blocks[front].bytes += c->blocks[back].bytes;
    c->blocks[front].behind = c->blocks[back].behind;
    if (c->blocks[front].behind != NONE) c->blocks[c->blocks[front].behind].before = front;
    drop_block(c, back);
    return front;
}

void sim_caching_give(struct sim_caching *c, uint32_t index)
{
    struct block *block = &c->blocks[index];
    uint32_t before = block->before, behind = block->behind;
    assert(block->in_use);
    block->in_use = false;
    c->reserved.allocated_bytes -= block->bytes;
    if (before != NONE && !c->blocks[before].in_use) {
        row_remove(c, before);
        index = merge(c, before, index);
    }
    if (behind != NONE && !c->blocks[behind].in_use) {
        row_remove(c, behind);
        merge(c, index, behind);
    }
    row_add(c, index);
}
