/*
 * Two passes. The first pass copies the text without the elements of the long arrays, notes where each long array
 * begins, and has the copy parsed:
 *
 *     file    {"a": 1, "rows": [[1, 2],      head    {"a": 1, "rows": [], "b": 2}
 *              [3, 4]], "b": 2}
 *                     ^ anchor: from here on the head is at line 2, column 8 of the file
 *
 * The second pass goes to the beginning of an array and separates its elements, only by brackets and quotes. It does
 * not interpret elements.
 */
#include "base/json/json_stream.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/files/file_in.h"
#include "base/json/json_input.h"
#include "base/text/number.h"
#include "base/try.h"

enum { CHUNK_BYTES = 64 << 10 };

static const size_t held_bytes_max = (size_t)1 << 30; /* of a head, and of a pipe */

/* A position in the file: the next character to read. */
struct position {
    uint64_t offset;
    size_t line, column;
};

static const struct position beginning = {.line = 1, .column = 1};

struct array_place {
    bool found;
    struct position first; /* after the opening bracket */
    struct file_place base; /* the last place before it from which the file can be read; a `text` of 0: its begin */
};

struct json_stream {
    struct file_in *file;
    char *held;             /* the text of a pipe, else NULL */
    const char *const *keys;
    size_t key_count;
    struct file_place base;        /* as in an array, of what is read */
    const struct file_place *ends; /* by array, while the head is read; NULL: not known */
    struct array_place arrays[JSON_STREAM_ARRAYS_MAX];
    struct json_input *head;
    char *buffer;           /* a NUL follows its last byte */
    size_t first, last, capacity;
    bool file_ended;
    struct position at;     /* of buffer[first] */
    uint64_t index;         /* of the next element */
    bool of_element;        /* of another stream: any value is one */
    bool absent;            /* the array is not in the file */
};

/* --- the buffer ----------------------------------------------------------------------------- */

/* Reads until buffer[wanted], counted from `first`, is available or the file has ended. */
static enum status reach(struct json_stream *s, size_t wanted, struct error *err)
{
    while (s->last - s->first <= wanted && !s->file_ended) {
        if (s->first > 0) {
            memmove(s->buffer, s->buffer + s->first, s->last - s->first);
            s->last -= s->first;
            s->first = 0;
        }
        if (s->capacity - s->last < CHUNK_BYTES + 1) {
            size_t capacity = s->capacity > CHUNK_BYTES ? 2 * s->capacity : 2 * CHUNK_BYTES;
            char *larger = alloc_resize(s->buffer, capacity);
            if (!larger) return error_memory(err, "an element of a JSON array", capacity);
            s->buffer = larger;
            s->capacity = capacity;
        }
        size_t got;
        TRY(file_in_read(s->file, s->buffer + s->last, s->capacity - s->last - 1, &got, err));
        s->last += got;
        s->buffer[s->last] = '\0';
        s->file_ended = got == 0;
    }
    return STATUS_OK;
}

static void step(struct position *at, char c)
{
    at->offset++;
    if (c == '\n') {
        at->line++;
        at->column = 1;
    } else {
        at->column += ((unsigned char)c & 0xc0) != 0x80; /* a column is a character, not a byte */
    }
}

static void pass_over(struct json_stream *s, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) step(&s->at, s->buffer[s->first + i]);
    s->first += bytes;
}

static enum status go_to(struct json_stream *s, const struct array_place *array, struct error *err)
{
    const struct position *place = &array->first;
    if (array->base.text > 0) TRY(file_in_go(s->file, &array->base, err));
    TRY(file_in_seek(s->file, place->offset, err));
    s->first = s->last = 0;
    s->file_ended = false;
    s->at = *place;
    return STATUS_OK;
}

/* Does the same with the place that was stored when the file was written. */
static enum status go_to_place(struct json_stream *s, const struct file_place *place, struct error *err)
{
    TRY(file_in_go(s->file, place, err));
    s->first = s->last = 0;
    s->file_ended = false;
    s->base = *place;
    s->at = (struct position){.offset = place->text, .line = place->line, .column = place->column};
    return STATUS_OK;
}

