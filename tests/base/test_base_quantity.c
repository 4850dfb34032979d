/*
 * base/text/quantity.h and base/text/number.h: units by hand, every refusal with its message, numbers printed for
 * people, and numbers that read back as themselves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "base/text/number.h"
#include "base/text/quantity.h"
#include "tests/support/support_seed.h"

/* --- quantities ----------------------------------------------------------------------------- */

static void every_unit_has_its_factor(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum dimension dimension;
        double value;
    } rows[] = {
        {"3B", DIMENSION_BYTES, 3},
        {"3kB", DIMENSION_BYTES, 3000},
        {"2.5 MB", DIMENSION_BYTES, 2.5e6},
        {"7GB", DIMENSION_BYTES, 7e9},
        {" 1.5TB ", DIMENSION_BYTES, 1.5e12},
        {"3KiB", DIMENSION_BYTES, 3072},
        {"96MiB", DIMENSION_BYTES, 100663296}, /* 96 * 1048576 */
        {"11GiB", DIMENSION_BYTES, 11811160064}, /* 11 * 1073741824 */
        {"2TiB", DIMENSION_BYTES, 2199023255552},
        {"24.9GB/s", DIMENSION_BYTES_PER_S, 24.9e9},
        {"2 GB/s", DIMENSION_BYTES_PER_S, 2e9},
        {"5MiB/s", DIMENSION_BYTES_PER_S, 5242880},
        {"7ns", DIMENSION_SECONDS, 7e-9},
        {"5us", DIMENSION_SECONDS, 5e-6},
        {"12.3ms", DIMENSION_SECONDS, 0.0123},
        {"0.5s", DIMENSION_SECONDS, 0.5},
        {"3min", DIMENSION_SECONDS, 180},
        {"1.5h", DIMENSION_SECONDS, 5400},
        {"2d", DIMENSION_SECONDS, 172800},
        {"19.5TFLOP/s", DIMENSION_FLOP_PER_S, 19.5e12},
        {"3PFLOP/s", DIMENSION_FLOP_PER_S, 3e15},
        {"1e2kFLOP/s", DIMENSION_FLOP_PER_S, 1e5},
        {"12", DIMENSION_COUNT_OF, 12},
        {".25", DIMENSION_COUNT_OF, 0.25},
        {"0B", DIMENSION_BYTES, 0},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct error err = {0};
        double value = -1;
        assert_int_equal(quantity_parse(rows[i].text, rows[i].dimension, &value, &err), STATUS_OK);
        if (value != rows[i].value) fail_msg("'%s' is %.17g", rows[i].text, value);
    }
}

static void refusals_say_found_and_expected(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum dimension dimension;
        const char *message;
    } rows[] = {
        {"96", DIMENSION_BYTES, "'96' has no unit (expected a size such as 96MiB)"},
        {"", DIMENSION_BYTES, "empty text (expected a size such as 96MiB)"},
        {"  ", DIMENSION_SECONDS, "empty text (expected a time such as 5us)"},
        {"MiB", DIMENSION_BYTES, "'MiB' is not a number (expected a size such as 96MiB)"},
        {"nan B", DIMENSION_BYTES, "'nan B' is not a number (expected a size such as 96MiB)"},
        {"inf", DIMENSION_COUNT_OF, "'inf' is not a number (expected a number such as 12)"},
        {"+3B", DIMENSION_BYTES, "'+3B' is not a number (expected a size such as 96MiB)"},
        {"-3GB", DIMENSION_BYTES, "'-3GB' is negative (expected a size such as 96MiB)"},
        {"-0GB", DIMENSION_BYTES, "'-0GB' is negative (expected a size such as 96MiB)"},
        {"5us", DIMENSION_BYTES, "'5us' has the unit 'us' (expected a size such as 96MiB)"},
        {"5GB", DIMENSION_BYTES_PER_S, "'5GB' has the unit 'GB' (expected a rate such as 24GB/s)"},
        {"5gb", DIMENSION_BYTES, "'5gb' has the unknown unit 'gb' (did you mean 'GB'?)"},
        {"5parsec", DIMENSION_SECONDS,
         "'5parsec' has the unknown unit 'parsec' (expected a time such as 5us)"},
        {"0x10B", DIMENSION_BYTES,
         "'0x10B' has the unknown unit 'x10B' (expected a size such as 96MiB)"},
        {"1,5GB", DIMENSION_BYTES,
         "'1,5GB' has the unknown unit ',5GB' (expected a size such as 96MiB)"},
        {"1GB 2", DIMENSION_BYTES,
         "'1GB 2' has the unknown unit 'GB 2' (expected a size such as 96MiB)"},
        {"3s", DIMENSION_COUNT_OF, "'3s' has the unit 's' (expected a number such as 12)"},
        {"1e999B", DIMENSION_BYTES, "'1e999B' is too large (expected a size such as 96MiB)"},
        {"1e308TB", DIMENSION_BYTES, "'1e308TB' is too large (expected a size such as 96MiB)"},
        {"3FLOPS", DIMENSION_FLOP_PER_S,
         "'3FLOPS' has the unknown unit 'FLOPS' (expected a speed such as 19.5TFLOP/s)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct error err = {0};
        double value = 4.5;
        assert_int_equal(quantity_parse(rows[i].text, rows[i].dimension, &value, &err),
                         STATUS_BAD_INPUT);
        assert_string_equal(err.text, rows[i].message);
        assert_true(value == 4.5);
    }
}

