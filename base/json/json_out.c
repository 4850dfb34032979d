/*
 * A writer that keeps one small stack (the open containers, and which of them are on one line) and one buffer. Every
 * value is appended to the buffer. A full buffer goes to the file_out, or grows when there is none.
 *
 * Layout: two spaces per level and a line per child, except in compact containers and whatever is
 * inside one, which stay on their line:
 *
 *     {
 *       "name": "a",
 *       "layers": [1, 2.5, {"k": 3}]
 *     }
 *
 * Strings are written as UTF-8. Bytes that are not UTF-8 (a file name can contain any bytes) become U+FFFD, because
 * our own reader would refuse them.
 */
#include "base/json/json_out.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files/file.h"
#include "base/text/number.h"
#include "base/try.h"

enum { DEPTH_MAX = 64, BUFFER_BYTES = 64 << 10, PIECE_MAX = 256 };

struct json_out_level {
    bool object;
    bool compact;
    bool has_child;
};

struct json_out {
    struct file_out *file; /* may be NULL; borrowed */
    char *buffer;
    size_t used, capacity;
    uint64_t flushed;      /* bytes that went to the file */
    uint64_t lines, line_at; /* ends of lines so far; where the last line begins */
    size_t depth;
    bool complete; /* no memory was missing so far */
    struct json_out_level levels[DEPTH_MAX];
    struct number_powers powers;
};

/* --- the buffer ----------------------------------------------------------------------------- */

static void flush_buffer(struct json_out *out)
{
    if (out->file) {
        file_out_write(out->file, out->buffer, out->used);
        out->flushed += out->used;
        out->used = 0;
    }
}

/* Returns the place for at most PIECE_MAX bytes; the caller then adds their number to `used`. Always valid: after a
 * failed allocation it is the beginning of the buffer, which is overwritten, and json_out_complete() is false. */
static char *room(struct json_out *out)
{
    if (out->capacity - out->used >= PIECE_MAX + 1) return out->buffer + out->used;
    if (out->file) {
        flush_buffer(out);
        return out->buffer;
    }
    size_t capacity = 2 * out->capacity;
    char *larger = alloc_resize(out->buffer, capacity);
    if (larger) {
        out->buffer = larger;
        out->capacity = capacity;
    } else {
        out->complete = false;
        out->used = 0;
    }
    return out->buffer + out->used;
}

static void put(struct json_out *out, const char *text, size_t length)
{
    while (length > 0) {
        size_t part = length < PIECE_MAX ? length : PIECE_MAX;
        memcpy(room(out), text, part);
        out->used += part;
        text += part;
        length -= part;
    }
}

static void put_char(struct json_out *out, char c)
{
    *room(out) = c;
    out->used++;
}

/* --- strings -------------------------------------------------------------------------------- */