static enum status fail_here(const struct json_stream *s, struct error *err, const char *expected)
{
    bool end = s->first == s->last;
    return error_set(err, STATUS_BAD_INPUT, "%s:%zu:%zu: %s expected near %s%.1s%s", file_in_name(s->file), s->at.line,
                     s->at.column, expected, end ? "end of file" : "'", end ? "" : s->buffer + s->first,
                     end ? "" : "'");
}

/* --- brackets and quotes -------------------------------------------------------------------- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Depth of brackets, and whether the position is in a string: enough to separate elements. */
struct nesting {
    size_t depth;
    bool in_string, escaped;
};

/* Passes over a character. A surplus closing bracket changes nothing. */
static inline void nest(struct nesting *n, char c)
{
    if (n->in_string) {
        n->in_string = n->escaped || c != '"';
        n->escaped = !n->escaped && c == '\\';
    } else if (c == '"') {
        n->in_string = true;
    } else if (c == '[' || c == '{') {
        n->depth++;
    } else if (c == ']' || c == '}') {
        n->depth -= n->depth > 0;
    }
}

/* --- the head ------------------------------------------------------------------------------- */

/* State of the pass over the file: the copy, and the position in the top-level object. */
struct scan {
    char *text;
    size_t length, capacity;
    struct json_anchor anchors[JSON_STREAM_ARRAYS_MAX + 1];
    size_t anchor_count;
    struct nesting at;
    size_t string_at;  /* in `text`: where the last string of depth 1 begins, after its quote */
    size_t string_end;
    bool after_colon;  /* depth 1: a value comes next */
    bool begun;        /* the top-level value has begun */
};

static enum status keep(struct scan *scan, char c, struct error *err)
{
    enum status status = array_reserve(&scan->text, &scan->capacity, scan->length, 1, held_bytes_max,
                                       "bytes of JSON outside the long arrays", err);
    if (status == STATUS_OK) scan->text[scan->length++] = c;
    return status;
}

/* Returns the number of the array with this key, or key_count. */
static size_t array_of_key(const struct json_stream *s, const char *key, size_t length)
{
    size_t i = 0;
    while (i < s->key_count && (strlen(s->keys[i]) != length || memcmp(s->keys[i], key, length) != 0)) i++;
    return i;
}

/* Returns the number of the array that a bracket opens, or key_count. */
static size_t array_opened(const struct json_stream *s, const struct scan *scan)
{
    if (scan->at.in_string) return s->key_count;
    if (scan->at.depth == 1 && scan->after_colon)
        return array_of_key(s, scan->text + scan->string_at, scan->string_end - scan->string_at);
    return scan->begun ? s->key_count : array_of_key(s, "", 0);
}

/* Skips everything up to the bracket that closes the array. */
static enum status skip_array(struct json_stream *s, struct error *err)
{
    struct nesting at = {.depth = 1};
    for (;;) {
        TRY(reach(s, 0, err));
        if (s->first == s->last) return fail_here(s, err, "']'");
        for (; s->first < s->last; s->first++) {
            nest(&at, s->buffer[s->first]);
            if (at.depth == 0) return STATUS_OK;
            step(&s->at, s->buffer[s->first]);
        }
    }
}

static void note_anchor(struct json_stream *s, struct scan *scan)
{
    scan->anchors[scan->anchor_count++] =
        (struct json_anchor){.offset = scan->length, .line = s->at.line, .column = s->at.column};
}

