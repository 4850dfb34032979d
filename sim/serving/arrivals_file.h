/*
 * Recorded requests from a text file: one per line, SECONDS or SECONDS MODEL, in ascending order.
 *
 *     # seconds, number of the model
 *     0.25 0
 *     0.31 2
 *
 * Spaces, tabs or a comma separate the two numbers. Empty lines and text after '#' are ignored.
 */
#ifndef SPILLWAY_SIM_SERVING_ARRIVALS_FILE_H
#define SPILLWAY_SIM_SERVING_ARRIVALS_FILE_H

#include "sim/serving/serving.h"

/*
 * Reads the requests of models [0, model_count) into `out`; they live as long as `arena`. With one model, lines need
 * not name it. Errors: STATUS_BAD_INPUT with file, line and column; STATUS_IO; STATUS_LIMIT for more than
 * SERVING_REQUESTS_MAX requests or a file of 4 GiB.
 */
MUST_CHECK enum status arrivals_read(const char *path, struct arena *arena, uint32_t model_count,
                                     struct serving_traffic *out, struct error *err);

/* Reads them from memory; `text` ends with NUL, `path` is for messages. */
MUST_CHECK enum status arrivals_parse(const char *path, const char *text, struct arena *arena, uint32_t model_count,
                                      struct serving_traffic *out, struct error *err);

#endif
