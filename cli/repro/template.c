/* Checking is expansion without values. */
#include "cli/repro/template.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/number.h"

enum { TEMPLATE_NAMES_MAX = 200, TEMPLATE_REPEAT_MAX = 100000, TEMPLATE_ITEMS_MAX = 1000000 };

struct expansion {
    const struct json_input *input;
    const char *const *names; /* for checking */
    size_t name_count;
    const struct expression_scope *scope; /* for expanding */
    struct arena *arena;
    uint64_t *item_count; /* so far; nested repetitions grow fast */
    struct error *err;
};

static enum status fail(struct expansion *x, struct template_place place)
{
    struct error inner = *x->err;
    *x->err = (struct error){0};
    if (inner.status != STATUS_BAD_INPUT) {
        *x->err = inner;
        return inner.status;
    }
    if (place.key) return json_fail_key(x->input, place.container, place.key, x->err, "%s", inner.text);
    return json_fail_index(x->input, place.container, place.index, x->err, "%s", inner.text);
}

static enum status value_of(struct expansion *x, const char *text, size_t length, struct expression_value *out)
{
    char *copy = NULL;
    const struct expression *expression;
    if (ARENA_NEW(x->arena, length + 1, copy, x->err) != STATUS_OK) return x->err->status;
    memcpy(copy, text, length);
    if (expression_parse(copy, x->arena, &expression, x->err) != STATUS_OK) return x->err->status;
    if (!x->scope) return expression_check(expression, x->names, x->name_count, x->err);
    if (expression_value(expression, x->scope, x->arena, out, x->err) != STATUS_OK) return x->err->status;
    if (out->kind == EXPRESSION_VALUE_NUMBER || out->kind == EXPRESSION_VALUE_TEXT ||
        out->kind == EXPRESSION_VALUE_TRUTH)
        return STATUS_OK;
    return error_set(x->err, STATUS_BAD_INPUT, "'{%s}' is %s (expected a number or a text)", copy,
                     out->kind == EXPRESSION_VALUE_MISSING ? "missing" : "a list");
}

static bool is_whole(double number)
{
    return number == floor(number) && fabs(number) < 9007199254740992.0;
}

static json_t *json_of(struct expression_value value)
{
    if (value.kind == EXPRESSION_VALUE_TEXT) return json_string(value.text);
    if (value.kind == EXPRESSION_VALUE_TRUTH) return json_boolean(value.truth);
    return is_whole(value.number) ? json_integer((json_int_t)value.number) : json_real(value.number);
}

static void write_value(FILE *out, struct expression_value value)
{
    struct number_powers powers;
    char text[NUMBER_TEXT_BYTES];
    if (value.kind == EXPRESSION_VALUE_TEXT)
        fputs(value.text, out);
    else if (value.kind == EXPRESSION_VALUE_TRUTH)
        fputs(value.truth ? "true" : "false", out);
    else if (is_whole(value.number))
        fprintf(out, "%.0f", value.number);
    else {
        number_powers_init(&powers);
        fwrite(text, 1, number_write(value.number, &powers, text), out);
    }
}

/* Writes a text; `out` NULL: only checks it. */
static enum status write_pieces(struct expansion *x, const char *text, FILE *out)
{
    while (*text) {
        size_t plain = strcspn(text, "{");
        if (out) fwrite(text, 1, plain, out);
        text += plain;
        if (!*text) break;
        if (text[1] == '{') {
            if (out) fputc('{', out);
            text += 2;
            continue;
        }
        const char *close = strchr(text, '}');
        if (!close) return error_set(x->err, STATUS_BAD_INPUT, "'%s' has no closing '}' ('{{' is a brace)", text);
        struct expression_value value = expression_of_number(0);
        if (value_of(x, text + 1, (size_t)(close - text - 1), &value) != STATUS_OK) return x->err->status;
        if (out) write_value(out, value);
        text = close + 1;
    }
    return STATUS_OK;
}

static enum status expand_string(struct expansion *x, const char *text, json_t **out)
{
    size_t length = strlen(text);
    if (text[0] == '{' && text[1] != '{' && strchr(text, '}') == text + length - 1) {
        struct expression_value value = expression_of_number(0);
        if (value_of(x, text + 1, length - 2, &value) == STATUS_OK && x->scope) *out = json_of(value);
        return x->err->status;
    }
    if (!x->scope) return write_pieces(x, text, NULL);
    char *result = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&result, &size);
    if (!stream) return error_memory(x->err, "a template", length);
    write_pieces(x, text, stream);
    bool complete = !ferror(stream);
    if (fclose(stream) != 0 || !complete) error_memory(x->err, "a template", length);
    if (!x->err->status) *out = json_string(result);
    free(result);
    return x->err->status;
}

static enum status expand(struct expansion *x, const json_t *value, struct template_place place, json_t **out);

static enum status expand_object(struct expansion *x, const json_t *object, json_t **out)
{
    const char *key;
    json_t *child, *result = json_object();
    json_object_foreach((json_t *)object, key, child) {
        json_t *expanded = NULL;
        struct template_place place = {.container = object, .key = key};
        if (expand(x, child, place, &expanded) != STATUS_OK) break;
        if (x->scope && json_object_set_new(result, key, expanded) != 0) error_memory(x->err, "a template", 0);
    }
    *out = result;
    return x->err->status;
}

