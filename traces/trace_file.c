/*
 * Opening a trace file. An index at the end of the file has the places where spans and levels end, so only the text
 * before, between and after them is read. A file without an index is passed over once.
 *
 * The rows of the index are checked here as far as they go without the spans: they ascend and cover the arrays. Whether
 * they tell the truth is seen when blocks are read.
 */
#include "traces/trace_file.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/files/file_in.h"
#include "base/size.h"
#include "base/try.h"

static const char *const long_arrays[] = {[TRACE_SPANS] = "spans",
                                          [TRACE_LEVELS] = "levels",
                                          [TRACE_SPAN_BLOCKS] = "span_blocks",
                                          [TRACE_LEVEL_BLOCKS] = "level_blocks",
                                          NULL};

/* --- the index ------------------------------------------------------------------------------ */

static enum status fail_row(const struct trace_file *s, const struct json_element *element, size_t columns,
                            struct error *err)
{
    struct json_input *input = NULL;
    enum status status = json_stream_parse(s->json, element, &input, err);
    if (status == STATUS_OK)
        status = json_fail_key(input, json_input_root(input), NULL, err,
                               "element %" PRIu64 " of the index is wrong (expected %zu numbers, each at least 0)",
                               element->index, columns);
    json_input_destroy(input);
    return status;
}

static enum status next_row(struct trace_file *s, size_t columns, double *numbers, struct json_element *element,
                            bool *more, struct error *err)
{
    enum status status = json_stream_next(s->json, element, more, err);
    if (status != STATUS_OK || !*more || json_element_numbers(element, columns, numbers)) return status;
    return fail_row(s, element, columns, err);
}

static bool read_place(const double *numbers, struct file_place *out)
{
    for (int i = 0; i < 4; i++)
        if (numbers[i] > 0x1p53) return false;
    *out = (struct file_place){.text = (uint64_t)numbers[0],
                               .raw = (uint64_t)numbers[1],
                               .line = (uint64_t)numbers[2],
                               .column = (uint64_t)numbers[3]};
    return true;
}

/* Blocks ascend, begin with the first element and end before the last: a row after one at `before`. */
static bool follows(const struct trace_end *end, size_t index, uint64_t before, uint64_t text_before, uint64_t first,
                    const struct file_place *at)
{
    bool after = index == 0 ? first == 0 : first > before && at->text > text_before;
    return after && first < end->count && at->text < end->at.text;
}

static enum status read_span_blocks(struct trace_file *s, struct error *err)
{
    double row[TRACE_SPAN_BLOCK_COLUMNS];
    const struct trace_end *end = &s->ends.arrays[TRACE_SPANS];
    size_t capacity = 0;
    struct trace_span_block *blocks = NULL;
    enum status status = json_stream_begin(s->json, TRACE_SPAN_BLOCKS, err);
    for (size_t i = 0; status == STATUS_OK; i++) {
        struct json_element element;
        bool more;
        status = next_row(s, TRACE_SPAN_BLOCK_COLUMNS, row, &element, &more, err);
        if (status != STATUS_OK || !more) break;
        if (!s->indexed) continue;
        status = array_reserve(&blocks, &capacity, i, sizeof *blocks, TRACE_SPANS_MAX, "blocks", err);
        if (status != STATUS_OK) break;
        struct trace_span_block block = {.from_s = row[5], .to_s = row[6]};
        const struct trace_span_block none = {0}, *before = i > 0 ? &blocks[i - 1] : &none;
        if (!read_place(row + 1, &block.at) || row[0] > 0x1p53 || row[7] > UINT32_MAX ||
            !follows(end, i, before->first, before->at.text, (uint64_t)row[0], &block.at)) {
            status = fail_row(s, &element, TRACE_SPAN_BLOCK_COLUMNS, err);
            break;
        }
        block.first = (uint64_t)row[0];
        block.minibatch = (uint32_t)row[7];
        blocks[i] = block;
        s->span_block_count = i + 1;
    }
    if (status == STATUS_OK && blocks) status = arena_adopt(&s->arena, blocks, capacity * sizeof *blocks, err);
    if (status == STATUS_OK) s->span_blocks = blocks;
    else free(blocks);
    return status;
}

/* Reads the levels of the places from a row of level blocks. False when they are impossible. */
static bool read_held(const double *numbers, uint32_t place_count, uint64_t first, struct trace_held *out)
{
    for (uint32_t p = 0; p < place_count; p++, numbers += TRACE_PLACE_COLUMNS) {
        if (numbers[0] > (double)first || numbers[1] > TRACE_TIME_MAX_S || numbers[2] > 0x1p63) return false;
        out[p] = (struct trace_held){
            .next = (uint64_t)numbers[0], .time_s = numbers[1], .bytes = (uint64_t)numbers[2]};
    }
    return true;
}

struct level_rows {
    double *row;
    struct trace_level_block *blocks;
    struct trace_held *held;
    size_t capacity, held_capacity, count;
};

