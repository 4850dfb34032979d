/* The contents of a buffer, range by range: the memory of plan_check(). */
#ifndef SPILLWAY_PLANNER_BUFFER_CONTENTS_H
#define SPILLWAY_PLANNER_BUFFER_CONTENTS_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes [first, end) of a buffer hold bytes of `thing` from thing_offset on, in this version. */
struct buffer_extent {
    uint64_t first, end;
    uint64_t thing_offset;
    uint64_t version;
    uint32_t thing;
};

/* Zeroed: empty. Ends with buffer_contents_release(). */
struct buffer_contents {
    struct buffer_extent *extents; /* ascending, disjoint; neighbours that continue each other are merged */
    uint32_t count, capacity;
};

/* Removes all extents and keeps the memory. */
void buffer_contents_clear(struct buffer_contents *contents);
void buffer_contents_release(struct buffer_contents *contents);

/* Puts an extent over the contents of its range. Returns false without memory. */
bool buffer_contents_put(struct buffer_contents *contents, const struct buffer_extent *extent);

/*
 * Returns true when the range holds exactly `wanted` (wanted->first, end: the range). Else *found is the first
 * different extent, or NULL for bytes never put.
 */
bool buffer_contents_hold(const struct buffer_contents *contents, const struct buffer_extent *wanted,
                   const struct buffer_extent **found);

/* Copies [first, first + bytes) of `from` to another's `to_first`. *complete is false when a part was empty; then
 * nothing is copied. Returns false without memory. */
bool buffer_contents_copy(const struct buffer_contents *from, uint64_t first, uint64_t bytes,
                   struct buffer_contents *to, uint64_t to_first, bool *complete);

#endif
