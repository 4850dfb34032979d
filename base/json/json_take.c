/*
 * Takes the values of objects and arrays, checks their types and ranges, and remembers which keys were asked for.
 */
#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/files/file_kind.h"
#include "base/json/json_input.h"
#include "base/text/number.h"
#include "base/text/suggest.h"
#include "base/try.h"

enum { LIST_BYTES = 512 };

/* --- one value in an object or an array ------------------------------------------------------- */

/* A value and its position. Its name is written out only for an error. */
struct item {
    const struct json_input *input;
    const json_t *container;
    const char *key; /* NULL in an array */
    size_t index;    /* in an array */
    const json_t *value;
    bool missing; /* required and not there: the reader takes a stand-in */
};

/* Sets the error "name:line:column: 'key'" or "...: element 3", followed by the text of `format`. */
static enum status PRINTF_LIKE(3, 4)
    fail_item(const struct item *item, struct error *err, const char *format, ...)
{
    char message[sizeof err->text];
    int used = item->key ? snprintf(message, sizeof message, "'%s'", item->key)
                         : snprintf(message, sizeof message, "element %zu", item->index);
    size_t start = (size_t)used < sizeof message ? (size_t)used : sizeof message - 1;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message + start, sizeof message - start, format, arguments);
    va_end(arguments);
    return item->key ? json_fail_key(item->input, item->container, item->key, err, "%s", message)
                     : json_fail_index(item->input, item->container, item->index, err, "%s", message);
}

static const char *type_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: return "a string";
    case JSON_INTEGER:
    case JSON_REAL: return "a number";
    case JSON_TRUE: return "true";
    case JSON_FALSE: return "false";
    case JSON_NULL: return "null";
    }
    return "something else";
}

static enum status fail_type(const struct item *item, const char *expected, struct error *err)
{
    return fail_item(item, err, " is %s (expected %s)", type_name(item->value), expected);
}

static const char *double_text(double value, char buffer[NUMBER_TEXT_BYTES])
{
    struct number_powers powers;
    number_powers_init(&powers);
    buffer[number_write(value, &powers, buffer)] = '\0';
    return buffer;
}

/* Returns "at least 1", "1 to 8"; the JSON integers that can be read end at 2^63 - 1. */
static const char *u64_range(uint64_t min, uint64_t max, char *buffer, size_t size)
{
    if (max >= INT64_MAX)
        snprintf(buffer, size, "at least %" PRIu64, min);
    else if (min == max)
        snprintf(buffer, size, "%" PRIu64, min);
    else
        snprintf(buffer, size, "%" PRIu64 " to %" PRIu64, min, max);
    return buffer;
}

static enum status item_u64(const struct item *item, uint64_t min, uint64_t max, uint64_t *out,
                            struct error *err)
{
    char range[64], number[NUMBER_TEXT_BYTES];
    u64_range(min, max, range, sizeof range);
    json_int_t integer;
    if (json_is_real(item->value)) {
        /* 1e6 is how people write a million */
        double real = json_real_value(item->value);
        if (fabs(real) > 0x1p53 || real != floor(real))
            return fail_item(item, err, " is %s (expected a whole number)",
                             double_text(real, number));
        integer = (json_int_t)real;
    } else if (json_is_integer(item->value)) {
        integer = json_integer_value(item->value);
    } else {
        return fail_type(item, "a whole number", err);
    }
    if (integer < 0 || (uint64_t)integer < min || (uint64_t)integer > max)
        return fail_item(item, err, " is %" PRIdMAX " (expected %s)", (intmax_t)integer, range);
    *out = (uint64_t)integer;
    return STATUS_OK;
}

static const char *double_range(double min, double max, char *buffer, size_t size)
{
    char low[NUMBER_TEXT_BYTES], high[NUMBER_TEXT_BYTES];
    bool has_low = isfinite(min) && min > -DBL_MAX, has_high = isfinite(max) && max < DBL_MAX;
    if (has_low) double_text(min, low);
    if (has_high) double_text(max, high);
    if (has_low && has_high)
        snprintf(buffer, size, "%s to %s", low, high);
    else if (has_low)
        snprintf(buffer, size, "at least %s", low);
    else if (has_high)
        snprintf(buffer, size, "at most %s", high);
    else
        snprintf(buffer, size, "a number");
    return buffer;
}