static enum status add_level_row(struct trace_file *s, const struct json_element *element, struct level_rows *rows,
                                 struct error *err)
{
    const uint32_t places = s->head.place_count;
    const struct trace_level_block none = {0}, *before = rows->count > 0 ? &rows->blocks[rows->count - 1] : &none;
    struct trace_level_block block = {.time_s = rows->row[5]};
    const double first = rows->row[0];
    if (!read_place(rows->row + 1, &block.at) || first > 0x1p53 ||
        !follows(&s->ends.arrays[TRACE_LEVELS], rows->count, before->first, before->at.text, (uint64_t)first,
                 &block.at))
        return fail_row(s, element, TRACE_LEVEL_BLOCK_COLUMNS + (size_t)places * TRACE_PLACE_COLUMNS, err);
    block.first = (uint64_t)first;
    enum status status = array_reserve(&rows->blocks, &rows->capacity, rows->count, sizeof *rows->blocks,
                                       TRACE_LEVELS_MAX, "blocks", err);
    while (status == STATUS_OK && rows->held_capacity < (rows->count + 1) * places)
        status = array_grow(&rows->held, &rows->held_capacity, rows->held_capacity, sizeof *rows->held,
                            TRACE_LEVELS_MAX, "levels in the index", err);
    if (status != STATUS_OK) return status;
    if (!read_held(rows->row + TRACE_LEVEL_BLOCK_COLUMNS, places, block.first, rows->held + rows->count * places))
        return fail_row(s, element, TRACE_LEVEL_BLOCK_COLUMNS + (size_t)places * TRACE_PLACE_COLUMNS, err);
    rows->blocks[rows->count++] = block;
    return STATUS_OK;
}

static enum status take_level_rows(struct trace_file *s, struct level_rows *rows, struct error *err)
{
    const size_t columns = TRACE_LEVEL_BLOCK_COLUMNS + (size_t)s->head.place_count * TRACE_PLACE_COLUMNS;
    enum status status = json_stream_begin(s->json, TRACE_LEVEL_BLOCKS, err);
    while (status == STATUS_OK) {
        struct json_element element;
        bool more;
        status = next_row(s, columns, rows->row, &element, &more, err);
        if (status != STATUS_OK || !more) return status;
        if (s->indexed) status = add_level_row(s, &element, rows, err);
    }
    return status;
}

static enum status read_level_blocks(struct trace_file *s, struct error *err)
{
    const size_t columns = TRACE_LEVEL_BLOCK_COLUMNS + (size_t)s->head.place_count * TRACE_PLACE_COLUMNS;
    struct level_rows rows = {.row = alloc_zeroed(columns, sizeof(double))};
    enum status status = rows.row ? take_level_rows(s, &rows, err) : error_memory(err, "the index of a trace", columns);
    free(rows.row);
    if (status == STATUS_OK && rows.blocks) {
        status = arena_adopt(&s->arena, rows.blocks, rows.capacity * sizeof *rows.blocks, err);
        if (status == STATUS_OK) s->level_blocks = rows.blocks;
        if (status == STATUS_OK) rows.blocks = NULL;
    }
    if (status == STATUS_OK && rows.held) {
        status = arena_adopt(&s->arena, rows.held, rows.held_capacity * sizeof *rows.held, err);
        if (status == STATUS_OK) s->held = rows.held;
        if (status == STATUS_OK) rows.held = NULL;
    }
    s->level_block_count = rows.count;
    free(rows.blocks);
    free(rows.held);
    return status;
}

static enum status read_index(struct trace_file *s, struct error *err)
{
    enum status status = read_span_blocks(s, err);
    if (status == STATUS_OK) status = read_level_blocks(s, err);
    if (status != STATUS_OK || !s->indexed) return status;
    bool spans = s->ends.arrays[TRACE_SPANS].count > 0, levels = s->ends.arrays[TRACE_LEVELS].count > 0;
    s->indexed = (s->span_block_count > 0) == spans && (s->level_block_count > 0) == levels;
    return STATUS_OK;
}

/* --- opening -------------------------------------------------------------------------------- */

/* Takes `file` over, also on failure. */
static enum status open_file(struct trace_file *s, struct file_in *file, struct error *err)
{
    struct file_place ends[ARRAY_COUNT(long_arrays)] = {{0}};
    enum status status = STATUS_OK;
    if (file_in_seeks(file)) {
        status = trace_ends_read(file, &s->ends, &s->indexed, err);
        if (status == STATUS_OK) status = file_in_seek(file, 0, err);
    }
    if (status != STATUS_OK) {
        file_in_close(file);
        return status;
    }
    for (int i = 0; i < TRACE_ARRAYS; i++) ends[i] = s->ends.arrays[i].at;
    TRY(json_stream_of_file(file, long_arrays, s->indexed ? ends : NULL, &s->json, err));
    TRY(trace_file_read_head(s, err));
    return read_index(s, err);
}

enum status trace_file_open(struct trace_file *s, const char *path, struct error *err)
{
    struct file_in *file;
    TRY(file_in_open(path, &file, err));
    return open_file(s, file, err);
}

enum status trace_file_of_text(struct trace_file *s, const char *name, const char *text, size_t length,
                               struct error *err)
{
    struct file_in *file;
    TRY(file_in_of_text(name, text, length, &file, err));
    return open_file(s, file, err);
}

void trace_file_release(struct trace_file *s)
{
    json_stream_close(s->json);
    trace_release(&s->head);
    arena_release(&s->arena);
}
