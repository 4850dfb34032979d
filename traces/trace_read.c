/*
 * Reads traces span by span. trace_write.c shows the format.
 *
 * Spans and levels are long arrays (base/json/json_stream.h), everything else is the head. A span as written by
 * trace_write() is five numbers, which are read without a tree. Any other element is parsed like the rest, which
 * reports its position and fault.
 *
 * Nothing is trusted: every index is in range before it is used, every count is within a limit, and the
 * judge sees each span and level before a caller does.
 */
#include "traces/trace_reader.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json/json_stream.h"
#include "base/size.h"
#include "base/try.h"
#include "planner/plan.h"
#include "traces/trace_format.h"
#include "traces/trace_judge.h"

enum { SPANS, LEVELS };
static const char *const long_arrays[] = {[SPANS] = "spans", [LEVELS] = "levels", NULL};

struct trace_reader {
    struct json_stream *json;
    struct trace head;
    struct arena arena; /* of the operations */
    struct trace_operation *operations;
    size_t operation_count;
    struct trace_judge judge;
    uint32_t array; /* that is being read */
};

/* --- the head ------------------------------------------------------------------------------- */

/* Takes a text that lives as long as the trace. */
static enum status read_text(struct trace *trace, struct json_object *object, const char *key,
                             const char **out, struct error *err)
{
    const char *text = NULL;
    TRY(json_take_string(object, key, JSON_REQUIRED, &text, err));
    return arena_string(&trace->arena, text, out, err);
}

static enum status read_fingerprint(struct json_object *object, uint64_t *out, struct error *err)
{
    const char *text = NULL;
    TRY(json_take_string(object, "plan", JSON_REQUIRED, &text, err));
    uint64_t value = 0;
    if (strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        return json_fail_key(object->input, object->value, "plan", err,
                             "'%s' is not the fingerprint of a plan (16 hexadecimal digits)", text);
    for (const char *c = text; *c; c++)
        value = value << 4 | (uint64_t)(*c <= '9' ? *c - '0' : *c - 'a' + 10);
    *out = value;
    return STATUS_OK;
}

/* Takes an array of at most `limit` elements; *out_count entries of `size` bytes for them. `out` is the address of
 * the pointer to them (a struct x **, passed as void *). */
static enum status read_list(struct arena *arena, struct json_object *object, const char *key,
                             size_t limit, size_t size, const json_t **array, void *out,
                             size_t *out_count, struct error *err)
{
    enum status status = json_take_array(object, key, JSON_REQUIRED, array, err);
    if (status != STATUS_OK) return status;
    size_t count = json_array_size(*array);
    if (count > limit) {
        json_fail_key(object->input, object->value, key, err, "too many %s (limit is %zu)", key,
                      limit);
        err->status = STATUS_LIMIT; /* not the STATUS_BAD_INPUT of other messages with a place */
        return STATUS_LIMIT;
    }
    status = arena_array(arena, count, size, out, err);
    if (status == STATUS_OK) *out_count = count;
    return status;
}

static enum status read_columns(struct json_object *object, const char *key,
                                const char *const *names, size_t count, struct error *err)
{
    const json_t *array = NULL;
    TRY(json_take_array(object, key, JSON_REQUIRED, &array, err));
    if (json_array_size(array) != count)
        return json_fail_key(object->input, object->value, key, err,
                             "'%s' has %zu columns (expected %zu)", key, json_array_size(array),
                             count);
    for (size_t i = 0; i < count; i++) {
        const char *name = NULL;
        TRY(json_item_string(object->input, array, i, &name, err));
        if (strcmp(name, names[i]) != 0)
            return json_fail_index(object->input, array, i, err,
                                   "column '%s' of '%s' (expected '%s')", name, key, names[i]);
    }
    return STATUS_OK;
}

static enum status read_head(struct trace *trace, struct json_object *object, struct error *err)
{
    uint64_t version = 0;
    size_t source = 0;
    enum status status = json_take_u64(object, "spillway_trace", JSON_REQUIRED, 0, INT64_MAX,
                                       &version, err);
    if (status != STATUS_OK) return status;
    if (version != TRACE_VERSION)
        return json_fail_key(object->input, object->value, "spillway_trace", err,
                             "trace version %" PRIu64 " is not known (expected %d)", version,
                             TRACE_VERSION);
    json_take_any(object, "made_by");
    status = json_take_choice(object, "source", JSON_REQUIRED, trace_source_names,
                              ARRAY_COUNT(trace_source_names), &source, err);
    trace->source = (uint32_t)source;
    if (status == STATUS_OK) status = read_text(trace, object, "hardware", &trace->hardware, err);
    if (status == STATUS_OK) status = read_text(trace, object, "policy", &trace->policy, err);
    if (status == STATUS_OK) status = json_take_double(object, "load", JSON_OPTIONAL, 0, 1, &trace->load, err);
    if (status == STATUS_OK) status = read_fingerprint(object, &trace->plan_fingerprint, err);
    if (status == STATUS_OK)
        status = json_take_bool(object, "complete", JSON_REQUIRED, &trace->complete, err);
    if (status == STATUS_OK)
        status = json_take_double(object, "makespan_s", JSON_REQUIRED, 0, TRACE_TIME_MAX_S,
                                  &trace->makespan_s, err);
    return status;
}

static enum status read_stream(struct trace *trace, struct json_object *object,
                               struct trace_stream *stream, struct error *err)
{
    size_t kind = 0;
    enum status status = read_text(trace, object, "name", &stream->name, err);
    if (status == STATUS_OK)
        status = json_take_choice(object, "kind", JSON_REQUIRED, plan_stream_names,
                                  STREAM_KIND_COUNT, &kind, err);
    stream->kind = (uint32_t)kind;
    stream->device = PLAN_NONE;
    if (status == STATUS_OK && !plan_stream_is_host(stream->kind))
        status = json_take_u32(object, "device", JSON_REQUIRED, 0, DEVICES_MAX - 1,
                               &stream->device, err);
    if (status == STATUS_OK && plan_stream_is_host(stream->kind))
        status = json_take_u32(object, "host", JSON_OPTIONAL, 0, DEVICES_MAX - 1, &stream->host, err);
    return status;
}

static enum status read_streams(struct trace *trace, struct json_object *root, struct error *err)
{
    const json_t *array = NULL;
    size_t count = 0;
    enum status status = read_list(&trace->arena, root, "streams", DEVICES_MAX * STREAM_KIND_COUNT,
                                   sizeof *trace->streams, &array, &trace->streams, &count, err);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        struct json_object object;
        status = json_object_open_at(&object, root->input, array, i, "a stream", err);
        if (status == STATUS_OK) status = read_stream(trace, &object, &trace->streams[i], err);
        if (status == STATUS_OK) status = json_object_close(&object, err);
    }
    trace->stream_count = (uint32_t)count;
    return status;
}

