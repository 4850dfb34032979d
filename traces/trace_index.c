/*
 * The last line has one form, which is compared byte by byte: files that another program has written again have their
 * own.
 */
#include "traces/trace_index.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file_in.h"
#include "base/json/json_out.h"
#include "base/try.h"
#include "traces/trace_format.h"

static const char key[] = ",\n  \"ends\": [", closing[] = "]\n}\n";
enum { LINE_BYTES_MAX = 512, NUMBERS_BY_ARRAY = 5, NUMBERS = TRACE_ARRAYS * NUMBERS_BY_ARRAY + 1 };

const char *const trace_span_block_columns[TRACE_SPAN_BLOCK_COLUMNS] = {"span", "text", "raw", "line",
                                                                        "column", "from_s", "to_s", "minibatch"};
const char *const trace_level_block_columns[TRACE_LEVEL_BLOCK_COLUMNS] = {"level", "text", "raw",
                                                                          "line", "column", "time_s"};
const char *const trace_place_columns[TRACE_PLACE_COLUMNS] = {"next", "time_s", "bytes"};

void trace_ends_write(const struct trace_ends *ends, struct json_out *out)
{
    struct file_place here = json_out_place(out);
    json_out_array_begin(out, "ends", true);
    for (int i = 0; i < TRACE_ARRAYS; i++) {
        const struct trace_end *end = &ends->arrays[i];
        json_out_u64(out, NULL, end->count);
        json_out_u64(out, NULL, end->at.text);
        json_out_u64(out, NULL, end->at.raw);
        json_out_u64(out, NULL, end->at.line);
        json_out_u64(out, NULL, end->at.column);
    }
    json_out_u64(out, NULL, here.text);
    json_out_array_end(out);
}

/* Returns the begin of the line in a text that ends with it; NULL: it does not. */
static const char *find_line(const char *text, size_t length)
{
    const size_t key_length = sizeof key - 1;
    for (size_t at = length; at-- > 0;)
        if (text[at] == ',' && length - at >= key_length && memcmp(text + at, key, key_length) == 0) return text + at;
    return NULL;
}

/* Numbers with ", " between them, and the end of the file after them. */
static bool read_numbers(const char *at, uint64_t numbers[NUMBERS])
{
    for (int i = 0; i < NUMBERS; i++) {
        char *end;
        if (i > 0 && strncmp(at, ", ", 2) != 0) return false;
        if (i > 0) at += 2;
        if (*at < '0' || *at > '9') return false;
        numbers[i] = strtoull(at, &end, 10);
        if (numbers[i] > INT64_MAX) return false;
        at = end;
    }
    return strcmp(at, closing) == 0;
}

enum status trace_ends_read(struct file_in *file, struct trace_ends *out, bool *found, struct error *err)
{
    char text[LINE_BYTES_MAX + 1];
    uint64_t numbers[NUMBERS], begin;
    size_t length = 0;
    *found = false;
    TRY(file_in_end(file, text, LINE_BYTES_MAX, &begin, &length, err));
    text[length] = '\0';
    const char *line = find_line(text, length);
    if (!line || !read_numbers(line + sizeof key - 1, numbers)) return STATUS_OK;
    for (int i = 0; i < TRACE_ARRAYS; i++) {
        const uint64_t *n = numbers + i * NUMBERS_BY_ARRAY;
        out->arrays[i] = (struct trace_end){n[0], {.text = n[1], .raw = n[2], .line = n[3], .column = n[4]}};
    }
    uint64_t said = numbers[NUMBERS - 1];
    const struct trace_end *spans = &out->arrays[TRACE_SPANS], *levels = &out->arrays[TRACE_LEVELS];
    *found = spans->at.text > 0 && spans->at.text < levels->at.text && levels->at.text < said &&
             (begin == UINT64_MAX ? line == text : begin + (uint64_t)(line - text) == said);
    return STATUS_OK;
}
