/*
 * One table of units serves parsing and printing: parsing multiplies by a row's factor, printing picks the largest
 * row that leaves at least 1. Memory is printed in powers of 1024 and everything else in powers of 1000, as in the
 * tools with which people compare.
 */
#include "base/text/quantity.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/size.h"
#include "base/text/number.h"

struct quantity_unit {
    const char *name;
    enum dimension dimension;
    double factor;
    bool printed;
};

/* Within a dimension, printed units go up. */
static const struct quantity_unit units[] = {
    {"B", DIMENSION_BYTES, 1, true},
    {"kB", DIMENSION_BYTES, 1e3, false},
    {"MB", DIMENSION_BYTES, 1e6, false},
    {"GB", DIMENSION_BYTES, 1e9, false},
    {"TB", DIMENSION_BYTES, 1e12, false},
    {"KiB", DIMENSION_BYTES, 0x1p10, true},
    {"MiB", DIMENSION_BYTES, 0x1p20, true},
    {"GiB", DIMENSION_BYTES, 0x1p30, true},
    {"TiB", DIMENSION_BYTES, 0x1p40, true},
    {"B/s", DIMENSION_BYTES_PER_S, 1, true},
    {"kB/s", DIMENSION_BYTES_PER_S, 1e3, true},
    {"MB/s", DIMENSION_BYTES_PER_S, 1e6, true},
    {"GB/s", DIMENSION_BYTES_PER_S, 1e9, true},
    {"TB/s", DIMENSION_BYTES_PER_S, 1e12, true},
    {"KiB/s", DIMENSION_BYTES_PER_S, 0x1p10, false},
    {"MiB/s", DIMENSION_BYTES_PER_S, 0x1p20, false},
    {"GiB/s", DIMENSION_BYTES_PER_S, 0x1p30, false},
    {"TiB/s", DIMENSION_BYTES_PER_S, 0x1p40, false},
    {"ns", DIMENSION_SECONDS, 1e-9, true},
    {"us", DIMENSION_SECONDS, 1e-6, true},
    {"ms", DIMENSION_SECONDS, 1e-3, true},
    {"s", DIMENSION_SECONDS, 1, true},
    {"min", DIMENSION_SECONDS, 60, false},
    {"h", DIMENSION_SECONDS, 3600, false},
    {"d", DIMENSION_SECONDS, 86400, false},
    {"FLOP/s", DIMENSION_FLOP_PER_S, 1, true},
    {"kFLOP/s", DIMENSION_FLOP_PER_S, 1e3, true},
    {"MFLOP/s", DIMENSION_FLOP_PER_S, 1e6, true},
    {"GFLOP/s", DIMENSION_FLOP_PER_S, 1e9, true},
    {"TFLOP/s", DIMENSION_FLOP_PER_S, 1e12, true},
    {"PFLOP/s", DIMENSION_FLOP_PER_S, 1e15, true},
    {"W", DIMENSION_WATTS, 1, true},
    {"kW", DIMENSION_WATTS, 1e3, true},
};

static const char *const examples[] = {
    [DIMENSION_BYTES] = "a size such as 96MiB",
    [DIMENSION_BYTES_PER_S] = "a rate such as 24GB/s",
    [DIMENSION_SECONDS] = "a time such as 5us",
    [DIMENSION_FLOP_PER_S] = "a speed such as 19.5TFLOP/s",
    [DIMENSION_WATTS] = "a power such as 300W",
    [DIMENSION_COUNT_OF] = "a number such as 12",
};
static_assert(ARRAY_COUNT(examples) == DIMENSION_COUNT, "an example per dimension");

const char *dimension_example(enum dimension dimension)
{
    assert(dimension < DIMENSION_COUNT);
    return examples[dimension];
}

/* --- parsing -------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static enum status unknown_unit(const char *text, const char *name, size_t length,
                                enum dimension dimension, const char *expected, struct error *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(units); i++) {
        const struct quantity_unit *unit = &units[i];
        if (strlen(unit->name) != length || strncasecmp(unit->name, name, length) != 0) continue;
        if (strncmp(unit->name, name, length) == 0)
            return error_set(err, STATUS_BAD_INPUT, "'%s' has the unit '%s' (expected %s)", text,
                             unit->name, expected);
        if (unit->dimension == dimension)
            return error_set(err, STATUS_BAD_INPUT,
                             "'%s' has the unknown unit '%.*s' (did you mean '%s'?)", text,
                             (int)length, name, unit->name);
    }
    return error_set(err, STATUS_BAD_INPUT, "'%s' has the unknown unit '%.*s' (expected %s)", text,
                     (int)length, name, expected);
}

enum status quantity_parse(const char *text, enum dimension dimension, double *out,
                           struct error *err)
{
    return quantity_parse_expecting(text, dimension, dimension_example(dimension), out, err);
}

enum status quantity_parse_expecting(const char *text, enum dimension dimension, const char *expected, double *out,
                                     struct error *err)
{
    assert(dimension < DIMENSION_COUNT);
    double number;
    const char *c = text;
    while (is_blank(*c)) c++;
    if (!*c) return error_set(err, STATUS_BAD_INPUT, "empty text (expected %s)", expected);
    const char *rest;
    if (!number_read(c, &rest, &number)) {
        bool digits = *c >= '0' && *c <= '9';
        return error_set(err, STATUS_BAD_INPUT, "'%s' is %s (expected %s)", text,
                         digits ? "too large" : "not a number", expected);
    }
    if (signbit(number))
        return error_set(err, STATUS_BAD_INPUT, "'%s' is negative (expected %s)", text, expected);
    while (is_blank(*rest)) rest++;
    size_t length = strlen(rest);
    while (length > 0 && is_blank(rest[length - 1])) length--;

    double factor = 1;
    if (dimension == DIMENSION_COUNT_OF) {
        if (length > 0) return unknown_unit(text, rest, length, dimension, expected, err);
    } else {
        if (length == 0)
            return error_set(err, STATUS_BAD_INPUT, "'%s' has no unit (expected %s)", text,
                             expected);
        size_t i = 0;
        while (i < ARRAY_COUNT(units) &&
               (units[i].dimension != dimension || strlen(units[i].name) != length ||
                strncmp(units[i].name, rest, length) != 0))
            i++;
        if (i == ARRAY_COUNT(units)) return unknown_unit(text, rest, length, dimension, expected, err);
        factor = units[i].factor;
    }
    /* Below one, dividing by the whole number 1e6 rounds once; multiplying by 1e-6 rounds twice. */
    double value = factor < 1 ? number / round(1 / factor) : number * factor;
    if (!isfinite(value))
        return error_set(err, STATUS_BAD_INPUT, "'%s' is too large (expected %s)", text, expected);
    *out = value;
    return STATUS_OK;
}

