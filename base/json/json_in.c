/*
 * jansson turns text into a tree without positions, but "rank 7 is out of range" is useless for a file of a million
 * lines. Storing a position for each value would take more memory than many plans, and a position is needed only
 * once, when a value is wrong.
 *
 * The reader therefore keeps the text. When an error needs a position, it walks text and tree in parallel until it
 * meets the value. jansson keeps the order of keys and refuses duplicate keys, so child number i of a container in
 * the tree is child number i in the text. A value is identified by its container and index, never by its own address:
 * jansson has a single true, false and null.
 *
 *     tree:  root {"jobs": [ {...}, {"steps": 0} ]}     container = the second job, key "steps"
 *     text:  { "jobs" : [ { ... } , { "steps" : 0       <- offset -> line and column
 *
 * Before jansson sees it, one pass over the brackets refuses deep nesting (its own limit is a
 * compile-time constant of the distribution). The seed of its hash is fixed: nothing here depends
 * on hash order, and a fixed seed keeps it that way.
 */
#include "base/json/json_in.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files/file.h"
#include "base/files/file_kind.h"
#include "base/text/number.h"
#include "base/text/suggest.h"
#include "base/try.h"

enum { DEPTH_MAX = 64, LISTED_WORDS_MAX = 12, LIST_BYTES = 512 };

/* Room for text and tree at once; our own files are some hundred megabytes at most. */
static const size_t input_bytes_max = (size_t)1 << 30;

enum { MISSING_MAX = 24 };

/*
 * The first object that lacks a required key. The reader then continues with stand-ins (the smallest number, an empty
 * text, array or object: values that a file may have too), so that all missing keys are known when the object is
 * closed. From the first missing key on, every error about this input reports the missing keys, since it may only
 * follow from the stand-ins.
 */
struct lacking {
    const json_t *object; /* NULL: no key is missing */
    const char *keys[MISSING_MAX];
    const char *near[MISSING_MAX]; /* a key of the object that may be a misspelling of it; NULL: none */
    size_t count;
    json_t *empty_array, *empty_object;
};

struct json_input {
    char *name;
    char *text;
    size_t length;
    json_t *root;
    struct json_anchor anchors[JSON_ANCHORS_MAX];
    size_t anchor_count;
    const struct json_input *beside; /* another input to whose values errors may point; NULL: none */
    struct lacking *lacking;         /* changes while a reader holds the input as const */
};

/* --- places --------------------------------------------------------------------------------- */

enum what { WHAT_VALUE, WHAT_KEY };

struct json_in_place {
    const json_t *container;
    size_t index; /* JSON_SELF: the container itself */
    enum what what;
};

static json_t *writable(const json_t *value)
{
    return (json_t *)value; /* jansson's iterators want it so, and do not write */
}

static const char *skip_space(const char *c)
{
    while (*c == ' ' || *c == '\t' || *c == '\n' || *c == '\r') c++;
    return c;
}

/* Returns the character after the closing quote, or the end; `c` is at the opening quote. */
static const char *skip_string(const char *c, const char *end)
{
    for (c++; c < end && *c != '"'; c++)
        if (*c == '\\') c++;
    return c < end ? c + 1 : end;
}

static const char *skip_scalar(const char *c, const char *end)
{
    if (*c == '"') return skip_string(c, end);
    while (c < end && !strchr(",]} \t\r\n", *c)) c++;
    return c;
}

/* Walks over `value`, which begins at *at, and sets *at to the character after it. Stops and returns true with the
 * wanted position in *at when it meets that. The text is known to be valid. */
static bool find_place(const struct json_in_place *wanted, const json_t *value, const char **at,
                       const char *end)
{
    bool here = value == wanted->container;
    if (here && wanted->index == JSON_SELF) return true;
    if (!json_is_array(value) && !json_is_object(value)) {
        *at = skip_scalar(*at, end);
        return false;
    }
    const char *c = skip_space(*at + 1);
    void *iterator = json_object_iter(writable(value));
    size_t count = json_is_array(value) ? json_array_size(value) : json_object_size(value);
    for (size_t i = 0; i < count; i++) {
        *at = c;
        const json_t *child;
        bool found = here && i == wanted->index;
        if (json_is_object(value)) {
            if (found && wanted->what == WHAT_KEY) return true;
            *at = skip_space(skip_space(skip_string(c, end)) + 1);
            child = json_object_iter_value(iterator);
            iterator = json_object_iter_next(writable(value), iterator);
        } else {
            child = json_array_get(value, i);
        }
        if (found || find_place(wanted, child, at, end)) return true;
        c = skip_space(*at);
        if (*c == ',') c = skip_space(c + 1);
    }
    *at = c + 1;
    return false;
}

