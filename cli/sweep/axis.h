/*
 * An axis of a sweep: an option and its values.
 *
 *     devices=1..16             every integer
 *     devices=1..64:x4          1, 4, 16, 64
 *     link-rate=6..64GB/s       doubled, then the end: 6, 12, 24, 48, 64 GB/s
 *     link-rate=10..30GB/s:5    five values at equal distances
 *     device-memory=8..24GiB:+4 steps of 4 GiB
 *     link-rate=6,12,24GB/s     a list; numbers and ranges without a unit take the unit of the last item
 *     policy=fifo,srtf
 *
 * Items may be ranges: devices=1..4,8,16. '.' in a name counts as '-'.
 */
#ifndef SPILLWAY_CLI_SWEEP_AXIS_H
#define SPILLWAY_CLI_SWEEP_AXIS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

enum { SWEEP_VALUES_MAX = 10000, SWEEP_NAME_BYTES = 64 };

struct sweep_value {
    const char *text; /* as typed */
    double number;    /* without unit; NAN if it is none */
};

struct sweep_axis {
    const char *name; /* as typed */
    const char *unit; /* of all numbers, such as "GB/s"; or "" */
    struct sweep_value *values;
    size_t count;     /* at least 1 */
    bool numeric;     /* all are numbers with the same unit */
};

/*
 * Reads NAME=VALUES into the arena. Errors: STATUS_BAD_INPUT if name or value is missing, a range is backwards or
 * endless, or a value comes twice; STATUS_LIMIT past SWEEP_VALUES_MAX.
 */
MUST_CHECK enum status sweep_axis_parse(const char *text, struct arena *arena, struct sweep_axis *out,
                                        struct error *err);

#endif