static void examples_parse(void **state)
{
    (void)state;
    for (int d = 0; d < DIMENSION_COUNT; d++) {
        const char *text = strrchr(dimension_example((enum dimension)d), ' ') + 1;
        struct error err = {0};
        double value;
        assert_int_equal(quantity_parse(text, (enum dimension)d, &value, &err), STATUS_OK);
    }
}

/* The printed size is enough when typed, and hardly larger than needed. */
static void least_bytes_are_rounded_up(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } rows[] = {
        {0, "0 B"}, {1000, "1000 B"}, {42799616, "40.9 MiB"}, /* 40.8169 MiB */
        {(uint64_t)24 << 30, "24 GiB"}, {((uint64_t)24 << 30) + 1, "24.1 GiB"},
    };
    char text[QUANTITY_TEXT_BYTES];
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_string_equal(quantity_bytes_at_least(rows[i].bytes, text), rows[i].text);
    for (uint64_t bytes = 3; bytes < (uint64_t)1 << 45; bytes += bytes / 37 + 1) {
        struct error err = {0};
        double read = 0;
        assert_int_equal(quantity_parse(quantity_bytes_at_least(bytes, text), DIMENSION_BYTES, &read, &err), STATUS_OK);
        assert_true(read >= (double)bytes && read <= 1.011 * (double)bytes);
    }
}

