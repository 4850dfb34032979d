/*
 * A value is written in the largest unit that gives a short number and reads back to the same double, else in the SI
 * base unit: 11 400 000 000 B/s is 11.4 GB/s, a third of 1e10 B/s stays in B/s. A machine is the same to the bit after
 * writing and reading.
 */
#include "models/hardware/sourced_value.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json/json_rows.h"
#include "base/text/quantity.h"
#include "base/try.h"

static const char ratio_unit[] = "ratio";

/* Returns false when it is not a unit of that dimension. */
static bool unit_factor(const char *unit, enum dimension dimension, double *out)
{
    char text[32];
    struct error ignored = {0};
    if (dimension == DIMENSION_COUNT_OF) {
        *out = 1;
        return strcmp(unit, ratio_unit) == 0;
    }
    int length = snprintf(text, sizeof text, "1%s", unit);
    bool a_word = unit[0] != '\0' && !strpbrk(unit, "0123456789.+- \t");
    return a_word && (size_t)length < sizeof text &&
           quantity_parse(text, dimension, out, &ignored) == STATUS_OK;
}

static enum status fail_unit(const struct json_input *in, const json_t *sourced, const char *key,
                             enum dimension dimension, const char *unit, struct error *err)
{
    if (dimension == DIMENSION_COUNT_OF)
        return json_fail_key(in, sourced, "unit", err, "'%s' has the unit '%.40s' (expected '%s')",
                             key, unit, ratio_unit);
    return json_fail_key(in, sourced, "unit", err,
                         "'%s' has the unit '%.40s' (expected the unit of %s)", key, unit,
                         dimension_example(dimension));
}

const char *const source_kind_names[] = {
    [SOURCE_DATASHEET] = "datasheet",
    [SOURCE_MEASURED] = "measured",
    [SOURCE_DERIVED] = "derived",
    [SOURCE_ASSUMED] = "assumed",
    [SOURCE_FITTED] = "fitted",
};

enum status sourced_values_read_text(struct json_object *object, const char *key, struct arena *arena,
                                     const char **out, struct error *err)
{
    const char *text;
    TRY(json_take_string(object, key, JSON_REQUIRED, &text, err));
    return arena_string(arena, text, out, err);
}

/* Takes an object; a bare number, the commonest mistake, has a message of its own. */
static enum status read_sourced_object(struct json_object *object, const struct sourced_value_spec *spec,
                                       const json_t **out, struct error *err)
{
    const json_t *value = json_object_get(object->value, spec->key);
    *out = NULL;
    if (json_is_number(value))
        return json_fail_key(object->input, object->value, spec->key, err,
                             "'%s' is a bare number (expected an object with value, unit, kind, "
                             "source and as_of)",
                             spec->key);
    return json_take_object(object, spec->key, spec->need, out, err);
}

static enum status read_sourced(struct json_object *parent, const struct sourced_value_spec *spec,
                                struct arena *arena, struct sourced_value *out, struct error *err)
{
    const json_t *value;
    TRY(read_sourced_object(parent, spec, &value, err));
    if (!value || json_is_stand_in(parent->input, value)) return STATUS_OK;
    struct json_object object;
    struct sourced_value sourced = {0};
    const char *unit;
    size_t kind;
    double number, factor;
    TRY(json_object_open(&object, parent->input, value, "a value with its source", err));
    TRY(json_take_double(&object, "value", JSON_REQUIRED, 0, DBL_MAX, &number, err));
    TRY(json_take_string(&object, "unit", JSON_REQUIRED, &unit, err));
    TRY(json_take_double(&object, "spread", JSON_OPTIONAL, 0, 100, &sourced.spread, err));
    TRY(json_take_choice(&object, "kind", JSON_REQUIRED, source_kind_names, SOURCE_KIND_COUNT,
                         &kind, err));
    sourced.kind = (uint32_t)kind;
    TRY(sourced_values_read_text(&object, "source", arena, &sourced.source, err));
    TRY(sourced_values_read_text(&object, "as_of", arena, &sourced.as_of, err));
    TRY(json_object_close(&object, err));
    if (!unit_factor(unit, spec->dimension, &factor))
        return fail_unit(parent->input, value, spec->key, spec->dimension, unit, err);
    sourced.value = number * factor;
    if (!(sourced.value >= spec->min && sourced.value <= spec->max))
        return json_fail_key(parent->input, value, "value", err,
                             "'%s' is %g in base units (expected %g to %g)", spec->key,
                             sourced.value, spec->min, spec->max);
    *out = sourced;
    return STATUS_OK;
}