static enum status read_char(struct json_stream *s, struct scan *scan, struct error *err)
{
    char c = s->buffer[s->first];
    TRY(keep(scan, c, err));
    pass_over(s, 1);
    const struct nesting before = scan->at;
    if (c == '[') {
        size_t index = array_opened(s, scan);
        if (index < s->key_count && !s->arrays[index].found) {
            s->arrays[index] = (struct array_place){.found = true, .first = s->at, .base = s->base};
            const bool known = s->ends && s->ends[index].text > 0;
            TRY(known ? go_to_place(s, &s->ends[index], err) : skip_array(s, err));
            note_anchor(s, scan);
        }
    }
    nest(&scan->at, c);
    scan->begun |= !is_space(c);
    if (before.in_string) {
        if (!scan->at.in_string && before.depth == 1) scan->string_end = scan->length - 1;
        return STATUS_OK;
    }
    if (c == '"' && before.depth == 1) scan->string_at = scan->length;
    if (c == ':' && scan->at.depth == 1) scan->after_colon = true;
    else if (!is_space(c)) scan->after_colon = false;
    return STATUS_OK;
}

static enum status read_head(struct json_stream *s, struct error *err)
{
    struct scan scan = {.anchors = {{.line = s->at.line, .column = s->at.column}}, .anchor_count = 1};
    enum status status = reach(s, 0, err);
    if (status == STATUS_OK && !s->of_element)
        status = json_refuse_format(file_in_name(s->file), s->buffer + s->first, s->last - s->first, err);
    while (status == STATUS_OK && s->first < s->last) {
        status = read_char(s, &scan, err);
        if (status == STATUS_OK) status = reach(s, 0, err);
    }
    if (status == STATUS_OK) status = keep(&scan, '\0', err);
    if (status == STATUS_OK) {
        char *text = scan.text;
        scan.text = NULL;
        status = json_input_parse_cut(file_in_name(s->file), text, scan.length - 1, scan.anchors, scan.anchor_count,
                                      s->of_element, &s->head, err);
    }
    free(scan.text);
    return status;
}

/* --- elements ------------------------------------------------------------------------------- */

/* Goes to the next character that is not white space. */
static enum status skip_space(struct json_stream *s, struct error *err)
{
    for (;;) {
        enum status status = reach(s, 0, err);
        if (status != STATUS_OK || s->first == s->last || !is_space(s->buffer[s->first])) return status;
        pass_over(s, 1);
    }
}

/* Bytes of the element that begins at `first`, with the byte after it in the buffer. */
static enum status measure(struct json_stream *s, size_t *length, struct error *err)
{
    struct nesting at = {0};
    for (size_t i = 0;; i++) {
        if (s->first + i >= s->last) {
            TRY(reach(s, i, err));
        }
        char c = s->first + i < s->last ? s->buffer[s->first + i] : '\0';
        bool ends = !at.in_string && at.depth == 0 && i > 0 && (c == ',' || c == ']' || c == '}' || is_space(c));
        if (ends || s->first + i == s->last) {
            *length = i;
            return STATUS_OK;
        }
        nest(&at, c);
    }
}

/* Goes to the next element, past the comma before it; *more is false at the array's closing bracket. */
static enum status find_next(struct json_stream *s, bool *more, struct error *err)
{
    TRY(skip_space(s, err));
    char c = s->buffer[s->first];
    *more = c != ']';
    if (c == ']' || (s->index == 0 && c != ',')) return STATUS_OK;
    if (s->index == 0 || c != ',') return fail_here(s, err, s->index == 0 ? "a value" : "']'");
    pass_over(s, 1);
    enum status status = skip_space(s, err);
    c = s->buffer[s->first];
    return status == STATUS_OK && (c == ']' || c == ',') ? fail_here(s, err, "a value") : status;
}

enum status json_stream_next(struct json_stream *s, struct json_element *out, bool *more, struct error *err)
{
    *more = false;
    if (s->absent) return STATUS_OK;
    enum status status = find_next(s, more, err);
    if (status != STATUS_OK || !*more) return status;
    size_t length = 0;
    *out = (struct json_element){
        .line = s->at.line, .column = s->at.column, .offset = s->at.offset, .index = s->index++};
    TRY(measure(s, &length, err));
    pass_over(s, length);
    out->text = s->buffer + s->first - length;
    out->length = length;
    return STATUS_OK;
}