/* Returns the length of the UTF-8 sequence at `s` (NUL-terminated); 0 if it is invalid. */
static size_t utf8_length(const unsigned char *s)
{
    static const struct {
        unsigned char first_min, first_max, second_min, second_max;
        size_t length;
    } rows[] = {
        {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
        {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    if (s[0] < 0x80) return 1;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (s[0] < rows[i].first_min || s[0] > rows[i].first_max) continue;
        if (s[1] < rows[i].second_min || s[1] > rows[i].second_max) return 0;
        for (size_t j = 2; j < rows[i].length; j++)
            if (s[j] < 0x80 || s[j] > 0xbf) return 0;
        return rows[i].length;
    }
    return 0;
}

static void put_escaped(struct json_out *out, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    switch (c) {
    case '"': put(out, "\\\"", 2); break;
    case '\\': put(out, "\\\\", 2); break;
    case '\n': put(out, "\\n", 2); break;
    case '\t': put(out, "\\t", 2); break;
    case '\r': put(out, "\\r", 2); break;
    default: {
        char code[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
        put(out, code, sizeof code);
    }
    }
}

static void put_string(struct json_out *out, const char *text)
{
    put_char(out, '"');
    const unsigned char *s = (const unsigned char *)text, *plain = s;
    while (*s) {
        size_t length = utf8_length(s);
        if (length > 0 && *s >= 0x20 && *s != '"' && *s != '\\') {
            s += length;
            continue;
        }
        put(out, (const char *)plain, (size_t)(s - plain));
        if (length == 0)
            put(out, "\xef\xbf\xbd", 3);
        else
            put_escaped(out, *s);
        plain = ++s;
    }
    put(out, (const char *)plain, (size_t)(s - plain));
    put_char(out, '"');
}

/* --- layout --------------------------------------------------------------------------------- */

static void put_new_line(struct json_out *out)
{
    put_char(out, '\n');
    out->lines++;
    out->line_at = out->flushed + out->used;
    memset(room(out), ' ', 2 * out->depth);
    out->used += 2 * out->depth;
}
static_assert(2 * DEPTH_MAX <= PIECE_MAX, "the indentation is one piece");

/* Writes the text before a value: comma, line, key. */
static void begin_value(struct json_out *out, const char *key)
{
    if (out->depth == 0) {
        assert(!key);
        return;
    }
    struct json_out_level *level = &out->levels[out->depth - 1];
    assert(level->object == (key != NULL));
    if (level->has_child) put_char(out, ',');
    if (!level->compact)
        put_new_line(out);
    else if (level->has_child)
        put_char(out, ' ');
    level->has_child = true;
    if (key) {
        put_string(out, key);
        put(out, ": ", 2);
    }
}

static void end_value(struct json_out *out)
{
    if (out->depth > 0) return;
    put_char(out, '\n');
    flush_buffer(out);
}

static void begin_container(struct json_out *out, const char *key, bool object, bool compact)
{
    begin_value(out, key);
    assert(out->depth < DEPTH_MAX);
    bool inside_compact = out->depth > 0 && out->levels[out->depth - 1].compact;
    out->levels[out->depth++] = (struct json_out_level){object, compact || inside_compact, false};
    put_char(out, object ? '{' : '[');
}

static void end_container(struct json_out *out, bool object)
{
    assert(out->depth > 0);
    struct json_out_level level = out->levels[--out->depth];
    assert(level.object == object);
    if (level.has_child && !level.compact) put_new_line(out);
    put_char(out, object ? '}' : ']');
    end_value(out);
}

/* --- public --------------------------------------------------------------------------------- */

struct json_out *json_out_create(struct file_out *file)
{
    struct json_out *out = alloc_zeroed(1, sizeof *out);
    if (!out) return NULL;
    out->capacity = BUFFER_BYTES;
    out->buffer = alloc_zeroed(1, BUFFER_BYTES);
    if (!out->buffer) {
        free(out);
        return NULL;
    }
    out->file = file;
    out->complete = true;
    number_powers_init(&out->powers);
    return out;
}

void json_out_destroy(struct json_out *out)
{
    if (!out) return;
    free(out->buffer);
    free(out);
}

const char *json_out_text(const struct json_out *out, size_t *length)
{
    assert(!out->file);
    assert(out->used < out->capacity);
    out->buffer[out->used] = '\0';
    if (length) *length = out->used;
    return out->buffer;
}

bool json_out_complete(const struct json_out *out)
{
    return out->complete;
}

void json_out_object_begin(struct json_out *out, const char *key, bool compact)
{
    begin_container(out, key, true, compact);
}

void json_out_object_end(struct json_out *out)
{
    end_container(out, true);
}

void json_out_array_begin(struct json_out *out, const char *key, bool compact)
{
    begin_container(out, key, false, compact);
}

void json_out_array_end(struct json_out *out)
{
    end_container(out, false);
}

void json_out_u64(struct json_out *out, const char *key, uint64_t value)
{
    begin_value(out, key);
    out->used += number_write_u64(value, room(out));
    end_value(out);
}

void json_out_double(struct json_out *out, const char *key, double value)
{
    assert(isfinite(value));
    begin_value(out, key);
    out->used += number_write(value, &out->powers, room(out));
    end_value(out);
}

void json_out_bool(struct json_out *out, const char *key, bool value)
{
    begin_value(out, key);
    put(out, value ? "true" : "false", value ? 4 : 5);
    end_value(out);
}

void json_out_string(struct json_out *out, const char *key, const char *value)
{
    begin_value(out, key);
    put_string(out, value);
    end_value(out);
}

void json_out_null(struct json_out *out, const char *key)
{
    begin_value(out, key);
    put(out, "null", 4);
    end_value(out);
}

struct file_place json_out_place(struct json_out *out)
{
    assert(out->file);
    flush_buffer(out);
    struct file_place place = file_out_place(out->file);
    place.line = out->lines + 1;
    place.column = out->flushed - out->line_at + 1;
    return place;
}

/* --- files ----------------------------------------------------------------------------------- */

enum status json_file_begin(struct json_file *json, const char *path, const char *what, struct error *err)
{
    *json = (struct json_file){.what = what};
    TRY(file_out_create(path, &json->file, err));
    json->out = json_out_create(json->file);
    if (json->out) return STATUS_OK;
    file_out_discard(json->file);
    return error_memory(err, what, 0);
}

void json_file_discard(struct json_file *json)
{
    json_out_destroy(json->out);
    file_out_discard(json->file);
}

enum status json_file_end(struct json_file *json, struct error *err)
{
    bool complete = json_out_complete(json->out);
    json_out_destroy(json->out);
    if (complete) return file_out_commit(json->file, err);
    file_out_discard(json->file);
    return error_memory(err, json->what, 0);
}
