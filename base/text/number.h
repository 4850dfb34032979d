/*
 * Numbers as text, independent of the locale: the decimal point is '.' for every LC_NUMERIC. A
 * library cannot know the settings of its host program.
 */
#ifndef SPILLWAY_BASE_TEXT_NUMBER_H
#define SPILLWAY_BASE_TEXT_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Reads the number at the start of `text`: an optional '-', digits, '.', an exponent. It does not
 * accept white space, '+', hexadecimal, "nan" or "inf". *end is the first character after the
 * number. Returns false and leaves *out untouched when there is no number or it is too large for a
 * double.
 */
bool number_read(const char *text, const char **end, double *out);

/* Reads a text of decimal digits only, with a value of at most UINT64_MAX. */
bool number_read_u64(const char *text, uint64_t *out);

enum { NUMBER_TEXT_BYTES = 32 }; /* room for any number below */

/* Exact powers of five as 128-bit numbers with the top bit set. number_write() scales with them. */
enum { NUMBER_POWER_COUNT = 56 };
struct number_powers {
    uint64_t high[NUMBER_POWER_COUNT], low[NUMBER_POWER_COUNT];
};
void number_powers_init(struct number_powers *powers);

/* Writes the shortest text that reads back as the same finite double. Returns its length. The text
 * has no NUL. */
size_t number_write(double value, const struct number_powers *powers, char *buffer);
size_t number_write_u64(uint64_t value, char *buffer);

#endif
