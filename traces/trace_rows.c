/*
 * Rows of a trace file. A span as the writer has it is five or six numbers, which are read without a tree. Any other
 * row is parsed like the head, which says where and why it is wrong.
 */
#include "base/try.h"
#include "traces/trace_file.h"

#include <inttypes.h>
#include <math.h>

#include "planner/plan.h"

/* --- rows ----------------------------------------------------------------------------------- */

/* Returns true when the value is a whole number of at most `max`. */
static bool is_whole(double value, double max)
{
    return value <= max && value == floor(value);
}

/* Opens a row that is an array of `columns`; the caller releases *input, also after an error. */
static enum status open_row(const struct trace_file *s, const struct json_element *element, size_t columns,
                            struct json_input **input, struct error *err)
{
    TRY(json_stream_parse(s->json, element, input, err));
    const json_t *row = json_input_root(*input);
    if (!json_is_array(row))
        return json_fail_key(*input, row, NULL, err, "element %" PRIu64 " is not an array",
                             element->index);
    if (json_array_size(row) != columns)
        return json_fail_key(*input, row, NULL, err, "element %" PRIu64 " has %zu elements (expected %zu)",
                             element->index, json_array_size(row), columns);
    return STATUS_OK;
}

static enum status read_span_row(const struct trace_file *s, const struct json_input *input, struct trace_span *span,
                                 uint32_t *which, struct error *err)
{
    const json_t *row = json_input_root(input);
    TRY(json_item_u64(input, row, 0, 0, INT64_MAX, &span->number, err));
    TRY(trace_item_index(input, row, 1, s->operation_count, "operation", which, err));
    TRY(trace_item_u32(input, row, 2, UINT32_MAX, &span->minibatch, err));
    TRY(json_item_double(input, row, 3, 0, TRACE_TIME_MAX_S, &span->start_s, err));
    TRY(json_item_double(input, row, 4, 0, TRACE_TIME_MAX_S, &span->end_s, err));
    return s->head.has_waits ? json_item_double(input, row, 5, 0, TRACE_TIME_MAX_S, &span->waited_s, err) : STATUS_OK;
}

enum status trace_file_span(const struct trace_file *s, const struct json_element *element, struct trace_span *span,
                            struct error *err)
{
    double row[TRACE_SPAN_COLUMNS] = {0};
    const size_t columns = trace_span_column_count(&s->head);
    uint32_t which = 0;
    *span = (struct trace_span){0};
    if (json_element_numbers(element, columns, row) && is_whole(row[0], 0x1p53) &&
        is_whole(row[1], (double)s->operation_count - 1) && is_whole(row[2], UINT32_MAX) &&
        row[3] <= TRACE_TIME_MAX_S && row[4] <= TRACE_TIME_MAX_S && row[5] <= TRACE_TIME_MAX_S) {
        span->number = (uint64_t)row[0];
        which = (uint32_t)row[1];
        span->minibatch = (uint32_t)row[2];
        span->start_s = row[3];
        span->end_s = row[4];
        span->waited_s = row[5];
    } else {
        struct json_input *input = NULL;
        enum status status = open_row(s, element, columns, &input, err);
        if (status == STATUS_OK) status = read_span_row(s, input, span, &which, err);
        json_input_destroy(input);
        if (status != STATUS_OK) return status;
    }
    const struct trace_operation *operation = &s->operations[which];
    uint32_t stream_kind = s->head.streams[operation->stream].kind;
    span->stream = operation->stream;
    span->job = operation->job;
    span->shard = operation->shard;
    span->pass = operation->pass;
    span->op_index = operation->index;
    span->bytes = operation->bytes;
    span->kind = plan_stream_copies(stream_kind) ? OP_COPY : span->bytes > 0 ? OP_COLLECTIVE : OP_COMPUTE;
    return STATUS_OK;
}

static enum status read_level_row(const struct trace_file *s, const struct json_input *input, struct trace_level *level,
                                  struct error *err)
{
    const json_t *row = json_input_root(input);
    TRY(json_item_double(input, row, 0, 0, TRACE_TIME_MAX_S, &level->time_s, err));
    TRY(trace_item_index(input, row, 1, s->head.place_count, "place", &level->place, err));
    return json_item_u64(input, row, 2, 0, INT64_MAX, &level->bytes, err);
}

enum status trace_file_level(const struct trace_file *s, const struct json_element *element, struct trace_level *level,
                             struct error *err)
{
    double row[TRACE_LEVEL_COLUMNS];
    if (json_element_numbers(element, TRACE_LEVEL_COLUMNS, row) && row[0] <= TRACE_TIME_MAX_S &&
        is_whole(row[1], (double)s->head.place_count - 1) && is_whole(row[2], 0x1p53)) {
        *level = (struct trace_level){.time_s = row[0], .place = (uint32_t)row[1], .bytes = (uint64_t)row[2]};
        return STATUS_OK;
    }
    struct json_input *input = NULL;
    enum status status = open_row(s, element, TRACE_LEVEL_COLUMNS, &input, err);
    if (status == STATUS_OK) status = read_level_row(s, input, level, err);
    json_input_destroy(input);
    return status;
}