static enum status read_places(struct trace *trace, struct json_object *root, struct error *err)
{
    const json_t *array = NULL;
    size_t count = 0;
    uint32_t hosts = 1;
    enum status status = json_take_u32(root, "hosts", JSON_OPTIONAL, 1, DEVICES_MAX, &hosts, err);
    if (status != STATUS_OK) return status;
    trace->more_hosts = hosts - 1;
    status = read_list(&trace->arena, root, "places", 2 * DEVICES_MAX, sizeof *trace->places, &array, &trace->places, &count, err);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        struct json_object object;
        struct trace_place *place = &trace->places[i];
        status = json_object_open_at(&object, root->input, array, i, "a place", err);
        if (status == STATUS_OK) status = read_text(trace, &object, "name", &place->name, err);
        if (status == STATUS_OK)
            status = json_take_u64(&object, "capacity_bytes", JSON_REQUIRED, 0, INT64_MAX,
                                   &place->capacity_bytes, err);
        if (status == STATUS_OK)
            status = json_take_u64(&object, "peak_bytes", JSON_REQUIRED, 0, INT64_MAX,
                                   &place->peak_bytes, err);
        if (status == STATUS_OK)
            status = json_take_double(&object, "peak_time_s", JSON_REQUIRED, 0, TRACE_TIME_MAX_S,
                                      &place->peak_time_s, err);
        if (status == STATUS_OK) status = json_object_close(&object, err);
    }
    trace->place_count = (uint32_t)count;
    return status;
}

