/* How a kind's batches grow, from what a serving problem says under "batch". See serving_io.h for the form. */
#ifndef SPILLWAY_SERVING_BATCH_GROWTH_H
#define SPILLWAY_SERVING_BATCH_GROWTH_H

#include "base/json/json_in.h"
#include "sim/serving/serving.h"

/*
 * "batch" of a kind whose request takes `latency_s`. *most is 1 where there is none; *growth has `most` entries
 * (struct serving_degree) and lives as long as `arena`. Errors: STATUS_BAD_INPUT with the place, among others for
 * batches that take less time than smaller ones; STATUS_NO_MEMORY.
 */
MUST_CHECK enum status batch_growth_take(struct json_object *entry, struct arena *arena, double latency_s,
                                         uint32_t *most, const double **growth, struct error *err);

/* "batch" of a network: only its "most". */
MUST_CHECK enum status batch_most_take(struct json_object *entry, uint32_t *most, struct error *err);

#endif
