#include "cli/sweep/axis.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text/number.h"
#include "base/try.h"

enum { PLACES = 1 << 15 }; /* of values by the hash of their text: a power of two, three times SWEEP_VALUES_MAX */

struct axis_reading {
    const char *text; /* for messages */
    struct arena *arena;
    struct sweep_value *values; /* malloc'ed */
    size_t count, capacity;
    uint32_t *places;           /* (PLACES) 1 + index of a value; 0: free */
    const char *unit;           /* common so far; may be NULL */
    size_t unit_length;
    const char *last_unit;      /* of the last item, for others */
    size_t last_unit_length;    /* 0: none */
    bool numeric, units_differ;
};

static enum status complain(const struct axis_reading *reading, const char *item, size_t length, const char *expected,
                            struct error *err)
{
    return error_set(err, STATUS_BAD_INPUT, "option '--vary': '%.*s' of '%s' (expected %s)", (int)length, item,
                     reading->text, expected);
}

/* --- values ---------------------------------------------------------------------------------- */

/* Returns the place of the text's value, or the free one for it. */
static uint32_t *find_place(const struct axis_reading *reading, const char *text)
{
    static_assert(PLACES > 2 * SWEEP_VALUES_MAX, "there are free places");
    uint64_t at = hash_bytes(HASH_BEGIN, text, strlen(text)) & (PLACES - 1);
    while (reading->places[at] > 0 && strcmp(reading->values[reading->places[at] - 1].text, text) != 0)
        at = (at + 1) & (PLACES - 1);
    return &reading->places[at];
}

static enum status add(struct axis_reading *reading, const char *text, double number, struct error *err)
{
    if (!reading->places) TRY(ARENA_NEW(reading->arena, PLACES, reading->places, err));
    uint32_t *place = find_place(reading, text);
    if (*place > 0)
        return error_set(err, STATUS_BAD_INPUT, "option '--vary': '%s' has the value '%s' twice", reading->text, text);
    if (array_reserve(&reading->values, &reading->capacity, reading->count, sizeof *reading->values, SWEEP_VALUES_MAX,
                      "values of one --vary", err) != STATUS_OK)
        return err->status;
    struct sweep_value *value = &reading->values[reading->count];
    *value = (struct sweep_value){.number = number};
    TRY(arena_string(reading->arena, text, &value->text, err));
    *place = (uint32_t)++reading->count;
    if (isnan(number)) reading->numeric = false;
    return STATUS_OK;
}

static void note_unit(struct axis_reading *reading, const char *unit, size_t length)
{
    if (!reading->unit) {
        reading->unit = unit;
        reading->unit_length = length;
    } else if (length != reading->unit_length || memcmp(unit, reading->unit, length) != 0) {
        reading->units_differ = true;
    }
}

static enum status add_number(struct axis_reading *reading, double number, const char *unit, size_t unit_length,
                              struct error *err)
{
    struct number_powers powers;
    char text[NUMBER_TEXT_BYTES + SWEEP_NAME_BYTES];
    number_powers_init(&powers);
    size_t length = number_write(number, &powers, text);
    snprintf(text + length, sizeof text - length, "%.*s", (int)unit_length, unit);
    return add(reading, text, number, err);
}

/* --- items ----------------------------------------------------------------------------------- */

/* Returns true if the text after a number is a unit: "8x a100" is no number. */
static bool looks_like_unit(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z') || text[i] == '/' ||
              text[i] == '%'))
            return false;
    return true;
}

static enum status read_single(struct axis_reading *reading, const char *item, size_t length, struct error *err)
{
    char text[512];
    const char *end;
    double number = NAN;
    if (length == 0) return complain(reading, item, length, "a value between commas", err);
    if (length >= sizeof text) return complain(reading, item, length, "a shorter value", err);
    memcpy(text, item, length);
    text[length] = '\0';
    if (!number_read(text, &end, &number) || !looks_like_unit(end, strlen(end))) return add(reading, text, NAN, err);
    const char *unit = *end ? item + (end - text) : reading->last_unit;
    const size_t unit_length = *end ? strlen(end) : reading->last_unit_length;
    note_unit(reading, unit, unit_length);
    bool as_it_stands = *end || unit_length == 0;
    return as_it_stands ? add(reading, text, number, err) : add_number(reading, number, unit, unit_length, err);
}