static enum status read_job(struct trace *trace, struct json_object *object, struct trace_job *job,
                            struct error *err)
{
    enum status status = read_text(trace, object, "name", &job->name, err);
    if (status == STATUS_OK)
        status = json_take_u64(object, "tokens", JSON_REQUIRED, 0, INT64_MAX, &job->tokens, err);
    if (status == STATUS_OK)
        status = json_take_u64(object, "samples", JSON_REQUIRED, 0, INT64_MAX, &job->samples, err);
    if (status == STATUS_OK)
        status = json_take_u64(object, "minibatches", JSON_REQUIRED, 0, INT64_MAX,
                               &job->minibatches, err);
    if (status == STATUS_OK)
        status = json_take_double(object, "start_s", JSON_REQUIRED, 0, TRACE_TIME_MAX_S,
                                  &job->start_s, err);
    if (status == STATUS_OK)
        status = json_take_double(object, "end_s", JSON_REQUIRED, 0, TRACE_TIME_MAX_S,
                                  &job->end_s, err);
    job->has_loss = json_has(object, "final_loss");
    if (status == STATUS_OK && job->has_loss)
        status = json_take_double(object, "final_loss", JSON_REQUIRED, -1e300, 1e300,
                                  &job->final_loss, err);
    return status;
}

static enum status read_jobs(struct trace *trace, struct json_object *root, struct error *err)
{
    const json_t *array = NULL;
    size_t count = 0;
    enum status status = read_list(&trace->arena, root, "jobs", JOBS_MAX, sizeof *trace->jobs, &array,
                                   &trace->jobs, &count, err);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        struct json_object object;
        status = json_object_open_at(&object, root->input, array, i, "a job", err);
        if (status == STATUS_OK) status = read_job(trace, &object, &trace->jobs[i], err);
        if (status == STATUS_OK) status = json_object_close(&object, err);
    }
    trace->job_count = (uint32_t)count;
    return status;
}

static enum status item_u32(const struct json_input *input, const json_t *array, size_t index,
                            uint32_t max, uint32_t *out, struct error *err)
{
    uint64_t value = 0;
    enum status status = json_item_u64(input, array, index, 0, max, &value, err);
    if (status == STATUS_OK) *out = (uint32_t)value;
    return status;
}

/* Takes an index into a table of `count` entries called `what`. */
static enum status item_index(const struct json_input *input, const json_t *array, size_t index,
                              size_t count, const char *what, uint32_t *out, struct error *err)
{
    uint32_t value = 0;
    TRY(item_u32(input, array, index, UINT32_MAX, &value, err));
    if (value >= count)
        return json_fail_index(input, array, index, err,
                               "%s %" PRIu32 " does not exist (there are %zu)", what, value, count);
    *out = value;
    return STATUS_OK;
}

static enum status item_pass(const struct json_input *input, const json_t *array, size_t index,
                             uint8_t *out, struct error *err)
{
    const char *name = NULL;
    TRY(json_item_string(input, array, index, &name, err));
    for (uint8_t pass = 0; pass < PLAN_PASS_COUNT; pass++)
        if (strcmp(name, plan_pass_names[pass]) == 0) {
            *out = pass;
            return STATUS_OK;
        }
    return json_fail_index(input, array, index, err, "unknown pass '%s'", name);
}

static enum status read_operation(const struct trace *trace, const struct json_input *input,
                                  const json_t *row, struct trace_operation *operation,
                                  struct error *err)
{
    uint32_t index = 0;
    enum status status = item_index(input, row, 0, trace->stream_count, "stream",
                                    &operation->stream, err);
    if (status == STATUS_OK)
        status = item_index(input, row, 1, trace->job_count, "job", &operation->job, err);
    if (status == STATUS_OK)
        status = item_u32(input, row, 2, UINT32_MAX, &operation->shard, err);
    if (status == STATUS_OK) status = item_pass(input, row, 3, &operation->pass, err);
    if (status == STATUS_OK) status = item_u32(input, row, 4, UINT8_MAX, &index, err);
    operation->index = (uint8_t)index;
    if (status == STATUS_OK)
        status = json_item_u64(input, row, 5, 0, INT64_MAX, &operation->bytes, err);
    return status;
}

static enum status read_operations(struct trace_reader *s, struct json_object *root, struct error *err)
{
    const json_t *array = NULL, *row = NULL;
    enum status status = read_columns(root, "operation_columns", trace_operation_columns,
                                      TRACE_OPERATION_COLUMNS, err);
    if (status == STATUS_OK)
        status = read_list(&s->arena, root, "operations", TRACE_SPANS_MAX, sizeof *s->operations, &array,
                           &s->operations, &s->operation_count, err);
    for (size_t i = 0; status == STATUS_OK && i < s->operation_count; i++) {
        status = json_item_array(root->input, array, i, TRACE_OPERATION_COLUMNS, &row, err);
        if (status == STATUS_OK)
            status = read_operation(&s->head, root->input, row, &s->operations[i], err);
    }
    return status;
}