/* Lines and columns count from 1; a column is a character, not a byte. */
static void line_and_column(const struct json_input *input, const char *at, size_t *line, size_t *column)
{
    const struct json_anchor *anchor = &input->anchors[0];
    for (size_t i = 1; i < input->anchor_count && input->text + input->anchors[i].offset <= at; i++)
        anchor = &input->anchors[i];
    *line = anchor->line;
    *column = anchor->column;
    for (const char *c = input->text + anchor->offset; c < at; c++) {
        if (*c == '\n') {
            ++*line;
            *column = 1;
        } else if (((unsigned char)*c & 0xc0) != 0x80) {
            ++*column;
        }
    }
}

static enum status fail_offset(const struct json_input *input, const char *at, const char *message,
                               struct error *err)
{
    size_t line, column;
    line_and_column(input, at, &line, &column);
    return error_set(err, STATUS_BAD_INPUT, "%s:%zu:%zu: %s", input->name, line, column, message);
}

static enum status fail_place_as(const struct json_input *input, struct json_in_place place, const char *message,
                                 struct error *err)
{
    bool shared = json_is_boolean(place.container) || json_is_null(place.container);
    for (const struct json_input *in = input; in && !shared; in = in->beside) {
        const char *at = skip_space(in->text);
        if (find_place(&place, in->root, &at, in->text + in->length)) return fail_offset(in, at, message, err);
    }
    return error_set(err, STATUS_BAD_INPUT, "%s: %s", input->name, message);
}

static enum status fail_lacking(const struct json_input *input, struct error *err);

static enum status fail_place(const struct json_input *input, struct json_in_place place,
                              const char *message, struct error *err)
{
    for (const struct json_input *in = input; in; in = in->beside)
        if (in->lacking->object) return fail_lacking(in, err);
    return fail_place_as(input, place, message, err);
}

/* JSON_SELF when there is no such key. */
static size_t key_index(const json_t *object, const char *key)
{
    size_t index = 0;
    void *iterator = json_object_iter(writable(object));
    for (; iterator; iterator = json_object_iter_next(writable(object), iterator), index++)
        if (strcmp(json_object_iter_key(iterator), key) == 0) return index;
    return JSON_SELF;
}

