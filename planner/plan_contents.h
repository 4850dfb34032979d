/* What a buffer holds, range by range: the memory of plan_check(). */
#ifndef SPILLWAY_PLANNER_PLAN_CONTENTS_H
#define SPILLWAY_PLANNER_PLAN_CONTENTS_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes [first, end) of a buffer hold bytes of `thing` from thing_offset on, in this version. */
struct extent {
    uint64_t first, end;
    uint64_t thing_offset;
    uint64_t version;
    uint32_t thing;
};

/* Zeroed: nothing is held. Ends with contents_release(). */
struct contents {
    struct extent *extents; /* ascending, disjoint, neighbours that continue each other are one */
    uint32_t count, capacity;
};

/* Forget everything, keep the memory. */
void contents_clear(struct contents *contents);
void contents_release(struct contents *contents);

/* Put an extent over what was there. False: no memory. */
bool contents_put(struct contents *contents, const struct extent *extent);

/*
 * Does the range hold exactly `wanted` (wanted->first, end: the range)? If not, *found is the first
 * extent that differs, or NULL where nothing was ever put.
 */
bool contents_hold(const struct contents *contents, const struct extent *wanted,
                   const struct extent **found);

/* Copy [first, first + bytes) of `from` to `to_first` of another. *complete is false when a part of
 * the range held nothing; then nothing is copied. False: no memory. */
bool contents_copy(const struct contents *from, uint64_t first, uint64_t bytes,
                   struct contents *to, uint64_t to_first, bool *complete);

#endif