/* Takes a long array, which the head has without its elements. */
static enum status read_long_array(struct json_object *root, const char *key, struct error *err)
{
    const json_t *array = NULL;
    enum status status = json_take_array(root, key, JSON_REQUIRED, &array, err);
    if (status != STATUS_OK || json_array_size(array) == 0) return status;
    return json_fail_key(root->input, root->value, key, err, "the key '%s' is written with escapes", key);
}

static enum status read_whole_head(struct trace_reader *s, struct error *err)
{
    struct json_object root;
    const struct json_input *input = json_stream_head(s->json);
    struct trace *trace = &s->head;
    enum status status = json_object_open(&root, input, json_input_root(input), "a trace", err);
    if (status == STATUS_OK) status = read_head(trace, &root, err);
    if (status == STATUS_OK) status = read_streams(trace, &root, err);
    if (status == STATUS_OK) status = read_places(trace, &root, err);
    if (status == STATUS_OK) status = read_jobs(trace, &root, err);
    if (status == STATUS_OK) status = read_operations(s, &root, err);
    if (status == STATUS_OK)
        status = read_columns(&root, "span_columns", trace_span_columns, TRACE_SPAN_COLUMNS, err);
    if (status == STATUS_OK) status = read_long_array(&root, "spans", err);
    if (status == STATUS_OK)
        status = read_columns(&root, "level_columns", trace_level_columns, TRACE_LEVEL_COLUMNS, err);
    if (status == STATUS_OK) status = read_long_array(&root, "levels", err);
    return status == STATUS_OK ? json_object_close(&root, err) : status;
}

/* --- rows ----------------------------------------------------------------------------------- */

/* Returns true when the value is a whole number of at most `max`. */
static bool is_whole(double value, double max)
{
    return value <= max && value == floor(value);
}

