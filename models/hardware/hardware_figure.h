/*
 * Figures in files: a number with unit, kind, source and date; see models/hardware/hardware.h.
 *
 * The figures of a struct are listed in a table, which serves reading and writing alike, so that
 * what is written is what is read.
 */
#ifndef SPILLWAY_MODELS_HARDWARE_FIGURE_H
#define SPILLWAY_MODELS_HARDWARE_FIGURE_H

#include <stddef.h>

#include "base/json/json_out.h"
#include "models/hardware/hardware.h"

struct figure_spec {
    const char *key;
    size_t offset; /* of the struct figure */
    enum dimension dimension; /* DIMENSION_COUNT_OF: a ratio */
    enum json_need need;
    double min, max; /* in base units */
};

#define FIGURE(type, key, field, dimension, need, min, max)                                       \
    {key, offsetof(struct type, field), dimension, need, min, max}

/* Take the figures of specs[0 .. count) from `object` into the struct at `base`; optional ones that
 * are absent are left as they are. */
MUST_CHECK enum status figures_take(struct json_object *object, const struct figure_spec *specs,
                                    size_t count, struct arena *arena, void *base,
                                    struct error *err);

/* Figures without source and value are left out. */
void figures_write(struct json_out *out, const struct figure_spec *specs, size_t count,
                   const void *base);

/* A required string, copied to the arena. */
MUST_CHECK enum status figures_take_text(struct json_object *object, const char *key,
                                         struct arena *arena, const char **out,
                                         struct error *err);

/* A required array of things: how many, from 1 to `limit`, and zeroed room for them. */
MUST_CHECK enum status figures_take_table(struct json_object *object, const char *key, size_t limit,
                                          size_t size, struct arena *arena, const json_t **array,
                                          uint32_t *count, void **out, struct error *err);

#endif