static enum status item_double(const struct item *item, double min, double max, double *out,
                               struct error *err)
{
    if (!json_is_number(item->value)) return fail_type(item, "a number", err);
    double value = json_number_value(item->value);
    if (value < min || value > max) {
        char range[96], number[NUMBER_TEXT_BYTES];
        return fail_item(item, err, " is %s (expected %s)", double_text(value, number),
                         double_range(min, max, range, sizeof range));
    }
    *out = value;
    return STATUS_OK;
}

/* Returns the first control character of a text in UTF-8, including U+0080 to U+009F; 0 when there is none. */
static unsigned control_character(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c < 0x20 || *c == 0x7f) return *c;
        if (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) return c[1];
    }
    return 0;
}

/* Checks a string. Strings are names, which are shown: a terminal would obey control characters, and a newline breaks
 * tables. */
static enum status item_string(const struct item *item, const char **out, struct error *err)
{
    if (!json_is_string(item->value)) return fail_type(item, "a string", err);
    const char *text = json_string_value(item->value);
    const unsigned control = control_character(text);
    if (control) return fail_item(item, err, " has the control character U+%04X (expected text on one line)", control);
    *out = text;
    return STATUS_OK;
}

static enum status item_text(const struct item *item, const char **out, struct error *err)
{
    if (!json_is_string(item->value)) return fail_type(item, "a string", err);
    *out = json_string_value(item->value);
    return STATUS_OK;
}

static enum status item_quantity(const struct item *item, enum dimension dimension, double min,
                                 double max, double *out, struct error *err)
{
    if (!json_is_string(item->value)) return fail_type(item, dimension_example(dimension), err);
    double value;
    struct error reason = {0};
    if (quantity_parse(json_string_value(item->value), dimension, &value, &reason) != STATUS_OK)
        return fail_item(item, err, ": %s", reason.text);
    if (value < min || value > max) {
        char low[QUANTITY_TEXT_BYTES], high[QUANTITY_TEXT_BYTES];
        const char *text = json_string_value(item->value);
        quantity_text(min, dimension, low);
        if (isfinite(max) && max < DBL_MAX)
            return fail_item(item, err, " is '%s' (expected %s to %s)", text, low,
                             quantity_text(max, dimension, high));
        return fail_item(item, err, " is '%s' (expected at least %s)", text, low);
    }
    *out = value;
    return STATUS_OK;
}

/* --- objects -------------------------------------------------------------------------------- */

enum status json_object_open(struct json_object *object, const struct json_input *input,
                             const json_t *value, const char *what, struct error *err)
{
    assert(value);
    if (!json_is_object(value))
        return json_fail_key(input, value, NULL, err, "found %s (expected %s)", type_name(value),
                             what);
    object->input = input;
    object->value = value;
    object->asked_count = 0;
    object->found_count = 0;
    object->open_ended = false;
    return STATUS_OK;
}

enum status json_object_open_at(struct json_object *object, const struct json_input *input,
                                const json_t *array, size_t index, const char *what,
                                struct error *err)
{
    const json_t *value = json_array_get(array, index);
    assert(value);
    if (!json_is_object(value))
        return json_fail_index(input, array, index, err, "element %zu is %s (expected %s)", index,
                               type_name(value), what);
    return json_object_open(object, input, value, what, err);
}

enum status json_object_open_element(struct json_object *object, const struct json_input *input, size_t index,
                                     const char *what, struct error *err)
{
    const json_t *value = json_input_root(input);
    if (!json_is_object(value))
        return json_fail_key(input, value, NULL, err, "element %zu is %s (expected %s)", index, type_name(value), what);
    return json_object_open(object, input, value, what, err);
}

/* Returns the value under `key`, which then counts as asked for; NULL when there is none. */
static const json_t *ask(struct json_object *object, const char *key)
{
    const json_t *value = json_object_get(object->value, key);
    for (size_t i = 0; i < object->asked_count; i++)
        if (object->asked[i] == key || strcmp(object->asked[i], key) == 0) return value;
    assert(object->asked_count < JSON_KEYS_MAX);
    object->asked[object->asked_count++] = key;
    if (value) object->found_count++;
    return value;
}