/* Opens a row that is an array of `columns`; the caller releases *input, also after an error. */
static enum status open_row(const struct trace_reader *s, const struct json_element *element, size_t columns,
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

static enum status read_span_row(const struct trace_reader *s, const struct json_input *input, struct trace_span *span,
                                 uint32_t *which, struct error *err)
{
    const json_t *row = json_input_root(input);
    enum status status = json_item_u64(input, row, 0, 0, INT64_MAX, &span->number, err);
    if (status == STATUS_OK) status = item_index(input, row, 1, s->operation_count, "operation", which, err);
    if (status == STATUS_OK) status = item_u32(input, row, 2, UINT32_MAX, &span->minibatch, err);
    if (status == STATUS_OK)
        status = json_item_double(input, row, 3, 0, TRACE_TIME_MAX_S, &span->start_s, err);
    if (status == STATUS_OK)
        status = json_item_double(input, row, 4, 0, TRACE_TIME_MAX_S, &span->end_s, err);
    return status;
}

static enum status read_span(const struct trace_reader *s, const struct json_element *element, struct trace_span *span,
                             struct error *err)
{
    double row[TRACE_SPAN_COLUMNS];
    uint32_t which = 0;
    *span = (struct trace_span){0};
    if (json_element_numbers(element, TRACE_SPAN_COLUMNS, row) && is_whole(row[0], 0x1p53) &&
        is_whole(row[1], (double)s->operation_count - 1) && is_whole(row[2], UINT32_MAX) &&
        row[3] <= TRACE_TIME_MAX_S && row[4] <= TRACE_TIME_MAX_S) {
        span->number = (uint64_t)row[0];
        which = (uint32_t)row[1];
        span->minibatch = (uint32_t)row[2];
        span->start_s = row[3];
        span->end_s = row[4];
    } else {
        struct json_input *input = NULL;
        enum status status = open_row(s, element, TRACE_SPAN_COLUMNS, &input, err);
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

static enum status read_level_row(const struct trace_reader *s, const struct json_input *input, struct trace_level *level,
                                  struct error *err)
{
    const json_t *row = json_input_root(input);
    enum status status = json_item_double(input, row, 0, 0, TRACE_TIME_MAX_S, &level->time_s, err);
    if (status == STATUS_OK) status = item_index(input, row, 1, s->head.place_count, "place", &level->place, err);
    if (status == STATUS_OK) status = json_item_u64(input, row, 2, 0, INT64_MAX, &level->bytes, err);
    return status;
}

static enum status read_level(const struct trace_reader *s, const struct json_element *element, struct trace_level *level,
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

/* --- the reader ----------------------------------------------------------------------------- */

/* Adds the file name to the judge's error, which has no other position. */
static enum status judged(const struct trace_reader *s, enum status status, struct error *err)
{
    return status == STATUS_CHECK ? error_add(err, "%s", json_input_name(json_stream_head(s->json))) : status;
}

/* Takes `json` over, also on failure. */
static enum status open_stream(struct json_stream *json, struct trace_reader **out, struct error *err)
{
    struct trace_reader *s = alloc_zeroed(1, sizeof *s);
    if (!s) {
        json_stream_close(json);
        return error_memory(err, "a trace", sizeof *s);
    }
    s->json = json;
    enum status status = read_whole_head(s, err);
    if (status == STATUS_OK) status = judged(s, trace_judge_begin(&s->judge, &s->head, err), err);
    if (status == STATUS_OK) status = json_stream_begin(json, SPANS, err);
    if (status == STATUS_OK) *out = s;
    else trace_reader_close(s);
    return status;
}

enum status trace_reader_open(const char *path, struct trace_reader **out, struct error *err)
{
    struct json_stream *json;
    enum status status = json_stream_open(path, long_arrays, &json, err);
    return status == STATUS_OK ? open_stream(json, out, err) : status;
}

/* Opens a trace in memory. `text` is borrowed, `name` stands for the file name in messages. */
static enum status trace_reader_of_text(const char *name, const char *text, size_t length, struct trace_reader **out,
                                        struct error *err)
{
    struct json_stream *json;
    enum status status = json_stream_of_text(name, text, length, long_arrays, &json, err);
    return status == STATUS_OK ? open_stream(json, out, err) : status;
}

const struct trace *trace_reader_head(const struct trace_reader *reader)
{
    return &reader->head;
}

/* Reads the next span. At the end *more is false and *out untouched. */
static enum status trace_reader_span(struct trace_reader *s, struct trace_span *out, bool *more, struct error *err)
{
    struct json_element element;
    *more = false;
    assert(s->array == SPANS);
    enum status status = json_stream_next(s->json, &element, more, err);
    if (status != STATUS_OK) return status;
    if (!*more) {
        s->array = LEVELS;
        return json_stream_begin(s->json, LEVELS, err);
    }
    status = read_span(s, &element, out, err);
    return status == STATUS_OK ? judged(s, trace_judge_span(&s->judge, out, err), err) : status;
}

/* Reads the next level; only after the last span. */
static enum status trace_reader_level(struct trace_reader *s, struct trace_level *out, bool *more, struct error *err)
{
    struct json_element element;
    *more = false;
    assert(s->array == LEVELS);
    enum status status = json_stream_next(s->json, &element, more, err);
    if (status != STATUS_OK) return status;
    if (!*more) return judged(s, trace_judge_end(&s->judge, err), err);
    status = read_level(s, &element, out, err);
    return status == STATUS_OK ? judged(s, trace_judge_level(&s->judge, out, err), err) : status;
}

enum status trace_reader_finish(struct trace_reader *s, uint64_t *span_count, struct error *err)
{
    struct trace_span span;
    struct trace_level level;
    bool more = s->array == SPANS;
    enum status status = STATUS_OK;
    while (more && status == STATUS_OK) status = trace_reader_span(s, &span, &more, err);
    more = true;
    while (more && status == STATUS_OK) status = trace_reader_level(s, &level, &more, err);
    *span_count = s->judge.span_count;
    return status;
}

void trace_reader_close(struct trace_reader *reader)
{
    if (!reader) return;
    json_stream_close(reader->json);
    trace_judge_release(&reader->judge);
    trace_release(&reader->head);
    arena_release(&reader->arena);
    free(reader);
}

/* --- parts and wholes ----------------------------------------------------------------------- */

/* Spans and levels of a part, in arrays that grow. */
struct gathered {
    struct trace_span *spans;
    struct trace_level *levels;
    size_t span_count, span_capacity, level_count, level_capacity;
    double last_s; /* the last end of a span */
};

static bool span_wanted(const struct trace_part *part, const struct trace_span *span)
{
    if (part->minibatches > 0 && span->minibatch >= part->minibatches) return false;
    return span->end_s >= part->from_s && !(part->to_s > 0 && span->start_s > part->to_s);
}

static enum status gather_spans(struct trace_reader *s, const struct trace_part *part, struct gathered *all,
                                struct error *err)
{
    for (;;) {
        bool more;
        struct trace_span span;
        enum status status = trace_reader_span(s, &span, &more, err);
        if (status != STATUS_OK || !more) return status;
        if (!span_wanted(part, &span)) continue;
        status = array_reserve(&all->spans, &all->span_capacity, all->span_count, sizeof span, TRACE_SPANS_MAX, "spans", err);
        if (status != STATUS_OK) return status;
        all->spans[all->span_count++] = span;
        all->last_s = fmax(all->last_s, span.end_s);
    }
}

static enum status add_level(struct gathered *all, const struct trace_level *level, struct error *err)
{
    enum status status = array_reserve(&all->levels, &all->level_capacity, all->level_count, sizeof *level,
                                       TRACE_LEVELS_MAX, "memory levels", err);
    if (status == STATUS_OK) all->levels[all->level_count++] = *level;
    return status;
}

/* `level` is before the window: of its place, only the last of these is kept, at the end, so that times ascend. */
static void replace_level(struct gathered *all, const struct trace_level *level)
{
    size_t i = 0;
    while (i < all->level_count && all->levels[i].place != level->place) i++;
    if (i == all->level_count) return;
    memmove(&all->levels[i], &all->levels[i + 1], (all->level_count - i - 1) * sizeof *all->levels);
    all->level_count--;
}

/* Levels up to the end of the window, and of the spans that were gathered where minibatches are left out. */
static enum status gather_levels(struct trace_reader *s, const struct trace_part *part, struct gathered *all,
                                 struct error *err)
{
    double to_s = part->to_s > 0 ? part->to_s : TRACE_TIME_MAX_S;
    if (part->minibatches > 0) to_s = fmin(to_s, all->last_s);
    for (;;) {
        bool more;
        struct trace_level level;
        enum status status = trace_reader_level(s, &level, &more, err);
        if (status != STATUS_OK || !more) return status;
        if (level.time_s > to_s && all->level_count > 0) continue;
        if (level.time_s < part->from_s) replace_level(all, &level);
        status = add_level(all, &level, err);
        if (status != STATUS_OK) return status;
    }
}

/* Gives the arena an array that fits; *items stays the caller's on failure. */
static enum status adopt(struct arena *arena, void *items, size_t bytes, struct error *err)
{
    void *array;
    memcpy(&array, items, sizeof array);
    if (bytes == 0) return STATUS_OK;
    void *fitting = alloc_resize(array, bytes);
    if (!fitting) return error_memory(err, "a trace", bytes);
    memcpy(items, &fitting, sizeof fitting);
    return arena_adopt(arena, fitting, bytes, err);
}

/* Hands the arrays over to the trace. */
static enum status keep(struct trace *trace, struct gathered *all, struct error *err)
{
    TRY(adopt(&trace->arena, &all->spans, all->span_count * sizeof *all->spans, err));
    if (all->span_count > 0) {
        trace->spans = all->spans;
        all->spans = NULL;
    }
    trace->span_count = all->span_count;
    TRY(adopt(&trace->arena, &all->levels, all->level_count * sizeof *all->levels, err));
    if (all->level_count > 0) {
        trace->levels = all->levels;
        all->levels = NULL;
    }
    trace->level_count = all->level_count;
    return STATUS_OK;
}

/* Takes the stream over, also on failure. */
static enum status read_part(struct trace_reader *s, const struct trace_part *part, struct trace *out, struct error *err)
{
    struct gathered all = {0};
    enum status status = gather_spans(s, part, &all, err);
    if (status == STATUS_OK) status = gather_levels(s, part, &all, err);
    *out = s->head;
    s->head = (struct trace){0};
    if (status == STATUS_OK) status = keep(out, &all, err);
    free(all.spans);
    free(all.levels);
    trace_reader_close(s);
    return status;
}

enum status trace_read_part(const char *path, const struct trace_part *part, struct trace *out, struct error *err)
{
    struct trace_reader *s;
    enum status status = trace_reader_open(path, &s, err);
    return status == STATUS_OK ? read_part(s, part, out, err) : status;
}

enum status trace_read(const char *path, struct trace *out, struct error *err)
{
    return trace_read_part(path, &(struct trace_part){0}, out, err);
}

enum status trace_parse(const char *name, const char *text, size_t length, struct trace *out, struct error *err)
{
    struct trace_reader *s;
    enum status status = trace_reader_of_text(name, text, length, &s, err);
    return status == STATUS_OK ? read_part(s, &(struct trace_part){0}, out, err) : status;
}