static void text_for_people(void **state)
{
    (void)state;
    static const struct {
        double value;
        enum dimension dimension;
        const char *text;
    } rows[] = {
        {0, DIMENSION_BYTES, "0 B"},
        {512, DIMENSION_BYTES, "512 B"},
        {1536, DIMENSION_BYTES, "1.50 KiB"},
        {12025908429, DIMENSION_BYTES, "11.2 GiB"}, /* 11.2 * 2^30 */
        {25769803776, DIMENSION_BYTES, "24 GiB"},
        {1073741823, DIMENSION_BYTES, "1024 MiB"},
        {123.4e12, DIMENSION_BYTES, "112 TiB"}, /* 123.4e12 / 2^40 = 112.2 */
        {24.9e9, DIMENSION_BYTES_PER_S, "24.9 GB/s"},
        {999.97e6, DIMENSION_BYTES_PER_S, "1 GB/s"},
        {999.4e6, DIMENSION_BYTES_PER_S, "999 MB/s"},
        {3.5e-9, DIMENSION_SECONDS, "3.50 ns"},
        {0.0123, DIMENSION_SECONDS, "12.3 ms"},
        {5e-6, DIMENSION_SECONDS, "5 us"},
        {0, DIMENSION_SECONDS, "0 s"},
        {59.4, DIMENSION_SECONDS, "59.4 s"},
        {59.97, DIMENSION_SECONDS, "1 min"},
        {125, DIMENSION_SECONDS, "2 min 5 s"},
        {4800, DIMENSION_SECONDS, "1 h 20 min"},
        {3599.8, DIMENSION_SECONDS, "1 h"},
        {86399, DIMENSION_SECONDS, "1 d"},
        {273600, DIMENSION_SECONDS, "3 d 4 h"}, /* 3 * 86400 + 4 * 3600 */
        {19.5e12, DIMENSION_FLOP_PER_S, "19.5 TFLOP/s"},
        {1979e12, DIMENSION_FLOP_PER_S, "1.98 PFLOP/s"},
        {124439808, DIMENSION_COUNT_OF, "124 439 808"},
        {7, DIMENSION_COUNT_OF, "7"},
        {12.345, DIMENSION_COUNT_OF, "12.35"},
        {1e18, DIMENSION_COUNT_OF, "1e+18"},
        {-4800, DIMENSION_SECONDS, "-1 h 20 min"},
        {INFINITY, DIMENSION_BYTES, "unlimited"},
        {NAN, DIMENSION_BYTES, "undefined"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char buffer[QUANTITY_TEXT_BYTES];
        assert_string_equal(quantity_text(rows[i].value, rows[i].dimension, buffer), rows[i].text);
    }
}

/* Whatever the size of a value, its text fits, and parses back to within half a per cent. */
static void text_parses_back(void **state)
{
    (void)state;
    uint64_t seed = support_seed("quantity");
    static const enum dimension dimensions[] = {DIMENSION_BYTES, DIMENSION_BYTES_PER_S,
                                                DIMENSION_FLOP_PER_S};
    for (uint64_t i = 0; i < 20000; i++) {
        double value = pow(10, random_unit(seed, i) * 40);
        char buffer[QUANTITY_TEXT_BYTES];
        for (size_t d = 0; d < ARRAY_COUNT(dimensions); d++) {
            struct error err = {0};
            double again;
            quantity_text(value, dimensions[d], buffer);
            if (quantity_parse(buffer, dimensions[d], &again, &err) != STATUS_OK ||
                fabs(again - value) > 0.0051 * value)
                fail_msg("%.17g is printed as '%s': %s", value, buffer, err.text);
        }
        quantity_text(value, DIMENSION_SECONDS, buffer);
        assert_true(strlen(buffer) < QUANTITY_TEXT_BYTES - 1);
    }
}

/* --- numbers -------------------------------------------------------------------------------- */

static const char *written(double value, char buffer[NUMBER_TEXT_BYTES])
{
    static struct number_powers powers;
    if (!powers.high[0]) number_powers_init(&powers);
    size_t length = number_write(value, &powers, buffer);
    assert_true(length < NUMBER_TEXT_BYTES);
    buffer[length] = '\0';
    return buffer;
}

static void numbers_have_a_plain_form(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } rows[] = {
        {0, "0"}, {-0.0, "-0.0"}, {7, "7"}, {-12, "-12"}, {100, "100"}, {0.1, "0.1"},
        {-2.385, "-2.385"}, {1.0 / 3, "0.3333333333333333"}, {0.0001, "0.0001"},
        {0.00001, "0.00001"}, {0.000001, "1e-6"}, {1.5e-9, "1.5e-9"}, {123456.789, "123456.789"},
        {999999999999999, "999999999999999"}, {1e15, "1e15"},
        {1234567890123456, "1.234567890123456e15"},
        {9007199254740992, "9.007199254740992e15"}, {0.1 + 0.2, "0.30000000000000004"},
        {5e-324, "5e-324"}, {DBL_MIN, "2.2250738585072014e-308"},
        {DBL_MAX, "1.7976931348623157e308"},
        {1e23, "1e23"}, {0x1p-24, "5.960464477539063e-8"}, {299792458.5, "299792458.5"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char buffer[NUMBER_TEXT_BYTES];
        assert_string_equal(written(rows[i].value, buffer), rows[i].text);
    }
}

static size_t significant_digits(const char *text)
{
    size_t digits = 0, zeros = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text < '0' || *text > '9' || (digits == 0 && *text == '0')) continue;
        zeros = *text == '0' ? zeros + 1 : 0;
        digits++;
    }
    return digits - zeros;
}

