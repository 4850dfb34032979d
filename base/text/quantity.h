/*
 * Numbers with units, for input and output.
 *
 * Bytes:   B kB MB GB TB (powers of 1000), KiB MiB GiB TiB (powers of 1024)
 *
 * Rates:   any unit of bytes with "/s"
 *
 * Seconds: ns us ms s min h d
 *
 * FLOP/s:  FLOP/s kFLOP/s MFLOP/s GFLOP/s TFLOP/s PFLOP/s
 *
 * Watts:   W kW
 *
 * Count:   a plain number
 *
 * Memory is printed in GiB (2^30), links in GB/s (10^9), as nvidia-smi and nvbandwidth do.
 */
#ifndef SPILLWAY_BASE_TEXT_QUANTITY_H
#define SPILLWAY_BASE_TEXT_QUANTITY_H

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
 * Parses a quantity such as "96MiB", "2 GB/s" or "1.5h" into bytes, bytes per second, seconds or FLOP per second.
 * Refuses a missing unit, a unit of another dimension, a negative number, NaN, infinity, and trailing text. The
 * message has the text found and the form expected. It does not name the position; the caller adds the position with
 * error_add().
 */
MUST_CHECK enum status quantity_parse(const char *text, enum dimension dimension, double *out,
                                      struct error *err);

/* Works as quantity_parse(); messages end with `expected` ("a time such as 72h") instead of the dimension's example. */
MUST_CHECK enum status quantity_parse_expecting(const char *text, enum dimension dimension, const char *expected,
                                                double *out, struct error *err);

/* Returns an example for messages: "a size such as 96MiB". */
const char *dimension_example(enum dimension dimension);

/* Writes text with three or four significant digits: "11.2 GiB", "24.9 GB/s", "12.3 ms", "1 h 20 min", "124 439 808".
 * Returns `buffer`. */
enum { QUANTITY_TEXT_BYTES = 48 };
const char *quantity_text(double value, enum dimension dimension, char buffer[QUANTITY_TEXT_BYTES]);

/* Writes bytes, rounded up so that the printed size suffices when a user types it: "40.8 MiB". Returns `buffer`. */
const char *quantity_bytes_at_least(uint64_t bytes, char buffer[QUANTITY_TEXT_BYTES]);

#endif
