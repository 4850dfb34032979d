/*
 * One figure in and out.
 *
 * A figure is written in the largest unit that gives a short number and reads back to the very same
 * double; where none does, in the SI base unit. So a machine that was read and written again is the
 * same machine, to the bit. For example 11 400 000 000 B/s is 11.4 GB/s, since 11.4 times 1e9 is
 * that double; a third of 1e10 B/s stays in B/s with all its digits.
 */
#include "models/hardware/hardware_figure.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/quantity.h"
#include "base/try.h"

static const char ratio_unit[] = "ratio";

/* SI base units per unit; false when it is no unit of that dimension. */
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

static enum status fail_unit(const struct json_input *in, const json_t *figure, const char *key,
                             enum dimension dimension, const char *unit, struct error *err)
{
    if (dimension == DIMENSION_COUNT_OF)
        return json_fail_key(in, figure, "unit", err, "'%s' has the unit '%.40s' (expected '%s')",
                             key, unit, ratio_unit);
    return json_fail_key(in, figure, "unit", err,
                         "'%s' has the unit '%.40s' (expected that of %s)", key, unit,
                         dimension_example(dimension));
}

enum status figures_read_text(struct json_object *object, const char *key, struct arena *arena,
                              const char **out, struct error *err)
{
    const char *text;
    TRY(json_take_string(object, key, JSON_REQUIRED, &text, err));
    return arena_string(arena, text, out, err);
}

/* Takes a figure object. A bare number is the commonest mistake and has a message of its own. */
static enum status read_figure_object(struct json_object *object, const struct figure_spec *spec,
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

static enum status read_figure(struct json_object *parent, const struct figure_spec *spec,
                               struct arena *arena, struct figure *out, struct error *err)
{
    const json_t *value;
    TRY(read_figure_object(parent, spec, &value, err));
    if (!value || json_is_stand_in(parent->input, value)) return STATUS_OK;
    struct json_object object;
    struct figure figure = {0};
    const char *unit;
    size_t kind;
    double number, factor;
    TRY(json_object_open(&object, parent->input, value, "a figure", err));
    TRY(json_take_double(&object, "value", JSON_REQUIRED, 0, DBL_MAX, &number, err));
    TRY(json_take_string(&object, "unit", JSON_REQUIRED, &unit, err));
    TRY(json_take_double(&object, "spread", JSON_OPTIONAL, 0, 100, &figure.spread, err));
    TRY(json_take_choice(&object, "kind", JSON_REQUIRED, figure_kind_names, FIGURE_KIND_COUNT,
                         &kind, err));
    figure.kind = (uint32_t)kind;
    TRY(figures_read_text(&object, "source", arena, &figure.source, err));
    TRY(figures_read_text(&object, "as_of", arena, &figure.as_of, err));
    TRY(json_object_close(&object, err));
    if (!unit_factor(unit, spec->dimension, &factor))
        return fail_unit(parent->input, value, spec->key, spec->dimension, unit, err);
    figure.value = number * factor;
    if (!(figure.value >= spec->min && figure.value <= spec->max))
        return json_fail_key(parent->input, value, "value", err,
                             "'%s' is %g in base units (expected %g to %g)", spec->key,
                             figure.value, spec->min, spec->max);
    *out = figure;
    return STATUS_OK;
}

enum status figures_read(struct json_object *object, const struct figure_spec *specs, size_t count,
                         struct arena *arena, void *base, struct error *err)
{
    for (size_t i = 0; i < count; i++)
        TRY(read_figure(object, &specs[i], arena,
                        (struct figure *)(void *)((char *)base + specs[i].offset), err));
    return STATUS_OK;
}

/* Returns the first unit in which the number is short (three decimals, at least 1) and reads back
 * exactly; else the base unit. */
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

static void write_figure(struct json_out *out, const struct figure_spec *spec,
                         const struct figure *figure)
{
    if (!figure->source && figure->value == 0) return;
    double number;
    const char *unit = short_unit(figure->value, spec->dimension, &number);
    json_out_object_begin(out, spec->key, true);
    json_out_double(out, "value", number);
    json_out_string(out, "unit", unit);
    json_out_string(out, "kind", figure_kind_names[figure->kind]);
    if (figure->spread > 0) json_out_double(out, "spread", figure->spread);
    json_out_string(out, "source", figure->source ? figure->source : "not stated");
    json_out_string(out, "as_of", figure->as_of ? figure->as_of : "not stated");
    json_out_object_end(out);
}

void figures_write(struct json_out *out, const struct figure_spec *specs, size_t count,
                   const void *base)
{
    for (size_t i = 0; i < count; i++)
        write_figure(out, &specs[i],
                     (const struct figure *)(const void *)((const char *)base + specs[i].offset));
}

enum status figures_read_table(struct json_object *object, const char *key, size_t limit,
                               size_t size, struct arena *arena, const json_t **array,
                               uint32_t *count, void *out, struct error *err)
{
    TRY(json_take_array(object, key, JSON_REQUIRED, array, err));
    size_t found = json_array_size(*array);
    if (found == 0 || found > limit)
        return json_fail_key(object->input, object->value, key, err,
                             "'%s' has %zu elements (expected 1 to %zu)", key, found, limit);
    TRY(arena_array(arena, found, size, out, err));
    *count = (uint32_t)found;
    return STATUS_OK;
}
