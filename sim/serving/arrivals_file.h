/*
 * Requests as they came, from a text file: one a line, SECONDS or SECONDS MODEL, in ascending order.
 *
 *     # seconds, number of the model
 *     0.25 0
 *     0.31 2
 *
 * Blanks, tabs or a comma between the two; empty lines and what follows a '#' mean nothing.
 */
#ifndef SPILLWAY_SERVING_ARRIVALS_FILE_H
#define SPILLWAY_SERVING_ARRIVALS_FILE_H

#include "sim/serving/serving.h"

/*
 * The requests of `model_count` models, numbered from 0, into out[0 .. model_count), which live as long as
 * `arena`. With one model lines need not name it. Errors: STATUS_BAD_INPUT with file, line and column; STATUS_IO;
 * STATUS_LIMIT for more than SERVING_REQUESTS_MAX or a file of 4 GiB; STATUS_NO_MEMORY.
 */
MUST_CHECK enum status arrivals_read(const char *path, struct arena *arena, uint32_t model_count,
                                     struct serving_traffic *out, struct error *err);

/* The same from memory; `text` ends with a NUL, `path` stands in messages. */
MUST_CHECK enum status arrivals_parse(const char *path, const char *text, struct arena *arena, uint32_t model_count,
                                      struct serving_traffic *out, struct error *err);

#endif
