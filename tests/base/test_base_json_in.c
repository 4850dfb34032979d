/*
 * base/json/json_in.h: each refusal with its exact text and place; accepted documents; a fixed seed of failing
 * allocations; places found in made-up documents against a parser of this test's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json/json_in.h"
#include "base/json/json_rows.h"
#include "base/random.h"
#include "base/size.h"
#include "tests/support/support_seed.h"

/* --- help ----------------------------------------------------------------------------------- */

static struct json_input *parsed(const char *text)
{
    struct error err = {0};
    struct json_input *input = NULL;
    if (json_input_parse("t.json", text, strlen(text), &input, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    return input;
}

static struct json_object opened(struct json_input *input)
{
    struct json_object object;
    struct error err = {0};
    assert_int_equal(json_object_open(&object, input, json_input_root(input), "an object", &err),
                     STATUS_OK);
    return object;
}

static void assert_refused(enum status status, const struct error *err, const char *message)
{
    assert_string_equal(err->text, message);
    assert_int_equal(status, STATUS_BAD_INPUT);
}

/* --- text that is no JSON, or JSON that is refused ------------------------------------------- */

static void syntax_errors_have_a_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"", "t.json:1:1: '[' or '{' expected near end of file"},
        {"{\"a\": NaN}", "t.json:1:7: invalid token near 'NaN'"},
        {"{\n  \"a\": Infinity}", "t.json:2:8: invalid token near 'Infinity'"},
        {"{\"a\": -Infinity}", "t.json:1:7: invalid token near '-'"},
        {"{\"a\": 1e999}", "t.json:1:7: real number overflow near '1e999'"},
        {"{\"a\": 9223372036854775808}", "t.json:1:7: too big integer near '9223372036854775808'"},
        {"{\"a\": 1,\n \"a\": 2}", "t.json:2:2: duplicate object key near '\"a\"'"},
        {"{\"a\": 1", "t.json:1:7: '}' expected near end of file"},
        {"[1, 2,", "t.json:1:6: ']' expected near end of file"},
        {"{} x", "t.json:1:4: end of file expected near 'x'"},
        {"{}{}", "t.json:1:3: end of file expected near '{'"},
        {"[1,]", "t.json:1:4: unexpected token near ']'"},
        {"[01]", "t.json:1:2: invalid token near '0'"},
        {"{'a': 1}", "t.json:1:2: string or '}' expected near '''"},
        {"[0x10]", "t.json:1:3: ']' expected near 'x'"},
        {"[+1]", "t.json:1:2: invalid token near '+'"},
        {"[.5]", "t.json:1:2: invalid token near '.'"},
        {"[\"a\nb\"]", "t.json:1:2: unexpected newline near '\"a'"},
        {"[\"\\u0000\"]", "t.json:1:2: a string contains \\u0000"},
        {"[\"\xff\"]", "t.json:1:2: unable to decode byte 0xff near '\"'"},
        {"5", "t.json:1:1: '[' or '{' expected near '5'"},
        {"\xef\xbb\xbf{}", "t.json:1:1: a byte order mark (expected UTF-8 text without one)"},
        {"// no\n{}", "t.json:1:1: '[' or '{' expected near '/'"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct error err = {0};
        struct json_input *input = (struct json_input *)&err;
        enum status status = json_input_parse("t.json", rows[i].text, strlen(rows[i].text), &input,
                                              &err);
        assert_refused(status, &err, rows[i].message);
        assert_ptr_equal(input, &err);
    }
}

static void nul_bytes_are_refused(void **state)
{
    (void)state;
    struct error err = {0};
    struct json_input *input;
    static const char text[] = "{\"a\": \0 1}";
    assert_int_equal(json_input_parse("t.json", text, sizeof text - 1, &input, &err),
                     STATUS_BAD_INPUT);
    static const char behind_number[] = "[1,\n [0\0,3], \"x\"]"; /* which jansson reads as [1, [0, 3], "x"] */
    err = (struct error){0};
    assert_refused(json_input_parse("t.json", behind_number, sizeof behind_number - 1, &input, &err), &err,
                   "t.json:2:4: a NUL byte");
}

/* Returns "[1,1,...]" with `prefix` before it and `suffix` after it. The caller frees it. */
static char *many_numbers(const char *prefix, size_t count, const char *suffix)
{
    size_t length = strlen(prefix);
    char *text = malloc(length + 2 * count + strlen(suffix) + 2), *c = text;
    assert_non_null(text);
    c += snprintf(c, length + 1, "%s", prefix);
    *c++ = '[';
    for (size_t i = 0; i < count; i++, c += 2) memcpy(c, "1,", 2);
    c[-1] = ']';
    memcpy(c, suffix, strlen(suffix) + 1);
    return text;
}