enum status json_stream_parse(const struct json_stream *stream, const struct json_element *element,
                              struct json_input **out, struct error *err)
{
    const struct json_anchor anchor = {.line = element->line, .column = element->column};
    char *copy = alloc_zeroed(1, element->length + 1);
    if (!copy) return error_memory(err, "an element of a JSON array", element->length + 1);
    memcpy(copy, element->text, element->length);
    enum status status =
        json_input_parse_cut(file_in_name(stream->file), copy, element->length, &anchor, 1, true, out, err);
    if (status == STATUS_OK) json_input_set_beside(*out, stream->head);
    return status;
}

/* Reads a non-negative number in JSON's syntax; number_read() also accepts ".5", "5." and "05". */
static bool read_number(const char **at, double *out)
{
    const char *c = *at, *end;
    uint64_t whole = 0;
    if (*c < '0' || *c > '9' || (*c == '0' && c[1] >= '0' && c[1] <= '9')) return false;
    for (; *c >= '0' && *c <= '9' && whole < UINT64_C(1) << 49; c++) whole = 10 * whole + (uint64_t)(*c - '0');
    if (*c != '.' && *c != 'e' && *c != 'E' && (*c < '0' || *c > '9')) { /* most are whole and below 10 * 2^49 */
        *out = (double)whole;
        *at = c;
        return true;
    }
    if (!number_read(*at, &end, out) || end[-1] < '0' || end[-1] > '9') return false;
    const char *point = memchr(*at, '.', (size_t)(end - *at));
    *at = end;
    return !point || (point[1] >= '0' && point[1] <= '9');
}

/* Reads the number at *at and the comma or bracket after it. *last is true at the bracket. */
static bool read_item(const char **at, double *out, bool *last)
{
    while (**at == ' ') ++*at;
    if (!read_number(at, out)) return false;
    while (**at == ' ') ++*at;
    *last = **at == ']';
    return *(*at)++ == ',' || *last;
}

bool json_element_numbers(const struct json_element *element, size_t count, double *out)
{
    const char *c = element->text;
    bool last = false;
    if (*c++ != '[') return false;
    for (size_t i = 0; i < count; i++)
        if (!read_item(&c, &out[i], &last) || last != (i + 1 == count)) return false;
    return c == element->text + element->length;
}

bool json_element_wholes(const struct json_element *element, size_t capacity, uint32_t *out, size_t *count)
{
    const char *c = element->text;
    bool last = false;
    if (*c++ != '[') return false;
    for (size_t i = 0; i < capacity && !last; i++) {
        double value;
        if (!read_item(&c, &value, &last) || value > UINT32_MAX || value != (double)(uint32_t)value) return false;
        out[i] = (uint32_t)value;
        *count = i + 1;
    }
    return last && c == element->text + element->length;
}

size_t json_element_size(const struct json_element *element)
{
    struct nesting at = {0};
    size_t commas = 0;
    bool any = false;
    for (size_t i = 0; i < element->length && element->text[0] == '['; i++) {
        char c = element->text[i];
        any |= i > 0 && i + 1 < element->length && !is_space(c);
        commas += c == ',' && !at.in_string && at.depth == 1;
        nest(&at, c);
    }
    return any ? commas + 1 : 0;
}

/* --- opening and closing -------------------------------------------------------------------- */

/* Takes `file` and `held` over, also on failure. */
static enum status open_stream(struct file_in *file, char *held, const char *const *arrays, const struct position *at,
                               const struct file_place *ends, struct json_stream **out, struct error *err)
{
    struct json_stream *s = alloc_zeroed(1, sizeof *s);
    if (!s) {
        file_in_close(file);
        free(held);
        return error_memory(err, "a JSON file", sizeof *s);
    }
    *s = (struct json_stream){
        .file = file, .held = held, .keys = arrays, .ends = ends, .at = *at, .of_element = at != &beginning};
    while (arrays[s->key_count]) s->key_count++;
    assert(s->key_count <= JSON_STREAM_ARRAYS_MAX);
    enum status status = read_head(s, err);
    s->ends = NULL;
    if (status == STATUS_OK) *out = s;
    else json_stream_close(s);
    return status;
}