/* --- printing ------------------------------------------------------------------------------- */

/* Prints three significant digits, or a whole number as it is. */
static int print_number(char *buffer, size_t size, double value)
{
    bool whole = fabs(value - round(value)) <= 1e-9 * value; /* 5e-6 / 1e-6 is not quite 5 */
    if (whole && value < 1e4) return snprintf(buffer, size, "%.0f", value);
    if (value >= 1e5) return snprintf(buffer, size, "%.4g", value);
    int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    return snprintf(buffer, size, "%.*f", decimals, value);
}

static void print_with_unit(char *buffer, size_t size, double value, enum dimension dimension)
{
    const struct quantity_unit *best = NULL;
    for (size_t i = 0; i < ARRAY_COUNT(units); i++) {
        const struct quantity_unit *unit = &units[i];
        if (unit->dimension != dimension || !unit->printed) continue;
        /* 999.7 MB/s is printed as 1 GB/s: the unit is chosen after rounding. */
        double step = dimension == DIMENSION_BYTES ? unit->factor : 0.9995 * unit->factor;
        if (!best || value >= step) best = unit;
    }
    assert(best);
    double number = value / best->factor;
    if (fabs(number - 1) < 0.0005) number = 1;
    int length = print_number(buffer, size, number);
    if (length > 0 && (size_t)length < size)
        snprintf(buffer + length, size - (size_t)length, " %s", best->name);
}

/* Prints "1 h 20 min": two neighbouring units, the smaller one rounded. */
static void print_long_time(char *buffer, size_t size, double seconds)
{
    static const struct {
        const char *large, *small;
        double large_s, small_s;
    } pairs[] = {{"d", "h", 86400, 3600}, {"h", "min", 3600, 60}, {"min", "s", 60, 1}};
    for (size_t i = 0; i < ARRAY_COUNT(pairs); i++) {
        double small = round(seconds / pairs[i].small_s) * pairs[i].small_s;
        if (small < pairs[i].large_s && i + 1 < ARRAY_COUNT(pairs)) continue;
        double large = floor(small / pairs[i].large_s);
        double rest = round((small - large * pairs[i].large_s) / pairs[i].small_s);
        int length = snprintf(buffer, size, large < 1e9 ? "%.0f %s" : "%.4g %s", large,
                              pairs[i].large);
        if (rest > 0 && large < 1e9)
            snprintf(buffer + length, size - (size_t)length, " %.0f %s", rest, pairs[i].small);
        return;
    }
}

/* Prints "124 439 808". */
static void print_count(char *buffer, size_t size, double value)
{
    if (value >= 1e15 || (value < 1000 && value != floor(value))) {
        snprintf(buffer, size, "%.4g", value);
        return;
    }
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%.0f", value);
    char *c = buffer;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) *c++ = ' ';
        *c++ = digits[i];
    }
    *c = '\0';
}

const char *quantity_text(double value, enum dimension dimension, char buffer[QUANTITY_TEXT_BYTES])
{
    assert(dimension < DIMENSION_COUNT);
    size_t size = QUANTITY_TEXT_BYTES;
    char *c = buffer;
    if (!isfinite(value)) {
        snprintf(buffer, size, isnan(value) ? "undefined" : value > 0 ? "unlimited" : "-unlimited");
        return buffer;
    }
    if (value < 0) {
        *c++ = '-';
        size--;
        value = -value;
    }
    if (dimension == DIMENSION_COUNT_OF)
        print_count(c, size, value);
    else if (dimension == DIMENSION_SECONDS && value <= 0)
        snprintf(c, size, "0 s");
    else if (dimension == DIMENSION_SECONDS && value >= 59.95)
        print_long_time(c, size, value);
    else
        print_with_unit(c, size, value, dimension);
    return buffer;
}

const char *quantity_bytes_at_least(uint64_t bytes, char buffer[QUANTITY_TEXT_BYTES])
{
    const double exact = (double)bytes;
    for (double value = exact; value < 1.1 * exact + 1; value *= 1.0005) { /* three digits are at most 0.5 % off */
        struct error unread = {0};
        double read = 0;
        quantity_text(value, DIMENSION_BYTES, buffer);
        if (quantity_parse(buffer, DIMENSION_BYTES, &read, &unread) == STATUS_OK && read >= exact) break;
    }
    return buffer;
}
