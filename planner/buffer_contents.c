/*
 * Nearly all lists have one extent. The exceptions: an embedding's state on the host while its slices are updated, a
 * table that begins a state, a slice's three parts. With neighbours merged, a sliced embedding's host state has few
 * extents:
 *
 *     parts            [ p ............ | m ............ | v ............ ]
 *     after slice 2    [ v1 ...| v0 ... | v1 ...| v0 ... | v1 ...| v0 ... ]
 *
 * Cost: a binary search, and a move of later extents when their number changes.
 */
#include "planner/buffer_contents.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

void buffer_contents_clear(struct buffer_contents *contents)
{
    contents->count = 0;
}

void buffer_contents_release(struct buffer_contents *contents)
{
    free(contents->extents);
    *contents = (struct buffer_contents){0};
}

/* Returns the first extent that ends after `offset`. */
static uint32_t find(const struct buffer_contents *contents, uint64_t offset)
{
    uint32_t low = 0, high = contents->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (contents->extents[middle].end > offset)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool continues(const struct buffer_extent *a, const struct buffer_extent *b)
{
    return a->end == b->first && a->thing == b->thing && a->version == b->version &&
           a->thing_offset + (a->end - a->first) == b->thing_offset;
}

static bool replace(struct buffer_contents *contents, uint32_t low, uint32_t high,
                    const struct buffer_extent *pieces, uint32_t count)
{
    uint32_t total = contents->count - (high - low) + count;
    if (total > contents->capacity) {
        uint32_t capacity = contents->capacity > 0 ? contents->capacity * 2 : 4;
        void *larger = alloc_resize(contents->extents, capacity * sizeof *contents->extents);
        if (!larger) return false;
        contents->extents = larger;
        contents->capacity = capacity;
    }
    assert(total <= contents->capacity);
    memmove(contents->extents + low + count, contents->extents + high,
            (contents->count - high) * sizeof *contents->extents);
    memcpy(contents->extents + low, pieces, count * sizeof *pieces);
    contents->count = total;
    return true;
}

/* Handles the usual case: the new extent covers all contents. Returns false in other cases. */
static bool put_alone(struct buffer_contents *contents, const struct buffer_extent *extent)
{
    if (contents->capacity == 0 || contents->count > 1) return false;
    struct buffer_extent *only = contents->extents;
    if (contents->count == 1 && (only->first < extent->first || only->end > extent->end)) return false;
    *only = *extent;
    contents->count = 1;
    return true;
}

bool buffer_contents_put(struct buffer_contents *contents, const struct buffer_extent *extent)
{
    if (extent->first == extent->end || put_alone(contents, extent)) return true;
    uint32_t low = find(contents, extent->first), high = low;
    while (high < contents->count && contents->extents[high].first < extent->end) high++;

    struct buffer_extent pieces[3];
    uint32_t count = 0;
    if (low < high && contents->extents[low].first < extent->first) {
        pieces[count] = contents->extents[low];
        pieces[count++].end = extent->first;
    } else if (low > 0 && continues(&contents->extents[low - 1], extent)) {
        pieces[count++] = contents->extents[--low];
    }
    if (count > 0 && continues(&pieces[count - 1], extent))
        pieces[count - 1].end = extent->end;
    else
        pieces[count++] = *extent;

    struct buffer_extent rest;
    bool has_rest = false;
    if (low < high && contents->extents[high - 1].end > extent->end) {
        rest = contents->extents[high - 1];
        rest.thing_offset += extent->end - rest.first;
        rest.first = extent->end;
        has_rest = true;
    } else if (high < contents->count && continues(extent, &contents->extents[high])) {
        rest = contents->extents[high++];
        has_rest = true;
    }
    if (has_rest && continues(&pieces[count - 1], &rest))
        pieces[count - 1].end = rest.end;
    else if (has_rest)
        pieces[count++] = rest;
    return replace(contents, low, high, pieces, count);
}

bool buffer_contents_hold(const struct buffer_contents *contents, const struct buffer_extent *wanted,
                          const struct buffer_extent **found)
{
    uint64_t at = wanted->first;
    const struct buffer_extent *only = contents->extents;
    if (contents->count == 1 && only->first <= at && only->end >= wanted->end && at < wanted->end) {
        *found = only;
        return only->thing == wanted->thing && only->version == wanted->version &&
               only->thing_offset + (at - only->first) == wanted->thing_offset;
    }
    for (uint32_t i = find(contents, at); at < wanted->end; i++) {
        *found = NULL;
        if (i == contents->count || contents->extents[i].first > at) return false;
        const struct buffer_extent *e = &contents->extents[i];
        *found = e;
        if (e->thing != wanted->thing || e->version != wanted->version ||
            e->thing_offset + (at - e->first) != wanted->thing_offset + (at - wanted->first))
            return false;
        at = e->end;
    }
    return true;
}

static bool holds_anything(const struct buffer_contents *contents, uint64_t first, uint64_t end)
{
    uint64_t at = first;
    for (uint32_t i = find(contents, at); at < end; i++) {
        if (i == contents->count || contents->extents[i].first > at) return false;
        at = contents->extents[i].end;
    }
    return true;
}

bool buffer_contents_copy(const struct buffer_contents *from, uint64_t first, uint64_t bytes,
                          struct buffer_contents *to, uint64_t to_first, bool *complete)
{
    assert(from != to);
    uint64_t end = first + bytes;
    *complete = holds_anything(from, first, end);
    if (!*complete) return true;
    for (uint32_t i = find(from, first); i < from->count && from->extents[i].first < end; i++) {
        struct buffer_extent piece = from->extents[i];
        if (piece.first < first) {
            piece.thing_offset += first - piece.first;
            piece.first = first;
        }
        if (piece.end > end) piece.end = end;
        piece.first = piece.first - first + to_first;
        piece.end = piece.end - first + to_first;
        if (!buffer_contents_put(to, &piece)) return false;
    }
    return true;
}