enum status json_fail_key(const struct json_input *input, const json_t *container, const char *key,
                          struct error *err, const char *format, ...)
{
    char message[sizeof err->text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    size_t index = key ? key_index(container, key) : JSON_SELF;
    return fail_place(input, (struct json_in_place){container, index, WHAT_VALUE}, message, err);
}

enum status json_fail_index(const struct json_input *input, const json_t *container, size_t index,
                            struct error *err, const char *format, ...)
{
    char message[sizeof err->text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return fail_place(input, (struct json_in_place){container, index, WHAT_VALUE}, message, err);
}

/* --- parsing -------------------------------------------------------------------------------- */

static enum status check_brackets(const struct json_input *input, struct error *err)
{
    const char *end = input->text + input->length;
    if (input->length >= 3 && memcmp(input->text, "\xef\xbb\xbf", 3) == 0)
        return fail_offset(input, input->text,
                           "a byte order mark (expected UTF-8 text without one)", err);
    size_t depth = 0;
    for (const char *c = input->text; c < end;) {
        if (*c == '"') {
            c = skip_string(c, end);
            continue;
        }
        if (*c == '[' || *c == '{') depth++;
        if ((*c == ']' || *c == '}') && depth > 0) depth--;
        if (depth > DEPTH_MAX)
            return fail_offset(input, c, "too many levels of nesting (limit is 64)", err);
        c++;
    }
    return STATUS_OK;
}

/* jansson points at the last character it read; everything else here points at the first one. */
static int first_column(const json_error_t *error)
{
    int column = error->column;
    const char *near = strstr(error->text, " near '"), *end = strrchr(error->text, '\'');
    if (near)
        for (const char *c = near + strlen(" near '") + 1; c < end; c++)
            if (((unsigned char)*c & 0xc0) != 0x80) column--;
    return column > 0 ? column : 1;
}

/* Returns the character at this line and column of the text. */
static const char *character_at(const struct json_input *input, int line, int column)
{
    const char *c = input->text, *end = input->text + input->length;
    for (; line > 1 && c < end; c++) line -= *c == '\n';
    for (; c < end && (column > 1 || ((unsigned char)*c & 0xc0) == 0x80); c++)
        column -= ((unsigned char)*c & 0xc0) != 0x80;
    return c;
}

static enum status fail_syntax(const struct json_input *input, const json_error_t *error, struct error *err)
{
    bool nul = strstr(error->text, "JSON_ALLOW_NUL") != NULL; /* a flag of the library */
    return fail_offset(input, character_at(input, error->line, first_column(error)),
                       nul ? "a string contains \\u0000" : error->text, err);
}

enum status json_refuse_format(const char *name, const char *data, size_t length, struct error *err)
{
    const struct file_reading *found = file_reading_of_data(data, length);
    char refusal[FILE_READING_BYTES];
    if (!found) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "%s:1:1: %s", name, file_reading_refusal(found, name, "JSON", refusal));
}

enum status json_input_parse_cut(const char *name, char *text, size_t length, const struct json_anchor *anchors,
                                 size_t anchor_count, bool any, struct json_input **out, struct error *err)
{
    assert(anchor_count > 0 && anchor_count <= JSON_ANCHORS_MAX);
    struct json_input *input = alloc_zeroed(1, sizeof *input);
    size_t name_bytes = strlen(name) + 1;
    char *name_copy = alloc_zeroed(1, name_bytes);
    struct lacking *lacking = alloc_zeroed(1, sizeof *lacking);
    if (!input || !name_copy || !lacking) {
        free(input);
        free(name_copy);
        free(lacking);
        free(text);
        return error_memory(err, "JSON input", sizeof *input + name_bytes);
    }
    memcpy(name_copy, name, name_bytes);
    *input = (struct json_input){
        .name = name_copy, .text = text, .length = length, .anchor_count = anchor_count, .lacking = lacking};
    memcpy(input->anchors, anchors, anchor_count * sizeof *anchors);

    enum status status = any ? STATUS_OK : json_refuse_format(name, text, length, err);
    if (status == STATUS_OK) status = check_brackets(input, err);
    if (status != STATUS_OK) goto fail;
    json_object_seed(1);
    json_error_t error = {.text = ""};
    input->root = json_loadb(text, length, JSON_REJECT_DUPLICATES | (any ? JSON_DECODE_ANY : 0), &error);
    if (!input->root) {
        /* jansson says nothing when its own allocation failed */
        if (!error.text[0])
            status = error_memory(err, "parsed JSON", length);
        else
            status = fail_syntax(input, &error, err);
        goto fail;
    }
    *out = input;
    return STATUS_OK;
fail:
    json_input_destroy(input);
    return status;
}

static enum status parse(const char *name, char *text, size_t length, struct json_input **out, struct error *err)
{
    return json_input_parse_cut(name, text, length, &(struct json_anchor){.line = 1, .column = 1}, 1, false, out, err);
}

enum status json_input_read(const char *path, struct json_input **out, struct error *err)
{
    char *text;
    size_t length;
    TRY(file_read(path, input_bytes_max, &text, &length, err));
    return parse(strcmp(path, "-") == 0 ? "standard input" : path, text, length, out, err);
}

enum status json_input_parse(const char *name, const char *text, size_t length,
                             struct json_input **out, struct error *err)
{
    if (length > input_bytes_max)
        return error_set(err, STATUS_LIMIT, "'%s' is too large (limit is %zu bytes)", name,
                         input_bytes_max);
    char *copy = alloc_zeroed(1, length + 1);
    if (!copy) return error_memory(err, "JSON text", length + 1);
    if (length > 0) memcpy(copy, text, length);
    return parse(name, copy, length, out, err);
}

void json_input_set_beside(struct json_input *input, const struct json_input *other)
{
    input->beside = other;
}

void json_input_destroy(struct json_input *input)
{
    if (!input) return;
    json_decref(input->root);
    json_decref(input->lacking->empty_array);
    json_decref(input->lacking->empty_object);
    free(input->lacking);
    free(input->name);
    free(input->text);
    free(input);
}

const char *json_input_name(const struct json_input *input)
{
    return input->name;
}

const json_t *json_input_root(const struct json_input *input)
{
    return input->root;
}

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
    size_t index = item->key ? key_index(item->container, item->key) : item->index;
    return fail_place(item->input, (struct json_in_place){item->container, index, WHAT_VALUE}, message,
                      err);
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

/* "at least 1", "1 to 8"; the JSON integers that can be read end at 2^63 - 1. */
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

static bool was_asked(const struct json_object *object, const char *key)
{
    for (size_t i = 0; i < object->asked_count; i++)
        if (strcmp(object->asked[i], key) == 0) return true;
    return strcmp(key, "_comment") == 0;
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

/* --- keys that are missing ------------------------------------------------------------------- */

/* A growing message; text that does not fit is cut. */
struct message {
    char text[1024];
    size_t used;
};

static void PRINTF_LIKE(2, 3) message_add(struct message *message, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(message->text + message->used, sizeof message->text - message->used, format, arguments);
    va_end(arguments);
    size_t room = sizeof message->text - message->used - 1;
    if (length > 0) message->used += (size_t)length < room ? (size_t)length : room;
}

static const char *separator(size_t index, size_t count)
{
    return index == 0 ? "" : index + 1 == count ? " and " : ", ";
}

/* Lists keys that the reader found missing, then keys that the caller names. `with_near`: names similar keys that may
 * be meant. */
static void tell_missing(const struct lacking *lacking, bool with_near, const struct json_missing *missing, size_t count,
                         struct message *message)
{
    const size_t total = lacking->count + count;
    if (total == 0) return;
    message_add(message, "missing key%s ", total == 1 ? "" : "s");
    for (size_t i = 0; i < lacking->count; i++) {
        message_add(message, "%s'%s'", separator(i, total), lacking->keys[i]);
        if (with_near && lacking->near[i]) message_add(message, " (is '%.100s' a misspelling of it?)", lacking->near[i]);
    }
    for (size_t i = 0; i < count; i++) {
        message_add(message, "%s'%s'", separator(lacking->count + i, total), missing[i].key);
        if (missing[i].hint) message_add(message, " (%s)", missing[i].hint);
    }
}

/* Tells the message about the object once: another reader may try the input after this one. */
static enum status tell_lacking(const struct json_input *input, struct json_in_place place, const struct message *message,
                                struct error *err)
{
    input->lacking->object = NULL;
    input->lacking->count = 0;
    return fail_place_as(input, place, message->text, err);
}

/* Before the object is closed: which of its other keys are unknown is not known yet. */
static enum status fail_lacking(const struct json_input *input, struct error *err)
{
    const struct json_in_place place = {input->lacking->object, JSON_SELF, WHAT_VALUE};
    struct message message = {.used = 0};
    tell_missing(input->lacking, true, NULL, 0, &message);
    return tell_lacking(input, place, &message, err);
}

/* Makes the stand-ins. */
static enum status begin_lacking(struct lacking *lacking, struct error *err)
{
    if (!lacking->empty_array) lacking->empty_array = json_array();
    if (!lacking->empty_object) lacking->empty_object = json_object();
    return lacking->empty_array && lacking->empty_object ? STATUS_OK : error_memory(err, "JSON input", 0);
}

/* Finds a key of the object that was not asked for and may be a misspelling of the missing one. */
static const char *find_near(const struct json_object *object, const char *key)
{
    void *iterator = json_object_iter(writable(object->value));
    for (; iterator; iterator = json_object_iter_next(writable(object->value), iterator)) {
        const char *other = json_object_iter_key(iterator);
        if (!was_asked(object, other) && suggest(other, &key, 1)) return other;
    }
    return NULL;
}

/* Remembers the missing key. Fails at once for a file of another kind, and where nothing would tell it later. */
static enum status miss(const struct json_object *object, const char *key, enum json_need need, struct error *err)
{
    const struct json_input *input = object->input;
    struct lacking *lacking = input->lacking;
    const struct file_reading *expected = object->value == input->root ? file_reading_of_key(key) : NULL;
    if (expected && json_refuse_kind(input, expected->noun, err) != STATUS_OK) return err->status;
    TRY(begin_lacking(lacking, err));
    if (!lacking->object) lacking->object = object->value;
    if (lacking->object == object->value && lacking->count < MISSING_MAX) {
        lacking->near[lacking->count] = find_near(object, key);
        lacking->keys[lacking->count++] = key;
    }
    return object->open_ended || need == JSON_DECIDES ? fail_lacking(input, err) : STATUS_OK;
}

bool json_is_stand_in(const struct json_input *input, const json_t *value)
{
    return value && (value == input->lacking->empty_array || value == input->lacking->empty_object);
}

static double least_number(double min, double max)
{
    if (isfinite(min) && min > -DBL_MAX) return min;
    return max < 0 ? max : 0;
}

/* --- taking ---------------------------------------------------------------------------------- */

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

enum status json_take_choice(struct json_object *object, const char *key, enum json_need need,
                             const char *const *names, size_t count, size_t *out,
                             struct error *err)
{
    struct item item;
    const char *name = NULL;
    enum status status = consume(object, key, need, &item, err);
    if (item.missing) *out = 0;
    if (!item.value) return status;
    status = item_string(&item, &name, err);
    if (status != STATUS_OK) return status;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) != 0) continue;
        *out = i;
        return STATUS_OK;
    }
    char list[LIST_BYTES];
    const char *near = suggest(name, names, count);
    if (near && count > LISTED_WORDS_MAX)
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
    const struct lacking *lacking = object->input->lacking;
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