enum stepping { STEP_BY_FACTOR, STEP_BY_DIFFERENCE, STEP_EVENLY };

struct axis_range {
    double from, to, step;
    enum stepping stepping;
    bool ends; /* the range's end is a value even if no step meets it */
};

static bool whole(double number) { return fabs(number) < 1e15 && number == floor(number); }

/* Returns true if the text after "+4" repeats the range's unit. */
static bool is_unit(const char *text, const char *stop, const char *unit, size_t unit_length)
{
    return (size_t)(stop - text) == unit_length && memcmp(text, unit, unit_length) == 0;
}

/* Reads the step after the last ':': "x2", "+4", "+4GiB", "5"; an empty step depends on the range. */
static enum status read_step(const struct axis_reading *reading, const char *item, size_t length, const char *step,
                             const char *unit, size_t unit_length, struct axis_range *range, struct error *err)
{
    const char *stop = item + length, *end = stop;
    range->stepping = STEP_BY_DIFFERENCE;
    range->step = 1;
    if (!step) {
        if (unit_length == 0 && whole(range->from) && whole(range->to)) return STATUS_OK;
        range->stepping = STEP_BY_FACTOR;
        range->step = 2;
        range->ends = true;
    } else {
        char kind = *step;
        const char *digits = step + (kind == 'x' || kind == '+');
        if (!number_read(digits, &end, &range->step) ||
            (end != stop && !(kind == '+' && is_unit(end, stop, unit, unit_length))))
            return complain(reading, item, length, "a count such as ':5', ':x2' or ':+4' after the range", err);
        range->stepping = kind == 'x' ? STEP_BY_FACTOR : kind == '+' ? STEP_BY_DIFFERENCE : STEP_EVENLY;
    }
    if (range->stepping == STEP_BY_FACTOR && !(range->step > 1 && range->from > 0))
        return complain(reading, item, length, "a factor above 1 and a beginning above 0", err);
    if (range->stepping == STEP_BY_DIFFERENCE && !(range->step > 0))
        return complain(reading, item, length, "a step above 0", err);
    if (range->stepping == STEP_EVENLY && !(whole(range->step) && range->step >= 2))
        return complain(reading, item, length, "at least two values", err);
    return STATUS_OK;
}

/* Rounds to twelve digits: a third of 0.3 becomes 0.1. */
static double rounded(double number)
{
    if (!(fabs(number) > 0)) return 0;
    double scale = pow(10, 12 - ceil(log10(fabs(number))));
    return isfinite(scale) && scale > 0 ? round(number * scale) / scale : number;
}

/* Computes from the beginning, so that errors do not accumulate. */
static double range_at(const struct axis_range *range, double n)
{
    switch (range->stepping) {
    case STEP_BY_FACTOR: return range->from * pow(range->step, n);
    case STEP_BY_DIFFERENCE: return range->from + range->step * n;
    case STEP_EVENLY: break;
    }
    return n == range->step - 1 ? range->to : range->from + (range->to - range->from) * n / (range->step - 1);
}

static enum status add_range(struct axis_reading *reading, const struct axis_range *range, const char *unit,
                             size_t unit_length, struct error *err)
{
    const double slack = 1e-9 * fabs(range->to);
    double last = NAN;
    for (double n = 0;; n++) {
        double number = rounded(range_at(range, n));
        if (number > range->to + slack || (range->stepping == STEP_EVENLY && n >= range->step)) break;
        last = number;
        TRY(add_number(reading, number, unit, unit_length, err));
    }
    if (range->ends && last < range->to - slack) return add_number(reading, range->to, unit, unit_length, err);
    return STATUS_OK;
}

/* Reads a number and unit from [text, stop); false otherwise. */
static bool read_bound(const char *text, const char *stop, double *number, const char **unit)
{
    char copy[NUMBER_TEXT_BYTES + SWEEP_NAME_BYTES];
    const char *end;
    if ((size_t)(stop - text) >= sizeof copy) return false;
    memcpy(copy, text, (size_t)(stop - text));
    copy[stop - text] = '\0';
    if (!number_read(copy, &end, number) || !looks_like_unit(end, strlen(end))) return false;
    *unit = text + (end - copy);
    return true;
}

