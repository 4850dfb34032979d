/*
 * Numbers with units, as people type them and as they want to read them.
 *
 * Bytes:   B kB MB GB TB (powers of 1000), KiB MiB GiB TiB (powers of 1024)
 * Rates:   any of these with "/s"
 * Seconds: ns us ms s min h d
 * FLOP/s:  FLOP/s kFLOP/s MFLOP/s GFLOP/s TFLOP/s PFLOP/s
 * Watts:   W kW
 * Count:   a plain number
 * Memory is printed in GiB (2^30), links in GB/s (10^9), as nvidia-smi and nvbandwidth do.
 */
#ifndef SPILLWAY_BASE_QUANTITY_H
#define SPILLWAY_BASE_QUANTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum dimension {
    DIMENSION_BYTES,
    DIMENSION_BYTES_PER_S,
    DIMENSION_SECONDS,
    DIMENSION_FLOP_PER_S,
    DIMENSION_WATTS,
    DIMENSION_COUNT_OF, /* no unit */
    DIMENSION_COUNT
};

/*
 * Parse "96MiB", "2 GB/s", "1.5h" into bytes, bytes per second, seconds, FLOP per second.
 * Refused, with what was found and what was expected: no unit where one is needed, a unit of
 * another dimension, a negative number, NaN, infinity, text behind it.
 * The message does not name the place; the caller adds it with error_add().
 */
MUST_CHECK enum status quantity_parse(const char *text, enum dimension dimension, double *out,
                                      struct error *err);

/* The same; messages end with `expected` ("a time such as 72h") and not with the dimension's example. */
MUST_CHECK enum status quantity_parse_expecting(const char *text, enum dimension dimension, const char *expected,
                                                double *out, struct error *err);

/* "a size such as 96MiB", for messages. */
const char *dimension_example(enum dimension dimension);

/* Text for people, with three or four significant digits: "11.2 GiB", "24.9 GB/s", "12.3 ms",
 * "1 h 20 min", "124 439 808". `buffer` is returned. */
enum { QUANTITY_TEXT_BYTES = 48 };
const char *quantity_text(double value, enum dimension dimension, char buffer[QUANTITY_TEXT_BYTES]);

/* Writes bytes rounded up, so that the printed size is enough when it is typed: "40.8 MiB". Returns `buffer`. */
const char *quantity_bytes_at_least(uint64_t bytes, char buffer[QUANTITY_TEXT_BYTES]);

#endif
