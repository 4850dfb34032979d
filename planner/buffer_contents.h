/* What a buffer holds, range by range: the memory of plan_check(). */
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

/* Zeroed: nothing is held. Ends with buffer_contents_release(). */
struct buffer_contents {
    struct buffer_extent *extents; /* ascending, disjoint, neighbours that continue each other are one */
    uint32_t count, capacity;
};

/* Forget everything, keep the memory. */
void buffer_contents_clear(struct buffer_contents *contents);
void buffer_contents_release(struct buffer_contents *contents);

/* Put an extent over what was there. False: no memory. */
bool buffer_contents_put(struct buffer_contents *contents, const struct buffer_extent *extent);

/*
 * Does the range hold exactly `wanted` (wanted->first, end: the range)? If not, *found is the first
 * extent that differs, or NULL where nothing was ever put.
 */
bool buffer_contents_hold(const struct buffer_contents *contents, const struct buffer_extent *wanted,
                   const struct buffer_extent **found);

/* Copy [first, first + bytes) of `from` to `to_first` of another. *complete is false when a part of
 * the range held nothing; then nothing is copied. False: no memory. */
bool buffer_contents_copy(const struct buffer_contents *from, uint64_t first, uint64_t bytes,
                   struct buffer_contents *to, uint64_t to_first, bool *complete);

#endif