/* Answers of verbs have the name of the verb. */
static enum status refuse_answer(const struct json_input *input, const char *expected, struct error *err)
{
    const char *verb = json_string_value(json_object_get(input->root, "verb"));
    if (!verb || !json_object_get(input->root, "tool_version")) return STATUS_OK;
    return json_fail_key(input, input->root, "verb", err, "the answer of 'spillway %.40s --json' (expected %s)", verb,
                         expected);
}

enum status json_refuse_kind(const struct json_input *input, const char *expected, struct error *err)
{
    const struct file_reading *found;
    for (size_t i = 0; (found = file_reading_at(i)); i++) {
        char refusal[FILE_READING_BYTES];
        if (json_object_get(input->root, found->key))
            return json_fail_key(input, input->root, found->key, err, "%s",
                                 file_reading_refusal(found, input->name, expected, refusal));
    }
    return refuse_answer(input, expected, err);
}

void json_object_ignore_others(struct json_object *object)
{
    object->open_ended = true;
}

/* --- taking ---------------------------------------------------------------------------------- */

static double least_number(double min, double max)
{
    if (isfinite(min) && min > -DBL_MAX) return min;
    return max < 0 ? max : 0;
}

/* Refuses a file of another kind, or records the missing key. */
static enum status miss(const struct json_object *object, const char *key, enum json_need need, struct error *err)
{
    const struct json_input *input = object->input;
    const struct file_reading *expected = object->value == input->root ? file_reading_of_key(key) : NULL;
    if (expected) TRY(json_refuse_kind(input, expected->noun, err));
    return json_miss(object, key, need, err);
}

/* Finds the value under `key`; item->value is NULL if there is none to read: an optional key that is absent or null,
 * a required key that is missing (item->missing), or after an error. */
static enum status consume(struct json_object *object, const char *key, enum json_need need,
                           struct item *item, struct error *err)
{
    const json_t *value = ask(object, key);
    *item = (struct item){.input = object->input, .container = object->value, .key = key};
    if (!value && need != JSON_OPTIONAL) {
        const enum status status = miss(object, key, need, err);
        item->missing = status == STATUS_OK;
        return status;
    }
    if (need != JSON_OPTIONAL || !json_is_null(value)) item->value = value;
    return STATUS_OK;
}

enum status json_take_u64(struct json_object *object, const char *key, enum json_need need,
                          uint64_t min, uint64_t max, uint64_t *out, struct error *err)
{
    struct item item;
    enum status status = consume(object, key, need, &item, err);
    if (item.missing) *out = min;
    return item.value ? item_u64(&item, min, max, out, err) : status;
}

enum status json_take_u32(struct json_object *object, const char *key, enum json_need need,
                          uint32_t min, uint32_t max, uint32_t *out, struct error *err)
{
    struct item item;
    enum status status = consume(object, key, need, &item, err);
    if (item.missing) *out = min;
    if (!item.value) return status;
    uint64_t wide = 0;
    status = item_u64(&item, min, max, &wide, err);
    if (status == STATUS_OK) *out = (uint32_t)wide;
    return status;
}

enum status json_take_double(struct json_object *object, const char *key, enum json_need need,
                             double min, double max, double *out, struct error *err)
{
    struct item item;
    enum status status = consume(object, key, need, &item, err);
    if (item.missing) *out = least_number(min, max);
    return item.value ? item_double(&item, min, max, out, err) : status;
}

enum status json_take_bool(struct json_object *object, const char *key, enum json_need need,
                           bool *out, struct error *err)
{
    struct item item;
    enum status status = consume(object, key, need, &item, err);
    if (item.missing) *out = false;
    if (!item.value) return status;
    if (!json_is_boolean(item.value)) return fail_type(&item, "true or false", err);
    *out = json_is_true(item.value);
    return STATUS_OK;
}

enum status json_take_string(struct json_object *object, const char *key, enum json_need need,
                             const char **out, struct error *err)
{
    struct item item;
    enum status status = consume(object, key, need, &item, err);
    if (item.missing) *out = "";
    return item.value ? item_string(&item, out, err) : status;
}

enum status json_take_text(struct json_object *object, const char *key, enum json_need need,
                             const char **out, struct error *err)
{
    struct item item;
    enum status status = consume(object, key, need, &item, err);
    if (item.missing) *out = "";
    return item.value ? item_text(&item, out, err) : status;
}

