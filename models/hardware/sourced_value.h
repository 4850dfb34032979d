/*
 * Values in files: a number with unit, kind, source and date; see models/hardware/hardware.h.
 *
 * A table lists the values of a struct. Reading and writing use the same table and therefore
 * agree.
 */
#ifndef SPILLWAY_MODELS_HARDWARE_SOURCED_VALUE_H
#define SPILLWAY_MODELS_HARDWARE_SOURCED_VALUE_H

#include <stddef.h>

#include "base/json/json_out.h"
#include "models/hardware/hardware.h"

struct sourced_value_spec {
    const char *key;
    size_t offset;            /* offset of the struct sourced_value */
    enum dimension dimension; /* DIMENSION_COUNT_OF: a ratio */
    enum json_need need;
    double min, max; /* in base units */
};

#define SOURCED_VALUE(type, key, field, dimension, need, min, max)                                       \
    {key, offsetof(struct type, field), dimension, need, min, max}

/* Takes the values specs[0 .. count) from `object` into the struct at `base`. Absent optional
 * values are untouched. */
MUST_CHECK enum status sourced_values_read(struct json_object *object, const struct sourced_value_spec *specs,
                                           size_t count, struct arena *arena, void *base,
                                           struct error *err);

/* Writes values; skips values without source and value. */
void sourced_values_write(struct json_out *out, const struct sourced_value_spec *specs, size_t count,
                          const void *base);

/* Takes a required string and copies it to the arena. */
MUST_CHECK enum status sourced_values_read_text(struct json_object *object, const char *key,
                                                struct arena *arena, const char **out,
                                                struct error *err);

/* Takes a required array of 1 to `limit` elements, returns their number in *count, and allocates
 * zeroed room for them. `out` is the address of the pointer to them (a struct x **, passed as void *). */
MUST_CHECK enum status sourced_values_read_table(struct json_object *object, const char *key, size_t limit,
                                                 size_t size, struct arena *arena, const json_t **array,
                                                 uint32_t *count, void *out, struct error *err);

#endif