/* Reads the rest of `file` into *held and opens a file on it. Takes `file` over, also on failure. */
static enum status hold(struct file_in *file, char **held, struct file_in **out, struct error *err)
{
    size_t length = 0;
    enum status status = file_in_rest(file, held_bytes_max, held, &length, err);
    if (status == STATUS_OK) status = file_in_of_text(file_in_name(file), *held, length, out, err);
    if (status != STATUS_OK) free(*held);
    file_in_close(file);
    return status;
}

enum status json_stream_open(const char *path, const char *const *arrays, struct json_stream **out, struct error *err)
{
    struct file_in *file = NULL;
    TRY(file_in_open(path, &file, err));
    return json_stream_of_file(file, arrays, NULL, out, err);
}

enum status json_stream_of_file(struct file_in *file, const char *const *arrays, const struct file_place *ends,
                                struct json_stream **out, struct error *err)
{
    char *held = NULL;
    enum status status = STATUS_OK;
    if (!file_in_seeks(file)) status = hold(file, &held, &file, err);
    return status == STATUS_OK ? open_stream(file, held, arrays, &beginning, ends, out, err) : status;
}

enum status json_stream_of_text(const char *name, const char *text, size_t length, const char *const *arrays,
                                struct json_stream **out, struct error *err)
{
    struct file_in *file = NULL;
    TRY(file_in_of_text(name, text, length, &file, err));
    return open_stream(file, NULL, arrays, &beginning, NULL, out, err);
}

enum status json_stream_whole(struct json_stream *stream, struct json_input **out, struct error *err)
{
    char *text;
    size_t length;
    TRY(file_in_seek(stream->file, 0, err));
    TRY(file_in_rest(stream->file, held_bytes_max, &text, &length, err));
    const struct json_anchor anchor = {.line = 1, .column = 1};
    return json_input_parse_cut(file_in_name(stream->file), text, length, &anchor, 1, false, out, err);
}

enum status json_stream_of_element(const struct json_stream *stream, const struct json_element *element,
                                   const char *const *arrays, struct json_stream **out, struct error *err)
{
    struct file_in *file = NULL;
    const struct position at = {.line = element->line, .column = element->column};
    enum status status = file_in_of_text(file_in_name(stream->file), element->text, element->length, &file, err);
    if (status == STATUS_OK) status = open_stream(file, NULL, arrays, &at, NULL, out, err);
    if (status == STATUS_OK) json_input_set_beside((*out)->head, stream->head);
    return status;
}

const struct json_input *json_stream_head(const struct json_stream *stream)
{
    return stream->head;
}

void json_stream_set_rows(struct json_stream *stream, struct json_rows *rows)
{
    stream->head->rows = rows;
}

enum status json_stream_begin(struct json_stream *stream, size_t index, struct error *err)
{
    assert(index < stream->key_count);
    const struct array_place *place = &stream->arrays[index];
    stream->index = 0;
    stream->absent = !place->found;
    return place->found ? go_to(stream, place, err) : STATUS_OK;
}

enum status json_stream_go(struct json_stream *stream, size_t index, const struct file_place *place, uint64_t element,
                           struct error *err)
{
    assert(index < stream->key_count);
    stream->index = element;
    stream->absent = false;
    return go_to_place(stream, place, err);
}

uint64_t json_stream_first(const struct json_stream *stream, size_t index)
{
    assert(index < stream->key_count);
    return stream->arrays[index].first.offset;
}

void json_stream_close(struct json_stream *stream)
{
    if (!stream) return;
    json_input_destroy(stream->head);
    file_in_close(stream->file);
    free(stream->held);
    free(stream->buffer);
    free(stream);
}