enum status sourced_values_read(struct json_object *object, const struct sourced_value_spec *specs, size_t count,
                                struct arena *arena, void *base, struct error *err)
{
    for (size_t i = 0; i < count; i++)
        TRY(read_sourced(object, &specs[i], arena,
                         (struct sourced_value *)(void *)((char *)base + specs[i].offset), err));
    return STATUS_OK;
}

/* Returns the first unit with a short number (three decimals, at least 1) that reads back exactly; else the base
 * unit. */
static const char *short_unit(double value, enum dimension dimension, double *number)
{
    static const char *const units[DIMENSION_COUNT][7] = {
        [DIMENSION_BYTES] = {"GiB", "GB", "MiB", "MB", "KiB", "B"},
        [DIMENSION_BYTES_PER_S] = {"GB/s", "MB/s", "B/s"},
        [DIMENSION_SECONDS] = {"s", "ms", "us", "ns"},
        [DIMENSION_FLOP_PER_S] = {"TFLOP/s", "GFLOP/s", "FLOP/s"},
        [DIMENSION_WATTS] = {"W"},
        [DIMENSION_COUNT_OF] = {ratio_unit},
    };
    static const char *const base[DIMENSION_COUNT] = {"B", "B/s", "s", "FLOP/s", "W", ratio_unit};
    for (size_t i = 0; units[dimension][i]; i++) {
        double factor;
        bool known = unit_factor(units[dimension][i], dimension, &factor);
        assert(known);
        *number = round(value / factor * 1000) / 1000;
        if (*number >= 1 && *number < 1e6 && *number * factor == value)
            return units[dimension][i];
    }
    *number = value;
    return base[dimension];
}

static void write_sourced(struct json_out *out, const struct sourced_value_spec *spec,
                          const struct sourced_value *sourced)
{
    if (!sourced->source && sourced->value == 0) return;
    double number;
    const char *unit = short_unit(sourced->value, spec->dimension, &number);
    json_out_object_begin(out, spec->key, true);
    json_out_double(out, "value", number);
    json_out_string(out, "unit", unit);
    json_out_string(out, "kind", source_kind_names[sourced->kind]);
    if (sourced->spread > 0) json_out_double(out, "spread", sourced->spread);
    json_out_string(out, "source", sourced->source ? sourced->source : "not stated");
    json_out_string(out, "as_of", sourced->as_of ? sourced->as_of : "not stated");
    json_out_object_end(out);
}

void sourced_values_write(struct json_out *out, const struct sourced_value_spec *specs, size_t count,
                          const void *base)
{
    for (size_t i = 0; i < count; i++)
        write_sourced(out, &specs[i],
                      (const struct sourced_value *)(const void *)((const char *)base + specs[i].offset));
}

enum status sourced_values_read_table(struct json_object *object, const char *key, size_t limit,
                                      size_t size, struct arena *arena, const json_t **array,
                                      uint32_t *count, void *out, struct error *err)
{
    TRY(json_take_array(object, key, JSON_REQUIRED, array, err));
    size_t found;
    TRY(json_rows_count(object->input, *array, &found, err));
    if (found == 0 || found > limit)
        return json_fail_key(object->input, object->value, key, err,
                             "'%s' has %zu elements (expected 1 to %zu)", key, found, limit);
    TRY(arena_array(arena, found, size, out, err));
    *count = (uint32_t)found;
    return STATUS_OK;
}