enum { UNKNOWN_NAMED_MAX = 8 };

/* Sets the first UNKNOWN_NAMED_MAX keys that were not asked for. Returns the number of such keys. */
static size_t find_unknown(const struct json_object *object, const char *unknown[UNKNOWN_NAMED_MAX], size_t *first)
{
    size_t count = 0, index = 0;
    void *iterator = json_object_iter(writable(object->value));
    for (; iterator; iterator = json_object_iter_next(writable(object->value), iterator), index++) {
        const char *key = json_object_iter_key(iterator);
        if (was_asked(object, key)) continue;
        if (count == 0) *first = index;
        if (count < UNKNOWN_NAMED_MAX) unknown[count] = key;
        count++;
    }
    return count;
}

static void tell_unknown(const struct json_object *object, const char *const *unknown, size_t count,
                         struct message *message)
{
    const size_t named = count < UNKNOWN_NAMED_MAX ? count : UNKNOWN_NAMED_MAX;
    bool all_near = true;
    char text[SUGGEST_BYTES];
    message_add(message, "unknown key%s ", count == 1 ? "" : "s");
    for (size_t i = 0; i < named; i++) {
        suggest_ending_or(unknown[i], object->asked, object->asked_count, "", text);
        all_near = all_near && text[0];
        message_add(message, "%s'%.100s'%s", separator(i, count), unknown[i], text);
    }
    if (count > named) message_add(message, " and %zu more", count - named);
    if (!all_near && object->asked_count > 0 && object->asked_count <= LISTED_WORDS_MAX)
        message_add(message, " (expected %s)", suggest_list(object->asked, object->asked_count, text, sizeof text));
}

enum status json_object_close_missing(struct json_object *object, const struct json_missing *missing, size_t count,
                                      struct error *err)
{
    const struct lacking *lacking = object->input->lacking;
    const bool complete = object->found_count == json_object_size(object->value);
    const char *unknown[UNKNOWN_NAMED_MAX];
    size_t first = 0, unknown_count = complete ? 0 : find_unknown(object, unknown, &first);
    struct message message = {.used = 0};
    if (lacking->object && lacking->object != object->value) {
        if (unknown_count > 0) return fail_lacking(object->input, err);
        return STATUS_OK; /* the object around it is closed later */
    }
    if (lacking->count + count + unknown_count == 0) return STATUS_OK;
    tell_missing(lacking, false, missing, count, &message);
    const bool misses = message.used > 0;
    if (unknown_count > 0) {
        message_add(&message, "%s", misses ? "; " : "");
        tell_unknown(object, unknown, unknown_count, &message);
    }
    const struct json_in_place place = {object->value, misses ? JSON_SELF : first, misses ? WHAT_VALUE : WHAT_KEY};
    return tell_lacking(object->input, place, &message, err);
}

enum status json_object_close(struct json_object *object, struct error *err)
{
    return json_object_close_missing(object, NULL, 0, err);
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
