/*
 * The last position of each hash of `shortest` numbers is in a table, and each position knows the one before it. The
 * longest of CANDIDATES matches is taken.
 *
 * Cost: a candidate is compared up to the end of its match, and all that the longest covers is passed. So it is
 * CANDIDATES comparisons a number at most, whatever the numbers are. Memory: 4 bytes a number, and the table.
 */
#include "planner/walk/plan_copies.h"

#include <assert.h>
#include <stdlib.h>

#include "base/alloc.h"

enum { CANDIDATES = 16, TABLE_MAX = 1 << 20 };

struct plan_copies {
    const uint32_t *numbers;
    uint32_t count, shortest;
    uint32_t at;      /* numbers before it are passed */
    uint32_t *latest; /* per hash: position + 1; 0: none */
    uint32_t mask;
    uint32_t *before; /* per position: an earlier one of the same hash + 1; 0: none */
};

struct plan_copies *plan_copies_create(const uint32_t *numbers, uint32_t count, uint32_t shortest)
{
    uint32_t cells = 16;
    assert(shortest > 0);
    struct plan_copies *copies = alloc_zeroed(1, sizeof *copies);
    if (!copies) return NULL;
    while (cells < TABLE_MAX && cells < count) cells *= 2;
    *copies = (struct plan_copies){.numbers = numbers, .count = count, .shortest = shortest, .mask = cells - 1};
    copies->latest = alloc_zeroed(cells, sizeof *copies->latest);
    copies->before = alloc_zeroed((size_t)count + 1, sizeof *copies->before);
    if (copies->latest && copies->before) return copies;
    plan_copies_destroy(copies);
    return NULL;
}

void plan_copies_destroy(struct plan_copies *copies)
{
    if (!copies) return;
    free(copies->latest);
    free(copies->before);
    free(copies);
}

static bool has_hash(const struct plan_copies *c, uint32_t at) { return c->count - at >= c->shortest; }

static uint32_t hash_at(const struct plan_copies *c, uint32_t at)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < c->shortest; i++) {
        hash = (hash ^ c->numbers[at + i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return (uint32_t)(hash >> 20) & c->mask;
}

static uint32_t match_length(const struct plan_copies *c, uint32_t earlier)
{
    uint32_t length = 0;
    while (c->at + length < c->count && c->numbers[earlier + length] == c->numbers[c->at + length]) length++;
    return length;
}

/* Returns the length of the longest match at the current place; 0: none is long enough. */
static uint32_t find_match(const struct plan_copies *c, uint32_t *back)
{
    uint32_t longest = 0;
    *back = 0;
    if (!has_hash(c, c->at)) return 0;
    uint32_t next = c->latest[hash_at(c, c->at)];
    for (int tried = 0; tried < CANDIDATES && next > 0; tried++) {
        uint32_t length = match_length(c, next - 1);
        if (length >= c->shortest && length > longest) {
            longest = length;
            *back = c->at - (next - 1);
        }
        next = c->before[next - 1];
    }
    return longest;
}

static void pass(struct plan_copies *c, uint32_t count)
{
    for (uint32_t end = c->at + count; c->at < end; c->at++) {
        if (!has_hash(c, c->at)) continue;
        uint32_t *latest = &c->latest[hash_at(c, c->at)];
        c->before[c->at] = *latest;
        *latest = c->at + 1;
    }
}

bool plan_copies_next(struct plan_copies *copies, uint32_t fresh_max, struct plan_copy *out)
{
    uint32_t back;
    assert(fresh_max > 0);
    if (copies->at == copies->count) return false;
    out->count = find_match(copies, &out->back);
    pass(copies, out->count);
    out->first = copies->at;
    while (copies->at < copies->count && copies->at - out->first < fresh_max && find_match(copies, &back) == 0)
        pass(copies, 1);
    out->fresh = copies->at - out->first;
    return true;
}
