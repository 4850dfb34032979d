/*
 * Numbers as text, the same in every locale: '.' is the decimal point whatever LC_NUMERIC says.
 * A library cannot know what its host program has set.
 */
#ifndef SPILLWAY_BASE_NUMBER_H
#define SPILLWAY_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The number at the beginning of `text`: digits, '.', an exponent; a '-' in front. No white space,
 * no '+', no hexadecimal, no "nan" and no "inf". *end is the first character behind it.
 * False when there is no number or it is too large for a double; *out is untouched then.
 */
bool number_read(const char *text, const char **end, double *out);

/* Decimal digits alone, the whole text, at most UINT64_MAX. */
bool number_read_u64(const char *text, uint64_t *out);

enum { NUMBER_TEXT_BYTES = 32 }; /* room for any number below */

/* Exact powers of five as 128-bit numbers with the top bit set: what number_write() scales with. */
enum { NUMBER_POWER_COUNT = 56 };
struct number_powers {
    uint64_t high[NUMBER_POWER_COUNT], low[NUMBER_POWER_COUNT];
};
void number_powers_init(struct number_powers *powers);

/* The shortest text that reads back as the same double (finite). Returns its length; there is no
 * NUL behind it. */
size_t number_write(double value, const struct number_powers *powers, char *buffer);
size_t number_write_u64(uint64_t value, char *buffer);

#endif