enum status json_take_choice(struct json_object *object, const char *key, enum json_need need,
                             const char *const *names, size_t count, size_t *out,
                             struct error *err)
{
    struct item item;
    const char *name = NULL;
    enum status status = consume(object, key, need, &item, err);
    if (item.missing) *out = 0;
    if (!item.value) return status;
    TRY(item_string(&item, &name, err));
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) != 0) continue;
        *out = i;
        return STATUS_OK;
    }
    char list[LIST_BYTES];
    const char *near = suggest(name, names, count);
    if (near && count > JSON_LISTED_WORDS_MAX)
        return json_fail_key(object->input, object->value, key, err,
                             "unknown %s '%s' (did you mean '%s'?)", key, name, near);
    return json_fail_key(object->input, object->value, key, err, "unknown %s '%s' (expected %s)",
                         key, name, suggest_list(names, count, list, sizeof list));
}

enum status json_take_quantity(struct json_object *object, const char *key, enum json_need need,
                               enum dimension dimension, double min, double max, double *out,
                               struct error *err)
{
    struct item item;
    enum status status = consume(object, key, need, &item, err);
    if (item.missing) *out = least_number(min, max);
    return item.value ? item_quantity(&item, dimension, min, max, out, err) : status;
}

/* Takes a container of this type; an empty one when it is missing. */
static enum status read_container(struct json_object *object, const char *key, enum json_need need, json_type type,
                                  const char *expected, const json_t **out, struct error *err)
{
    struct item item;
    enum status status = consume(object, key, need, &item, err);
    if (status == STATUS_OK && item.value && json_typeof(item.value) != type) status = fail_type(&item, expected, err);
    const struct json_lacking *lacking = object->input->lacking;
    const json_t *empty = type == JSON_ARRAY ? lacking->empty_array : lacking->empty_object;
    if (status == STATUS_OK) *out = item.missing ? empty : item.value;
    return status;
}

enum status json_take_array(struct json_object *object, const char *key, enum json_need need,
                            const json_t **out, struct error *err)
{
    return read_container(object, key, need, JSON_ARRAY, "an array", out, err);
}

enum status json_take_object(struct json_object *object, const char *key, enum json_need need,
                             const json_t **out, struct error *err)
{
    return read_container(object, key, need, JSON_OBJECT, "an object", out, err);
}

void json_take_any(struct json_object *object, const char *key)
{
    ask(object, key);
}

bool json_has(struct json_object *object, const char *key)
{
    const json_t *value = ask(object, key);
    return value && !json_is_null(value);
}

/* --- arrays --------------------------------------------------------------------------------- */

static struct item array_item(const struct json_input *input, const json_t *array, size_t index)
{
    const json_t *value = json_array_get(array, index);
    assert(value);
    return (struct item){.input = input, .container = array, .index = index, .value = value};
}

enum status json_item_u64(const struct json_input *input, const json_t *array, size_t index,
                          uint64_t min, uint64_t max, uint64_t *out, struct error *err)
{
    struct item item = array_item(input, array, index);
    return item_u64(&item, min, max, out, err);
}

enum status json_item_double(const struct json_input *input, const json_t *array, size_t index,
                             double min, double max, double *out, struct error *err)
{
    struct item item = array_item(input, array, index);
    return item_double(&item, min, max, out, err);
}

enum status json_item_string(const struct json_input *input, const json_t *array, size_t index,
                             const char **out, struct error *err)
{
    struct item item = array_item(input, array, index);
    return item_string(&item, out, err);
}

enum status json_item_strings(const struct json_input *input, const json_t *array, struct arena *arena,
                              const char *const **out, struct error *err)
{
    const size_t count = json_array_size(array);
    const char **strings;
    TRY(ARENA_NEW(arena, count, strings, err));
    for (size_t i = 0; i < count; i++) {
        const char *string = NULL;
        TRY(json_item_string(input, array, i, &string, err));
        TRY(arena_string(arena, string, &strings[i], err));
    }
    *out = strings;
    return STATUS_OK;
}

enum status json_item_array(const struct json_input *input, const json_t *array, size_t index,
                            size_t length, const json_t **out, struct error *err)
{
    struct item item = array_item(input, array, index);
    if (!json_is_array(item.value)) return fail_type(&item, "an array", err);
    size_t found = json_array_size(item.value);
    if (length != SIZE_MAX && found != length)
        return fail_item(&item, err, " has %zu elements (expected %zu)", found, length);
    *out = item.value;
    return STATUS_OK;
}
