/*
 * One thing that a sweep varies: its name, and the values that it takes in turn.
 *
 *     devices=1..16             every whole number
 *     devices=1..64:x4          1, 4, 16, 64
 *     link-rate=6..64GB/s       doubling, and the end: 6, 12, 24, 48, 64 GB/s
 *     link-rate=10..30GB/s:5    five values at equal distances
 *     device-memory=8..24GiB:+4 steps of 4 GiB
 *     link-rate=6,12,24GB/s     as they stand; numbers and ranges without a unit have the last item's
 *     policy=fifo,srtf
 *
 * Items of a list may be ranges: devices=1..4,8,16. A '.' in a name counts as '-': link.rate is link-rate.
 */
#ifndef SPILLWAY_SWEEP_AXIS_H
#define SPILLWAY_SWEEP_AXIS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

enum { SWEEP_VALUES_MAX = 10000, SWEEP_NAME_BYTES = 64 };

struct sweep_value {
    const char *text; /* as it stands on a command line */
    double number;    /* NAN where it is none; without its unit */
};

struct sweep_axis {
    const char *name; /* as typed */
    const char *unit; /* that all numbers have, such as "GB/s"; "" when they have none or differ */
    struct sweep_value *values;
    size_t count;     /* at least 1 */
    bool numeric;     /* every value is a number, and all have the unit */
};

/*
 * Read NAME=VALUES. What is made lives in the arena.
 * Errors (STATUS_BAD_INPUT): no name or no value, a range that ends before it begins or would not end, a value twice;
 * STATUS_LIMIT past SWEEP_VALUES_MAX; STATUS_NO_MEMORY.
 */
MUST_CHECK enum status sweep_axis_parse(const char *text, struct arena *arena, struct sweep_axis *out,
                                        struct error *err);

#endif