/* 40 bytes a number, 130 for each of the two arrays of "[x,[1,1,...]]". */
enum { NUMBERS_MOST = (int)((((size_t)384 << 20) - 2 * 130) / 40) };

static enum status parse_numbers(size_t count, struct error *err)
{
    struct json_input *input;
    char *text = many_numbers("[x,", count, "]");
    *err = (struct error){0};
    enum status status = json_input_parse("t.json", text, strlen(text), &input, err);
    free(text);
    return status;
}

/* The first pass accepts as many numbers as fit, and finds a number more before jansson finds the x. */
static void values_end_with_memory(void **state)
{
    (void)state;
    struct error err;
    char expected[128];
    assert_int_equal(parse_numbers(NUMBERS_MOST, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "t.json:1:2: invalid token near 'x'");
    snprintf(expected, sizeof expected, "t.json:1:%d: too many values for 384 MiB of memory (the limit for a file of "
             "this size)", 2 * NUMBERS_MOST + 4);
    assert_int_equal(parse_numbers(NUMBERS_MOST + 1, &err), STATUS_LIMIT);
    assert_string_equal(err.text, expected);
}

static enum status refuse_row(const struct json_row *row, void *context, struct error *err)
{
    (void)row;
    (void)context;
    return error_set(err, STATUS_BAD_INPUT, "the first error");
}

static enum status refuse_rows(const struct json_input *in, void *context, struct error *err)
{
    return json_rows_each(in, json_object_get(json_input_root(in), "rows"), refuse_row, context, err);
}

static void rows_past_the_memory_have_the_first_error(void **state)
{
    (void)state;
    static const char *const arrays[] = {"rows", NULL};
    struct error err = {0};
    char path[] = "json-rows-XXXXXX";
    char *text = many_numbers("{\"rows\": ", NUMBERS_MOST + 2, "}");
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    close(file);
    free(text);
    assert_int_equal(json_rows_read_file(path, arrays, refuse_rows, NULL, &err), STATUS_BAD_INPUT);
    unlink(path);
    assert_string_equal(err.text, "the first error");
}

static void nesting_stops_at_64(void **state)
{
    (void)state;
    char text[400] = {0};
    struct error err = {0};
    struct json_input *input;
    memset(text, '[', 64);
    memset(text + 64, ']', 64);
    assert_int_equal(json_input_parse("t.json", text, strlen(text), &input, &err), STATUS_OK);
    json_input_destroy(input);

    memset(text, '[', 65);
    memset(text + 65, ']', 65);
    assert_refused(json_input_parse("t.json", text, strlen(text), &input, &err), &err,
                   "t.json:1:65: too many levels of nesting (limit is 64)");

    /* Brackets in a string nest nothing. */
    err = (struct error){0};
    snprintf(text, sizeof text, "[\"\\\"%0100d", 0);
    for (char *c = text + 4; *c; c++) *c = '[';
    strcat(text, "\\\\\", {}]");
    assert_int_equal(json_input_parse("t.json", text, strlen(text), &input, &err), STATUS_OK);
    json_input_destroy(input);
}

/* --- taking values -------------------------------------------------------------------------- */

/* Takes the elements of [4, 0.5, "x", [1, 2]]. */
static void take_elements(const struct json_input *input, const json_t *array)
{
    struct error err = {0};
    const json_t *pair;
    const char *s;
    uint64_t u;
    double half;
    assert_int_equal(json_item_u64(input, array, 0, 1, 4, &u, &err), STATUS_OK);
    assert_int_equal(json_item_double(input, array, 1, 0, 1, &half, &err), STATUS_OK);
    assert_int_equal(json_item_string(input, array, 2, &s, &err), STATUS_OK);
    assert_int_equal(json_item_array(input, array, 3, 2, &pair, &err), STATUS_OK);
    assert_int_equal(json_item_array(input, array, 3, SIZE_MAX, &pair, &err), STATUS_OK);
    assert_int_equal(u, 4);
    assert_true(half == 0.5);
    assert_string_equal(s, "x");
    assert_int_equal(json_array_size(pair), 2);
}

static void good_values_are_taken(void **state)
{
    (void)state;
    struct json_input *input = parsed(
        "{\"u\": 7, \"big\": 9223372036854775807, \"million\": 1e6, \"d\": 2.385, \"i\": 3,\n"
        " \"yes\": true, \"s\": \"gr\xc3\xbc\xc3\x9f\", \"c\": \"adamw\", \"q\": \"1.5 GiB\",\n"
        " \"a\": [4, 0.5, \"x\", [1, 2]], \"o\": {\"k\": 1}, \"_comment\": [\"anything\"],\n"
        " \"nothing\": null, \"any\": 1}");
    struct json_object object = opened(input);
    struct error err = {0};
    static const char *const optimizers[] = {"adam", "adamw", "sgd"};
    uint64_t u = 0, big = 0, million = 0, absent = 77;
    uint32_t narrow = 0;
    double d = 0, i = 0, q = 0;
    bool yes = false;
    const char *s = NULL, *nothing = "kept";
    size_t choice = 9;
    const json_t *a = NULL, *o = NULL, *none = (const json_t *)&u;
    assert_int_equal(json_take_u64(&object, "u", JSON_REQUIRED, 7, 7, &u, &err), STATUS_OK);
    assert_int_equal(json_take_u32(&object, "u", JSON_REQUIRED, 1, 9, &narrow, &err), STATUS_OK);
    assert_int_equal(json_take_u64(&object, "big", JSON_OPTIONAL, 1, UINT64_MAX, &big, &err),
                     STATUS_OK);
    assert_int_equal(json_take_u64(&object, "million", JSON_OPTIONAL, 1, 1000000, &million, &err),
                     STATUS_OK);
    assert_int_equal(json_take_u64(&object, "absent", JSON_OPTIONAL, 1, 2, &absent, &err),
                     STATUS_OK);
    assert_int_equal(json_take_double(&object, "d", JSON_REQUIRED, 0, 9, &d, &err), STATUS_OK);
    assert_int_equal(json_take_double(&object, "i", JSON_REQUIRED, 3, 3, &i, &err), STATUS_OK);
    assert_int_equal(json_take_bool(&object, "yes", JSON_REQUIRED, &yes, &err), STATUS_OK);
    assert_int_equal(json_take_string(&object, "s", JSON_REQUIRED, &s, &err), STATUS_OK);
    assert_int_equal(json_take_string(&object, "nothing", JSON_OPTIONAL, &nothing, &err),
                     STATUS_OK);
    assert_int_equal(json_take_choice(&object, "c", JSON_REQUIRED, optimizers, 3, &choice, &err),
                     STATUS_OK);
    assert_int_equal(json_take_quantity(&object, "q", JSON_REQUIRED, DIMENSION_BYTES, 1, DBL_MAX,
                                        &q, &err), STATUS_OK);
    assert_int_equal(json_take_array(&object, "a", JSON_REQUIRED, &a, &err), STATUS_OK);
    assert_int_equal(json_take_object(&object, "o", JSON_REQUIRED, &o, &err), STATUS_OK);
    assert_int_equal(json_take_array(&object, "none", JSON_OPTIONAL, &none, &err), STATUS_OK);
    assert_true(json_has(&object, "u"));
    assert_false(json_has(&object, "nothing"));
    assert_false(json_has(&object, "absent"));
    struct error unasked = {0};
    assert_refused(json_object_close(&object, &unasked), &unasked,
                   "t.json:4:19: unknown key 'any'");
    json_take_any(&object, "any");
    assert_int_equal(json_object_close(&object, &err), STATUS_OK);

    assert_int_equal(u, 7);
    assert_int_equal(narrow, 7);
    assert_true(big == INT64_MAX);
    assert_int_equal(million, 1000000);
    assert_int_equal(absent, 77);
    assert_true(d == 2.385 && i == 3 && q == 1610612736); /* 1.5 * 2^30 */
    assert_true(yes);
    assert_string_equal(s, "gr\xc3\xbc\xc3\x9f");
    assert_string_equal(nothing, "kept");
    assert_int_equal(choice, 1);
    assert_null(none);
    assert_non_null(o);

    take_elements(input, a);
    assert_string_equal(json_input_name(input), "t.json");
    json_input_destroy(input);
}

static void bad_values_say_where_and_why(void **state)
{
    (void)state;
    struct json_input *input = parsed(
        "{\n"
        "  \"zero\": 0, \"minus\": -3,\n"
        "  \"half\": 2.5, \"huge\": 1e300,\n"
        "  \"gr\xc3\xbc\xc3\x9f\": \"text\", \"yes\": true,\n"
        "  \"null\": null, \"bare\": 96, \"unit\": \"96\", \"small\": \"3B\",\n"
        "  \"list\": [1, \"a\", true, [1, 2, 3], {}, false],\n"
        "  \"object\": {\"a\": 1}\n"
        "}\n");
    struct json_object object = opened(input);
    uint64_t u = 55;
    uint32_t narrow = 55;
    double d = 55;
    bool b = true;
    const char *s = "kept";
    size_t choice = 55;
    const json_t *a = (const json_t *)&u;
    static const char *const few[] = {"adam", "adamw", "sgd"};
    struct error err;

#define REFUSED(call, message)                     \
    do {                                           \
        err = (struct error){0};                   \
        assert_refused(call, &err, "t.json:" message); \
    } while (0)

    REFUSED(json_take_u64(&object, "zero", JSON_REQUIRED, 1, 8, &u, &err),
            "2:11: 'zero' is 0 (expected 1 to 8)");
    REFUSED(json_take_u64(&object, "zero", JSON_OPTIONAL, 1, UINT64_MAX, &u, &err),
            "2:11: 'zero' is 0 (expected at least 1)");
    REFUSED(json_take_u32(&object, "zero", JSON_OPTIONAL, 2, 2, &narrow, &err),
            "2:11: 'zero' is 0 (expected 2)");
    REFUSED(json_take_u64(&object, "minus", JSON_REQUIRED, 0, UINT64_MAX, &u, &err),
            "2:23: 'minus' is -3 (expected at least 0)");
    REFUSED(json_take_u64(&object, "half", JSON_REQUIRED, 0, 9, &u, &err),
            "3:11: 'half' is 2.5 (expected a whole number)");
    REFUSED(json_take_u64(&object, "huge", JSON_REQUIRED, 0, UINT64_MAX, &u, &err),
            "3:24: 'huge' is 1e300 (expected a whole number)");
    REFUSED(json_take_u64(&object, "gr\xc3\xbc\xc3\x9f", JSON_REQUIRED, 0, 9, &u, &err),
            "4:11: 'gr\xc3\xbc\xc3\x9f' is a string (expected a whole number)");
    REFUSED(json_take_double(&object, "yes", JSON_REQUIRED, 0, 9, &d, &err),
            "4:26: 'yes' is true (expected a number)");
    REFUSED(json_take_double(&object, "half", JSON_REQUIRED, 0, 1.5, &d, &err),
            "3:11: 'half' is 2.5 (expected 0 to 1.5)");
    REFUSED(json_take_double(&object, "half", JSON_REQUIRED, 3.5, INFINITY, &d, &err),
            "3:11: 'half' is 2.5 (expected at least 3.5)");
    REFUSED(json_take_double(&object, "half", JSON_REQUIRED, -DBL_MAX, 1.25, &d, &err),
            "3:11: 'half' is 2.5 (expected at most 1.25)");
    REFUSED(json_take_bool(&object, "zero", JSON_REQUIRED, &b, &err),
            "2:11: 'zero' is a number (expected true or false)");
    REFUSED(json_take_string(&object, "list", JSON_REQUIRED, &s, &err),
            "6:11: 'list' is an array (expected a string)");
    REFUSED(json_take_string(&object, "null", JSON_REQUIRED, &s, &err),
            "5:11: 'null' is null (expected a string)");
    REFUSED(json_take_choice(&object, "absent", JSON_DECIDES, few, 3, &choice, &err),
            "1:1: missing key 'absent'");
    REFUSED(json_take_choice(&object, "objetc", JSON_DECIDES, few, 3, &choice, &err),
            "1:1: missing key 'objetc' (is 'object' a misspelling of it?)");
    s = "kept";
    REFUSED(json_take_choice(&object, "gr\xc3\xbc\xc3\x9f", JSON_REQUIRED, few, 3, &choice, &err),
            "4:11: unknown gr\xc3\xbc\xc3\x9f 'text' (expected adam, adamw or sgd)");
    REFUSED(json_take_quantity(&object, "bare", JSON_REQUIRED, DIMENSION_BYTES, 0, 9, &d, &err),
            "5:25: 'bare' is a number (expected a size such as 96MiB)");
    REFUSED(json_take_quantity(&object, "unit", JSON_REQUIRED, DIMENSION_BYTES, 0, 9, &d, &err),
            "5:37: 'unit': '96' has no unit (expected a size such as 96MiB)");
    REFUSED(json_take_quantity(&object, "small", JSON_REQUIRED, DIMENSION_BYTES, 4096, INFINITY, &d,
                               &err), "5:52: 'small' is '3B' (expected at least 4 KiB)");
    REFUSED(json_take_quantity(&object, "small", JSON_REQUIRED, DIMENSION_BYTES, 4096, 8192, &d,
                               &err), "5:52: 'small' is '3B' (expected 4 KiB to 8 KiB)");
    REFUSED(json_take_array(&object, "object", JSON_OPTIONAL, &a, &err),
            "7:13: 'object' is an object (expected an array)");
    REFUSED(json_take_object(&object, "list", JSON_OPTIONAL, &a, &err),
            "6:11: 'list' is an array (expected an object)");

    const json_t *list, *inner;
    err = (struct error){0};
    assert_int_equal(json_take_array(&object, "list", JSON_REQUIRED, &list, &err), STATUS_OK);
    REFUSED(json_item_u64(input, list, 0, 2, 5, &u, &err),
            "6:12: element 0 is 1 (expected 2 to 5)");
    REFUSED(json_item_double(input, list, 1, 0, 5, &d, &err),
            "6:15: element 1 is a string (expected a number)");
    REFUSED(json_item_string(input, list, 2, &s, &err),
            "6:20: element 2 is true (expected a string)");
    REFUSED(json_item_array(input, list, 3, 2, &a, &err),
            "6:26: element 3 has 3 elements (expected 2)");
    REFUSED(json_item_array(input, list, 4, 2, &a, &err),
            "6:37: element 4 is an object (expected an array)");
    REFUSED(json_item_u64(input, list, 5, 2, 5, &u, &err),
            "6:41: element 5 is false (expected a whole number)");
    err = (struct error){0};
    assert_int_equal(json_item_array(input, list, 3, 3, &inner, &err), STATUS_OK);
    REFUSED(json_item_u64(input, inner, 2, 4, 5, &u, &err),
            "6:33: element 2 is 3 (expected 4 to 5)");

    struct json_object nested;
    REFUSED(json_object_open_at(&nested, input, list, 1, "a job object", &err),
            "6:15: element 1 is a string (expected a job object)");
    REFUSED(json_object_open(&nested, input, list, "a job object", &err),
            "6:11: found an array (expected a job object)");
    REFUSED(json_fail_key(input, json_input_root(input), "yes", &err, "%s %d", "no", 5),
            "4:26: no 5");
    REFUSED(json_fail_key(input, list, NULL, &err, "here"), "6:11: here");
    REFUSED(json_fail_index(input, list, JSON_SELF, &err, "here"), "6:11: here");
    REFUSED(json_fail_index(input, inner, 1, &err, "there"), "6:30: there");
#undef REFUSED

    assert_int_equal(u, 55);
    assert_int_equal(narrow, 55);
    assert_true(d == 55 && b);
    assert_string_equal(s, "kept");
    assert_int_equal(choice, 55);
    assert_ptr_equal(a, &u);
    json_input_destroy(input);
}

static void a_long_list_of_choices_is_not_recited(void **state)
{
    (void)state;
    static const char *const many[] = {"a1", "b2", "c3", "d4", "e5", "f6", "g7",
                                       "h8", "i9", "j10", "k11", "l12", "sharded-lrtf"};
    struct json_input *input = parsed("{\"policy\": \"shraded-lrtf\"}");
    struct json_object object = opened(input);
    struct error err = {0};
    size_t choice;
    assert_refused(json_take_choice(&object, "policy", JSON_REQUIRED, many, ARRAY_COUNT(many),
                                    &choice, &err), &err,
                   "t.json:1:12: unknown policy 'shraded-lrtf' (did you mean 'sharded-lrtf'?)");
    json_input_destroy(input);
}

static void unknown_keys_are_refused(void **state)
{
    (void)state;
    struct json_input *input = parsed("{\n \"steps\": 3,\n \"_comment\": 1,\n   \"wram_up\": 2,\n"
                                      " \"colour\": 1}");
    struct json_object object = opened(input);
    struct error err = {0};
    uint64_t u;
    assert_int_equal(json_take_u64(&object, "steps", JSON_REQUIRED, 1, 9, &u, &err), STATUS_OK);
    assert_int_equal(json_take_u64(&object, "warm_up", JSON_OPTIONAL, 1, 9, &u, &err), STATUS_OK);
    assert_refused(json_object_close(&object, &err), &err,
                   "t.json:4:4: unknown keys 'wram_up' (did you mean 'warm_up'?) and 'colour' (expected steps or "
                   "warm_up)");
    const struct json_missing missing[] = {{"kind", NULL}, {"seed", "random_seed of others"}};
    err = (struct error){0};
    assert_refused(json_object_close_missing(&object, missing, 2, &err), &err,
                   "t.json:1:1: missing keys 'kind' and 'seed' (random_seed of others); unknown keys 'wram_up' (did "
                   "you mean 'warm_up'?) and 'colour' (expected steps or warm_up)");
    json_take_any(&object, "wram_up");
    err = (struct error){0};
    assert_refused(json_object_close(&object, &err), &err,
                   "t.json:5:2: unknown key 'colour' (expected steps, warm_up or wram_up)");
    json_take_any(&object, "colour");
    err = (struct error){0};
    assert_int_equal(json_object_close_missing(&object, NULL, 0, &err), STATUS_OK);
    assert_refused(json_object_close_missing(&object, missing, 1, &err), &err, "t.json:1:1: missing key 'kind'");
    json_input_destroy(input);
}

static const char *const two[] = {"left", "right"};

/* Reads one key of each kind, all of them absent. */
static void read_each_kind(struct json_object *object)
{
    struct error err = {0};
    uint64_t u = 55;
    uint32_t narrow = 55;
    double d = 55, q = 55;
    bool b = true;
    const char *s = NULL;
    size_t choice = 55;
    const json_t *a = NULL, *o = NULL, *inner = NULL;
    struct json_object child;
    assert_int_equal(json_take_u64(object, "u", JSON_REQUIRED, 3, 9, &u, &err), STATUS_OK);
    assert_int_equal(json_take_u32(object, "narrow", JSON_REQUIRED, 4, 9, &narrow, &err), STATUS_OK);
    assert_int_equal(json_take_double(object, "d", JSON_REQUIRED, -DBL_MAX, -2, &d, &err), STATUS_OK);
    assert_int_equal(json_take_quantity(object, "q", JSON_REQUIRED, DIMENSION_BYTES, 6, 9, &q, &err), STATUS_OK);
    assert_int_equal(json_take_bool(object, "b", JSON_REQUIRED, &b, &err), STATUS_OK);
    assert_int_equal(json_take_string(object, "s", JSON_REQUIRED, &s, &err), STATUS_OK);
    assert_int_equal(json_take_choice(object, "choice", JSON_REQUIRED, two, 2, &choice, &err), STATUS_OK);
    assert_int_equal(json_take_array(object, "a", JSON_REQUIRED, &a, &err), STATUS_OK);
    assert_int_equal(json_take_object(object, "o", JSON_REQUIRED, &o, &err), STATUS_OK);
    assert_true(u == 3 && narrow == 4 && d == -2 && q == 6 && !b && choice == 0);
    assert_string_equal(s, "");
    assert_true(json_is_stand_in(object->input, a) && json_is_stand_in(object->input, o));
    assert_int_equal(json_array_size(a) + json_object_size(o), 0);
    /* keys that are missing in a stand-in are not told */
    assert_int_equal(json_object_open(&child, object->input, o, "a child", &err), STATUS_OK);
    assert_int_equal(json_take_array(&child, "inner", JSON_REQUIRED, &inner, &err), STATUS_OK);
    assert_int_equal(json_object_close(&child, &err), STATUS_OK);
}

static const char all_missing[] = "t.json:1:1: missing keys 'u', 'narrow', 'd', 'q', 'b', 's', 'choice', 'a' and 'o'";

/* By closing the object, by an error of another value, and by a key that decides. Each time once: the input can be
 * read again. */
static void missing_keys_are_told_together(void **state)
{
    (void)state;
    struct json_input *input = parsed("{\"given\": 1,\n \"narow\": 4}");
    char message[512];
    struct error err = {0};
    size_t choice;
    struct json_object object = opened(input);
    assert_false(json_is_stand_in(input, json_input_root(input)));
    json_take_any(&object, "given");
    read_each_kind(&object);
    snprintf(message, sizeof message, "%s; unknown key 'narow' (did you mean 'narrow'?)", all_missing);
    assert_refused(json_object_close(&object, &err), &err, message);

    err = (struct error){0};
    object = opened(input);
    read_each_kind(&object);
    assert_refused(json_fail_key(input, object.value, "given", &err, "follows from a stand-in"), &err,
                   "t.json:1:1: missing keys 'u', 'narrow' (is 'narow' a misspelling of it?), 'd', 'q', 'b', 's', "
                   "'choice', 'a' and 'o'");

    err = (struct error){0};
    object = opened(input);
    assert_int_equal(json_take_choice(&object, "side", JSON_REQUIRED, two, 2, &choice, &err), STATUS_OK);
    assert_refused(json_take_choice(&object, "kind", JSON_DECIDES, two, 2, &choice, &err), &err,
                   "t.json:1:1: missing keys 'side' and 'kind'");

    err = (struct error){0};
    assert_refused(json_fail_key(input, object.value, "given", &err, "said once"), &err, "t.json:1:11: said once");
    json_input_destroy(input);
}

/* The first missing key of an unfinished object is reported. */
static void where_others_are_ignored_a_missing_key_is_told_at_once(void **state)
{
    (void)state;
    struct json_input *input = parsed("{\"others\": 1}");
    struct json_object object = opened(input);
    struct error err = {0};
    bool b;
    json_object_ignore_others(&object);
    assert_refused(json_take_bool(&object, "b", JSON_REQUIRED, &b, &err), &err, "t.json:1:1: missing key 'b'");
    json_input_destroy(input);
}

static void of_many_unknown_keys_the_first_are_named(void **state)
{
    (void)state;
    struct json_input *input = parsed("{\"a\": 1, \"b\": 1, \"c\": 1, \"d\": 1, \"e\": 1, \"f\": 1, \"g\": 1, "
                                      "\"h\": 1, \"i\": 1, \"j\": 1}");
    struct json_object object = opened(input);
    struct error err = {0};
    assert_refused(json_object_close(&object, &err), &err,
                   "t.json:1:2: unknown keys 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h' and 2 more");
    json_input_destroy(input);
}

/* true, false and null exist once in jansson: their own address says nothing about their place. */
static void shared_values_have_places_of_their_own(void **state)
{
    (void)state;
    struct json_input *input = parsed("[true, null,\n [true, true], true]");
    const json_t *root = json_input_root(input), *inner;
    struct error err = {0};
    const char *s;
    assert_int_equal(json_item_array(input, root, 2, 2, &inner, &err), STATUS_OK);
    assert_refused(json_item_string(input, inner, 1, &s, &err), &err,
                   "t.json:2:9: element 1 is true (expected a string)");
    struct json_object object;
    err = (struct error){0};
    assert_refused(json_object_open(&object, input, json_array_get(root, 3), "a job", &err), &err,
                   "t.json: found true (expected a job)");
    err = (struct error){0};
    assert_refused(json_object_open_at(&object, input, root, 3, "a job", &err), &err,
                   "t.json:2:16: element 3 is true (expected a job)");
    json_input_destroy(input);
}

/* --- places in made-up documents -------------------------------------------------------------- */

enum { DOCUMENT_BYTES = 1 << 16, MARKS_MAX = 4096 };

/* A random document, written together with the line and column of each array element. */
struct document {
    char text[DOCUMENT_BYTES];
    size_t length, line, column;
    uint64_t seed, draws;
    size_t mark_count;
    struct {
        size_t line, column;
    } marks[MARKS_MAX]; /* in document order: every number */
};

static uint64_t draw(struct document *document, uint64_t bound)
{
    return random_below(document->seed, document->draws++, bound);
}

static void add(struct document *document, const char *text)
{
    for (; *text && document->length < DOCUMENT_BYTES - 1; text++) {
        document->text[document->length++] = *text;
        if (*text == '\n') {
            document->line++;
            document->column = 1;
        } else if (((unsigned char)*text & 0xc0) != 0x80) {
            document->column++;
        }
    }
}

static void add_space(struct document *document)
{
    static const char *const spaces[] = {"", " ", "\n", "\t ", "\r\n  ", "", ""};
    add(document, spaces[draw(document, ARRAY_COUNT(spaces))]);
}

static void add_value(struct document *document, int depth)
{
    static const char *const scalars[] = {"true", "false", "null", "\"a,]}\\\"[{\"", "\"\"",
                                          "\"\\\\\"", "\"\xe2\x82\xac:\"", "-1.5e-3"};
    uint64_t kind = draw(document, depth > 6 ? 8 : 12);
    if (kind < 4) {
        document->marks[document->mark_count].line = document->line;
        document->marks[document->mark_count++].column = document->column;
        add(document, "123456789");
    } else if (kind < 8) {
        add(document, scalars[draw(document, ARRAY_COUNT(scalars))]);
    } else {
        bool object = kind < 10;
        uint64_t count = draw(document, 6);
        add(document, object ? "{" : "[");
        for (uint64_t i = 0; i < count && document->mark_count < MARKS_MAX - 8; i++) {
            if (i > 0) add(document, ",");
            add_space(document);
            if (object) {
                char key[64];
                snprintf(key, sizeof key, "\"k\\\"%" PRIu64 "{\xc3\xa9\"", i);
                add(document, key);
                add_space(document);
                add(document, ":");
                add_space(document);
            }
            add_value(document, depth + 1);
            add_space(document);
        }
        add_space(document);
        add(document, object ? "}" : "]");
    }
}

/* Reads every number in document order and compares the place that its error names. */
static void check_marks(const struct document *document, const struct json_input *input,
                        const json_t *value, size_t *next)
{
    size_t count = json_is_object(value) ? json_object_size(value) : json_array_size(value);
    void *iterator = json_object_iter((json_t *)value);
    for (size_t i = 0; i < count; i++) {
        const json_t *child = json_array_get(value, i);
        const char *key = NULL;
        if (iterator) {
            key = json_object_iter_key(iterator);
            child = json_object_iter_value(iterator);
            iterator = json_object_iter_next((json_t *)value, iterator);
        }
        if (json_is_integer(child)) {
            struct error err = {0};
            char expected[64];
            if (key)
                json_fail_key(input, value, key, &err, "x");
            else
                json_fail_index(input, value, i, &err, "x");
            snprintf(expected, sizeof expected, "t.json:%zu:%zu: x", document->marks[*next].line,
                     document->marks[*next].column);
            assert_string_equal(err.text, expected);
            ++*next;
        }
        check_marks(document, input, child, next);
    }
}

static void places_match_the_text(void **state)
{
    (void)state;
    uint64_t seed = support_seed("json_in");
    static struct document document;
    for (uint64_t i = 0; i < 200; i++) {
        document = (struct document){.seed = random_u64(seed, i), .line = 1, .column = 1};
        add_space(&document);
        add(&document, "[");
        add_value(&document, 0);
        for (int j = 0; j < 3; j++) {
            add(&document, ",");
            add_value(&document, 0);
        }
        add(&document, "]");
        add_space(&document);
        if (document.length >= DOCUMENT_BYTES - 1) continue;
        struct json_input *input = parsed(document.text);
        size_t next = 0;
        check_marks(&document, input, json_input_root(input), &next);
        assert_int_equal(next, document.mark_count);
        json_input_destroy(input);
    }
}

/* --- files and memory ------------------------------------------------------------------------ */

static void files_are_read(void **state)
{
    (void)state;
    struct error err = {0};
    struct json_input *input;
    assert_int_equal(json_input_read("/nonexistent/a.json", &input, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "cannot open '/nonexistent/a.json': No such file or directory");
    err = (struct error){0};
    assert_int_equal(json_input_read("/tmp", &input, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "'/tmp' is a folder (expected a file)");

    char path[] = "/tmp/spillway-json-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "{\"a\": }", 7), 7);
    close(fd);
    err = (struct error){0};
    assert_int_equal(json_input_read(path, &input, &err), STATUS_BAD_INPUT);
    assert_memory_equal(err.text, path, strlen(path));
    assert_string_equal(err.text + strlen(path), ":1:7: unexpected token near '}'");
    unlink(path);
}

static void every_failing_allocation_is_told(void **state)
{
    (void)state;
    static const char text[] = "{\"a\": [1, 2.5, \"x\"]}";
    uint64_t calls = 1;
    for (uint64_t n = 0; n <= calls; n++) {
        struct json_input *input = NULL;
        struct error err = {0};
        alloc_test_fail_at(n);
        enum status status = json_input_parse("t.json", text, sizeof text - 1, &input, &err);
        uint64_t made = alloc_test_fail_at(0);
        if (n == 0) {
            calls = made;
            assert_true(calls >= 3);
            assert_int_equal(status, STATUS_OK);
        } else {
            assert_int_equal(status, STATUS_NO_MEMORY);
            assert_null(input);
        }
        json_input_destroy(input);
    }
}

/* jansson's own allocations. It checks most of them; the text is short because it does not check the allocation of a
 * token longer than 16 bytes. */
static uint64_t jansson_calls, jansson_failing;

static void *failing_malloc(size_t size)
{
    return ++jansson_calls == jansson_failing ? NULL : malloc(size);
}

static void every_failing_allocation_of_jansson_is_told(void **state)
{
    (void)state;
    static const char text[] = "{\"a\": [1, 2.5, \"x\"], \"b\": {\"c\": true}}";
    json_malloc_t old_malloc;
    json_free_t old_free;
    json_get_alloc_funcs(&old_malloc, &old_free);
    json_set_alloc_funcs(failing_malloc, free);
    uint64_t calls = 1;
    for (uint64_t n = 0; n <= calls; n++) {
        struct json_input *input = NULL;
        struct error err = {0};
        jansson_calls = 0;
        jansson_failing = n;
        enum status status = json_input_parse("t.json", text, sizeof text - 1, &input, &err);
        if (n == 0) {
            calls = jansson_calls;
            assert_true(calls >= 10);
            assert_int_equal(status, STATUS_OK);
        } else {
            assert_int_not_equal(status, STATUS_OK);
            assert_true(strlen(err.text) > 0);
        }
        json_input_destroy(input);
    }
    json_set_alloc_funcs(old_malloc, old_free);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(syntax_errors_have_a_place),
        cmocka_unit_test(nul_bytes_are_refused),
        cmocka_unit_test(values_end_with_memory),
        cmocka_unit_test(rows_past_the_memory_have_the_first_error),
        cmocka_unit_test(nesting_stops_at_64),
        cmocka_unit_test(good_values_are_taken),
        cmocka_unit_test(bad_values_say_where_and_why),
        cmocka_unit_test(a_long_list_of_choices_is_not_recited),
        cmocka_unit_test(unknown_keys_are_refused),
        cmocka_unit_test(missing_keys_are_told_together),
        cmocka_unit_test(where_others_are_ignored_a_missing_key_is_told_at_once),
        cmocka_unit_test(of_many_unknown_keys_the_first_are_named),
        cmocka_unit_test(shared_values_have_places_of_their_own),
        cmocka_unit_test(places_match_the_text),
        cmocka_unit_test(files_are_read),
        cmocka_unit_test(every_failing_allocation_is_told),
        cmocka_unit_test(every_failing_allocation_of_jansson_is_told),
    };
    return cmocka_run_group_tests_name("base/json/json_in.h", tests, NULL, NULL);
}
