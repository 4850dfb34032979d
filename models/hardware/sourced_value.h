/* Numbers with unit, kind, source and date in files; one table of a struct's values serves reading and writing. */
#ifndef SPILLWAY_MODELS_HARDWARE_SOURCED_VALUE_H
#define SPILLWAY_MODELS_HARDWARE_SOURCED_VALUE_H

#include <stddef.h>

#include "base/json/json_out.h"
#include "models/hardware/hardware.h"

struct sourced_value_spec {
    const char *key;
    size_t offset;            /* of the struct sourced_value */
    enum dimension dimension; /* DIMENSION_COUNT_OF: a ratio */
    enum json_need need;
    double min, max; /* in base units */
};

#define SOURCED_VALUE(type, key, field, dimension, need, min, max)                                       \
    {key, offsetof(struct type, field), dimension, need, min, max}

/* Takes specs[0 .. count) into the struct at `base`. Absent optional values are untouched. */
MUST_CHECK enum status sourced_values_read(struct json_object *object, const struct sourced_value_spec *specs,
                                           size_t count, struct arena *arena, void *base,
                                           struct error *err);

/* Skips values without source and value. */
void sourced_values_write(struct json_out *out, const struct sourced_value_spec *specs, size_t count,
                          const void *base);

/* Copies a required string to the arena. */
MUST_CHECK enum status sourced_values_read_text(struct json_object *object, const char *key,
                                                struct arena *arena, const char **out,
                                                struct error *err);

/* Takes a required array of 1 to `limit` elements and allocates zeroed room for *count. `out` is the address of the
 * pointer to them (a struct x **). */
MUST_CHECK enum status sourced_values_read_table(struct json_object *object, const char *key, size_t limit,
                                                 size_t size, struct arena *arena, const json_t **array,
                                                 uint32_t *count, void *out, struct error *err);

#endif
