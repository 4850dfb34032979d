/* The growth of a kind's batch times, from the key "batch" of a serving problem (format: serving_io.h). */
#ifndef SPILLWAY_SIM_SERVING_BATCH_GROWTH_H
#define SPILLWAY_SIM_SERVING_BATCH_GROWTH_H

#include "base/json/json_in.h"
#include "sim/serving/serving.h"

/*
 * Reads "batch" of a kind whose request takes `latency_s`. *most is 1 without the key; *growth has `most` entries
 * (struct serving_degree) and lives as long as `arena`. Errors: STATUS_BAD_INPUT with the place, also for a batch
 * faster than a smaller one.
 */
MUST_CHECK enum status batch_growth_read(struct json_object *entry, struct arena *arena, double latency_s,
                                         uint32_t *most, const double **growth, struct error *err);

/* Reads "batch" of a network: only its "most". */
MUST_CHECK enum status batch_most_read(struct json_object *entry, uint32_t *most, struct error *err);

#endif
