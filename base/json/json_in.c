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
 * compile-time constant of the distribution) and a tree that would take many times the memory of the text: jansson
 * takes 41 bytes for a number of two characters. The seed of its hash is fixed: nothing here depends
 * on hash order, and a fixed seed keeps it that way.
 */
#include "base/json/json_in.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/files/file.h"
#include "base/files/file_kind.h"
#include "base/json/json_input.h"
#include "base/try.h"

enum { DEPTH_MAX = 64 };

/* Bytes of jansson's values on a 64-bit machine, with those of malloc; a string or a key also has its characters. */
enum { ELEMENT_BYTES = 40, STRING_BYTES = 80, ARRAY_BYTES = 130, OBJECT_BYTES = 230 };

/* A tree may take this share of the text, and 384 MiB in any case: by this count a tokenizer of 262 144 tokens and
 * twice as many merges, each an array of two texts, takes 224. */
enum { TREE_SHARE = 3 };
static const size_t tree_bytes_least = (size_t)384 << 20;

/* Room for text and tree at once; our own files are some hundred megabytes at most. */
static const size_t input_bytes_max = (size_t)1 << 30;

/* --- places --------------------------------------------------------------------------------- */

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
static bool find_place(const struct json_place *wanted, const json_t *value, const char **at,
                       const char *end)
{
    bool here = value == wanted->container;
    if (here && wanted->index == JSON_SELF) return true;
    if (!json_is_array(value) && !json_is_object(value)) {
        *at = skip_scalar(*at, end);
        return false;
    }
    const char *c = skip_space(*at + 1);
    void *iterator = json_object_iter(json_writable(value));
    size_t count = json_is_array(value) ? json_array_size(value) : json_object_size(value);
    for (size_t i = 0; i < count; i++) {
        *at = c;
        const json_t *child;
        bool found = here && i == wanted->index;
        if (json_is_object(value)) {
            if (found && wanted->part == JSON_PLACE_KEY) return true;
            *at = skip_space(skip_space(skip_string(c, end)) + 1);
            child = json_object_iter_value(iterator);
            iterator = json_object_iter_next(json_writable(value), iterator);
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

enum status json_fail_place(const struct json_input *input, struct json_place place, const char *message,
                                 struct error *err)
{
    bool is_root = place.container == input->root && place.index == JSON_SELF;
    bool shared = !is_root && (json_is_boolean(place.container) || json_is_null(place.container));
    for (const struct json_input *in = input; in && !shared; in = in->beside) {
        const char *at = skip_space(in->text);
        if (find_place(&place, in->root, &at, in->text + in->length)) return fail_offset(in, at, message, err);
    }
    return error_set(err, STATUS_BAD_INPUT, "%s: %s", input->name, message);
}

/* --- parsing -------------------------------------------------------------------------------- */

/* Adds the memory of what begins at this character; strings are read by the caller. */
static size_t tree_bytes_of(char c)
{
    return c == ',' ? ELEMENT_BYTES : c == '[' ? ARRAY_BYTES : c == '{' ? OBJECT_BYTES : 0;
}

static enum status fail_tree(const struct json_input *input, const char *at, size_t most, struct error *err)
{
    size_t line, column;
    line_and_column(input, at, &line, &column);
    return error_set(err, STATUS_LIMIT, "%s:%zu:%zu: too many values for %zu MiB of memory (the limit for a file of "
                     "this size)", input->name, line, column, most >> 20);
}

static enum status check_brackets(const struct json_input *input, struct error *err)
{
    const char *end = input->text + input->length;
    const size_t most = max_u64(tree_bytes_least, TREE_SHARE * (uint64_t)input->length);
    if (input->length >= 3 && memcmp(input->text, "\xef\xbb\xbf", 3) == 0)
        return fail_offset(input, input->text,
                           "a byte order mark (expected UTF-8 text without one)", err);
    size_t depth = 0, bytes = 0;
    for (const char *c = input->text; c < end;) {
        if (*c == '"') {
            const char *begin = c;
            c = skip_string(c, end);
            bytes += STRING_BYTES + (size_t)(c - begin);
            continue;
        }
        bytes += tree_bytes_of(*c);
        if (bytes > most) return fail_tree(input, c, most, err);
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
    struct json_lacking *lacking = alloc_zeroed(1, sizeof *lacking);
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
    /* jansson skips these after a number, where places would be sought beyond the text */
    const char *nul = memchr(text, '\0', length);
    if (nul) {
        status = fail_offset(input, nul, "a NUL byte", err);
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

enum status json_text_read(const char *path, char **text, size_t *length, const char **name, struct error *err)
{
    *name = strcmp(path, "-") == 0 ? "standard input" : path;
    return file_read(path, input_bytes_max, text, length, err);
}

enum status json_input_read(const char *path, struct json_input **out, struct error *err)
{
    char *text;
    const char *name;
    size_t length;
    TRY(json_text_read(path, &text, &length, &name, err));
    return parse(name, text, length, out, err);
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