/* --- repetition ---------------------------------------------------------------------------------- */

/* One more name: the counter's. */
struct counter {
    const struct expression_scope *outer;
    const char *name;
    double value;
};

static bool find_counter(const void *context, const char *name, struct expression_value *out)
{
    const struct counter *counter = context;
    if (strcmp(name, counter->name) == 0) return *out = expression_of_number(counter->value), true;
    return counter->outer->find(counter->outer->context, name, out);
}

/* Appends an item with the counter at `at`; checking expands it once. */
static enum status append_repeated(struct expansion *x, const json_t *repeat, const char *as, double at, json_t *result)
{
    const char *names[TEMPLATE_NAMES_MAX];
    const struct counter counter = {x->scope, as, at};
    struct expansion inner = *x;
    size_t count = x->scope ? x->scope->name_count : x->name_count;
    struct template_place place = {.container = repeat, .key = "$item"};
    json_t *expanded = NULL;
    if (++*x->item_count > TEMPLATE_ITEMS_MAX)
        return error_set(x->err, STATUS_LIMIT, "too many repeated items (limit is %d)", TEMPLATE_ITEMS_MAX);
    if (count >= TEMPLATE_NAMES_MAX)
        return error_set(x->err, STATUS_LIMIT, "too many names (limit is %d)", TEMPLATE_NAMES_MAX);
    memcpy(names, x->scope ? x->scope->names : x->names, count * sizeof *names);
    names[count] = as;
    const struct expression_scope scope = {find_counter, &counter, names, count + 1};
    inner.names = names;
    inner.name_count = count + 1;
    if (x->scope) inner.scope = &scope;
    if (expand(&inner, json_object_get(repeat, "$item"), place, &expanded) != STATUS_OK) return x->err->status;
    if (x->scope && json_array_append_new(result, expanded) != 0) error_memory(x->err, "a template", 0);
    return x->err->status;
}

/* Expands {"$repeat": ...} with 0, 1, ... */
static enum status expand_repeat(struct expansion *x, const json_t *repeat, json_t *result)
{
    struct template_place place = {.container = repeat, .key = "$repeat"};
    const char *as = json_string_value(json_object_get(repeat, "$as"));
    json_t *count = NULL;
    if (!json_object_get(repeat, "$item") || json_object_size(repeat) != (as ? 3 : 2))
        return json_fail_key(x->input, repeat, "$repeat", x->err,
                             "a repetition has '$repeat', '$item' and perhaps '$as', a name");
    if (expand(x, json_object_get(repeat, "$repeat"), place, &count) != STATUS_OK) return x->err->status;
    if (!x->scope) return append_repeated(x, repeat, as ? as : "index", 0, result);
    if (!json_is_integer(count) || json_integer_value(count) < 0 || json_integer_value(count) > TEMPLATE_REPEAT_MAX)
        json_fail_key(x->input, repeat, "$repeat", x->err, "not a whole number from 0 to %d", TEMPLATE_REPEAT_MAX);
    for (json_int_t i = 0; !x->err->status && i < json_integer_value(count); i++)
        append_repeated(x, repeat, as ? as : "index", (double)i, result);
    json_decref(count);
    return x->err->status;
}

static enum status expand_array(struct expansion *x, const json_t *array, json_t **out)
{
    json_t *result = json_array();
    for (size_t i = 0; i < json_array_size(array) && !x->err->status; i++) {
        const json_t *item = json_array_get(array, i);
        json_t *expanded = NULL;
        struct template_place place = {.container = array, .index = i};
        if (json_object_get(item, "$repeat")) {
            expand_repeat(x, item, result);
            continue;
        }
        if (expand(x, item, place, &expanded) != STATUS_OK) break;
        if (x->scope && json_array_append_new(result, expanded) != 0) error_memory(x->err, "a template", 0);
    }
    *out = result;
    return x->err->status;
}

static enum status expand(struct expansion *x, const json_t *value, struct template_place place, json_t **out)
{
    json_t *result = NULL;
    enum status status = STATUS_OK;
    if (json_is_string(value)) {
        status = expand_string(x, json_string_value(value), &result);
        if (status != STATUS_OK) status = fail(x, place);
    } else if (json_is_object(value))
        status = expand_object(x, value, &result);
    else if (json_is_array(value))
        status = expand_array(x, value, &result);
    else
        result = json_incref((json_t *)value);
    if (status == STATUS_OK && x->scope && !result) status = error_memory(x->err, "a template", 0);
    if (status == STATUS_OK && x->scope)
        *out = result;
    else
        json_decref(result);
    return status;
}

enum status template_check(const json_t *value, struct template_place place, const char *const *names, size_t count,
                           struct error *err)
{
    struct arena arena = {0};
    uint64_t item_count = 0;
    struct expansion x = {.input = place.input, .names = names, .name_count = count, .arena = &arena,
                          .item_count = &item_count, .err = err};
    json_t *unused = NULL;
    enum status status = expand(&x, value, place, &unused);
    arena_release(&arena);
    return status;
}

enum status template_expand(const json_t *value, struct template_place place, const struct expression_scope *scope,
                            struct arena *arena, json_t **out, struct error *err)
{
    uint64_t item_count = 0;
    struct expansion x = {.input = place.input, .scope = scope, .arena = arena, .item_count = &item_count, .err = err};
    return expand(&x, value, place, out);
}