/* Compared with the simple way, which tries 15, 16 and 17 digits: the same double, never more digits. */
static void numbers_read_back_and_are_short(void **state)
{
    (void)state;
    uint64_t seed = support_seed("number");
    for (uint64_t i = 0; i < 300000; i++) {
        double value;
        uint64_t bits = random_u64(seed, i);
        switch (i % 5) {
        case 0: memcpy(&value, &bits, sizeof value); break;
        case 1: value = random_unit(seed, i); break;
        case 2: value = ldexp(1, (int)(bits % 2000) - 1050); break;
        case 3: value = (double)(bits % 1000000000) / 1000000; break;
        default: value = nextafter((double)(bits % 1000) * 1e-3, i % 2 ? 2000 : -1); break;
        }
        if (!isfinite(value)) continue;
        char buffer[NUMBER_TEXT_BYTES], plain[64];
        written(value, buffer);
        const char *end;
        double again;
        if (!number_read(buffer, &end, &again) || *end || again != value)
            fail_msg("%a is written as '%s'", value, buffer);
        int digits = 15;
        do {
            snprintf(plain, sizeof plain, "%.*e", digits - 1, value);
        } while (strtod(plain, NULL) != value && ++digits <= 17);
        if (significant_digits(buffer) > significant_digits(plain))
            fail_msg("%a is written as '%s', but '%s' is shorter", value, buffer, plain);
    }
}

static void numbers_ignore_the_locale(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "ru_RU.UTF-8"};
    const char *set = NULL;
    for (size_t i = 0; i < ARRAY_COUNT(names) && !set; i++) set = setlocale(LC_NUMERIC, names[i]);
    if (!set) skip();
    const char *end;
    double value;
    char buffer[NUMBER_TEXT_BYTES], text[QUANTITY_TEXT_BYTES];
    bool read = number_read("2.5e-3", &end, &value);
    bool whole = read && *end == '\0' && value == 2.5e-3;
    written(1.25e-300, buffer); /* takes the way through the C library */
    quantity_text(1536, DIMENSION_BYTES, text);
    setlocale(LC_NUMERIC, "C");
    assert_true(whole);
    assert_string_equal(buffer, "1.25e-300");
    (void)text; /* text for people may follow the locale */
}

static void whole_numbers_are_read_strictly(void **state)
{
    (void)state;
    uint64_t value = 5;
    assert_true(number_read_u64("18446744073709551615", &value));
    assert_true(value == UINT64_MAX);
    value = 5;
    static const char *const bad[] = {"", "18446744073709551616", "-1", "+1", " 1", "1 ", "0x1",
                                      "1.0", "99999999999999999999"};
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) assert_false(number_read_u64(bad[i], &value));
    assert_int_equal(value, 5);
    char buffer[NUMBER_TEXT_BYTES];
    assert_int_equal(number_write_u64(UINT64_MAX, buffer), 20);
    assert_memory_equal(buffer, "18446744073709551615", 20);
    for (uint64_t v = 1, i = 1; i <= 19; v *= 10, i++) {
        assert_int_equal(number_write_u64(v, buffer), i);
        assert_int_equal(number_write_u64(v - 1, buffer), i == 1 ? 1 : i - 1);
    }
}

int main(void)
{
    const struct CMUnitTest quantities[] = {
        cmocka_unit_test(every_unit_has_its_factor),
        cmocka_unit_test(refusals_say_found_and_expected),
        cmocka_unit_test(examples_parse),
        cmocka_unit_test(least_bytes_are_rounded_up),
        cmocka_unit_test(text_for_people),
        cmocka_unit_test(text_parses_back),
    };
    const struct CMUnitTest numbers[] = {
        cmocka_unit_test(numbers_have_a_plain_form),
        cmocka_unit_test(numbers_read_back_and_are_short),
        cmocka_unit_test(numbers_ignore_the_locale),
        cmocka_unit_test(whole_numbers_are_read_strictly),
    };
    return cmocka_run_group_tests_name("base/text/quantity.h", quantities, NULL, NULL) +
           cmocka_run_group_tests_name("base/text/number.h", numbers, NULL, NULL);
}