/* Reads FROM..TO[UNIT][:STEP]. The unit is after the end, after both, or the list's. */
static enum status read_range(struct axis_reading *reading, const char *item, size_t length, const char *dots,
                              struct error *err)
{
    static const char shape[] = "a range such as 1..16, 6..64GB/s, 1..64:x2, 10..30:5 or 8..24GiB:+4";
    const char *stop = item + length, *first_unit, *unit, *step = memchr(dots, ':', (size_t)(stop - dots));
    const char *end = step ? step : stop;
    struct axis_range range = {0};
    if (!read_bound(item, dots, &range.from, &first_unit) || !read_bound(dots + 2, end, &range.to, &unit))
        return complain(reading, item, length, shape, err);
    size_t first_length = (size_t)(dots - first_unit), unit_length = (size_t)(end - unit);
    if (unit_length == 0) unit = reading->last_unit, unit_length = reading->last_unit_length;
    if (first_length > 0 && (first_length != unit_length || memcmp(first_unit, unit, unit_length) != 0))
        return complain(reading, item, length, "the same unit at both ends of a range", err);
    if (!(range.from < range.to)) return complain(reading, item, length, "a range that ends above its beginning", err);
    TRY(read_step(reading, item, length, step ? step + 1 : NULL, unit, unit_length, &range, err));
    note_unit(reading, unit, unit_length);
    return add_range(reading, &range, unit, unit_length, err);
}

/* Finds the dots of "1..16"; "../jobs.json" is not a range. */
static const char *range_dots(const char *item, size_t length)
{
    bool number = length > 0 && ((*item >= '0' && *item <= '9') || *item == '-');
    return number ? memmem(item, length, "..", 2) : NULL;
}

/* Finds the unit of "24GB/s", or "12..24GB/s:+4". */
static void find_last_unit(struct axis_reading *reading, const char *values)
{
    const char *comma = strrchr(values, ','), *last = comma ? comma + 1 : values, *unit;
    const char *dots = range_dots(last, strlen(last)), *end = last + strcspn(last, dots ? ":" : "");
    double number;
    reading->last_unit = read_bound(dots ? dots + 2 : last, end, &number, &unit) ? unit : end;
    reading->last_unit_length = (size_t)(end - reading->last_unit);
}

static enum status read_values(struct axis_reading *reading, const char *values, struct error *err)
{
    find_last_unit(reading, values);
    for (const char *item = values;; item++) {
        size_t length = strcspn(item, ",");
        const char *dots = range_dots(item, length);
        enum status status = dots ? read_range(reading, item, length, dots, err)
                                  : read_single(reading, item, length, err);
        if (status != STATUS_OK || item[length] == '\0') return status;
        item += length;
    }
}

/* --- public ---------------------------------------------------------------------------------- */

static enum status keep(const struct axis_reading *reading, const char *equals, struct sweep_axis *out,
                        struct error *err)
{
    char word[SWEEP_NAME_BYTES];
    struct sweep_value *values = NULL;
    *out = (struct sweep_axis){.count = reading->count, .unit = "", .numeric = reading->numeric &&
                               !reading->units_differ};
    snprintf(word, sizeof word, "%.*s", (int)(equals - reading->text), reading->text);
    TRY(arena_string(reading->arena, word, &out->name, err));
    snprintf(word, sizeof word, "%.*s", (int)reading->unit_length, reading->unit ? reading->unit : "");
    if (out->numeric && arena_string(reading->arena, word, &out->unit, err) != STATUS_OK) return err->status;
    if (ARENA_NEW(reading->arena, reading->count, values, err) != STATUS_OK) return err->status;
    out->values = memcpy(values, reading->values, reading->count * sizeof *out->values);
    return STATUS_OK;
}

enum status sweep_axis_parse(const char *text, struct arena *arena, struct sweep_axis *out, struct error *err)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || equals[1] == '\0' || equals - text >= SWEEP_NAME_BYTES)
        return error_set(err, STATUS_BAD_INPUT, "option '--vary' is '%s' (expected NAME=VALUES, such as devices=1..8)",
                         text);
    struct axis_reading reading = {.text = text, .arena = arena, .numeric = true};
    enum status status = read_values(&reading, equals + 1, err);
    if (status == STATUS_OK) status = keep(&reading, equals, out, err);
    free(reading.values);
    return status;
}
