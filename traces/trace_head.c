/* Reads all of a trace file but its spans and levels. Every count is within a limit, every index in range. */
#include "base/try.h"
#include "traces/trace_file.h"

#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "planner/plan.h"

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
    TRY(json_take_u64(object, "spillway_trace", JSON_REQUIRED, 0, INT64_MAX, &version, err));
    if (version < TRACE_VERSION_OLDEST || version > TRACE_VERSION)
        return json_fail_key(object->input, object->value, "spillway_trace", err,
                             "trace version %" PRIu64 " is not known (expected %d to %d)", version,
                             TRACE_VERSION_OLDEST, TRACE_VERSION);
    json_take_any(object, "made_by");
    enum status status = json_take_choice(object, "source", JSON_REQUIRED, trace_source_names,
                                          ARRAY_COUNT(trace_source_names), &source, err);
    trace->source = (uint32_t)source;
    if (status == STATUS_OK) status = read_text(trace, object, "hardware", &trace->hardware, err);
    if (status == STATUS_OK) status = read_text(trace, object, "policy", &trace->policy, err);
    if (status == STATUS_OK) status = json_take_double(object, "load", JSON_OPTIONAL, 0, 1, &trace->load, err);
    if (status == STATUS_OK) status = json_take_double(object, "late", JSON_OPTIONAL, 0, 1, &trace->late, err);
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
        status = json_take_u32(object, "device", JSON_REQUIRED, 0, HARDWARE_DEVICES_MAX - 1,
                               &stream->device, err);
    if (status == STATUS_OK && plan_stream_is_host(stream->kind))
        status = json_take_u32(object, "host", JSON_OPTIONAL, 0, HARDWARE_DEVICES_MAX - 1, &stream->host, err);
    return status;
}

static enum status read_streams(struct trace *trace, struct json_object *root, struct error *err)
{
    const json_t *array = NULL;
    size_t count = 0;
    enum status status = read_list(&trace->arena, root, "streams", HARDWARE_DEVICES_MAX * STREAM_KIND_COUNT,
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
    enum status status = json_take_u32(root, "hosts", JSON_OPTIONAL, 1, HARDWARE_DEVICES_MAX, &hosts, err);
    if (status != STATUS_OK) return status;
    trace->more_hosts = hosts - 1;
    status = read_list(&trace->arena, root, "places", 2 * HARDWARE_DEVICES_MAX, sizeof *trace->places, &array,
                       &trace->places, &count, err);
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
    size_t unit = JOB_TOKENS;
    enum status status = read_text(trace, object, "name", &job->name, err);
    if (status == STATUS_OK)
        status = json_take_u64(object, "tokens", JSON_REQUIRED, 0, INT64_MAX, &job->tokens, err);
    if (status == STATUS_OK)
        status = json_take_u64(object, "samples", JSON_REQUIRED, 0, INT64_MAX, &job->samples, err);
    if (status == STATUS_OK)
        status = json_take_choice(object, "unit", JSON_OPTIONAL, job_unit_names, JOB_UNIT_COUNT, &unit, err);
    job->unit = (uint32_t)unit;
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
    enum status status = read_list(&trace->arena, root, "jobs", JOB_COUNT_MAX, sizeof *trace->jobs, &array,
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

enum status trace_item_u32(const struct json_input *input, const json_t *array, size_t index,
                            uint32_t max, uint32_t *out, struct error *err)
{
    uint64_t value = 0;
    enum status status = json_item_u64(input, array, index, 0, max, &value, err);
    if (status == STATUS_OK) *out = (uint32_t)value;
    return status;
}

enum status trace_item_index(const struct json_input *input, const json_t *array, size_t index,
                              size_t count, const char *what, uint32_t *out, struct error *err)
{
    uint32_t value = 0;
    TRY(trace_item_u32(input, array, index, UINT32_MAX, &value, err));
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
    enum status status = trace_item_index(input, row, 0, trace->stream_count, "stream",
                                    &operation->stream, err);
    if (status == STATUS_OK)
        status = trace_item_index(input, row, 1, trace->job_count, "job", &operation->job, err);
    if (status == STATUS_OK)
        status = trace_item_u32(input, row, 2, UINT32_MAX, &operation->shard, err);
    if (status == STATUS_OK) status = item_pass(input, row, 3, &operation->pass, err);
    if (status == STATUS_OK) status = trace_item_u32(input, row, 4, UINT8_MAX, &index, err);
    operation->index = (uint8_t)index;
    if (status == STATUS_OK)
        status = json_item_u64(input, row, 5, 0, INT64_MAX, &operation->bytes, err);
    return status;
}

static enum status read_operations(struct trace_file *s, struct json_object *root, struct error *err)
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

/* Reads the columns of spans, the last of which may be missing. */
static enum status read_span_columns(struct trace *trace, struct json_object *root, struct error *err)
{
    trace->has_waits = json_array_size(json_object_get(root->value, "span_columns")) == TRACE_SPAN_COLUMNS;
    return read_columns(root, "span_columns", trace_span_columns, trace_span_column_count(trace), err);
}

/* Reads the index of version 2, which may be missing. */
static enum status read_index(struct json_object *root, struct error *err)
{
    static const struct {
        const char *key;
        const char *const *names;
        size_t count;
    } columns[] = {{"span_block_columns", trace_span_block_columns, TRACE_SPAN_BLOCK_COLUMNS},
                   {"level_block_columns", trace_level_block_columns, TRACE_LEVEL_BLOCK_COLUMNS},
                   {"place_columns", trace_place_columns, TRACE_PLACE_COLUMNS}};
    const json_t *array = NULL;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < ARRAY_COUNT(columns) && status == STATUS_OK; i++)
        if (json_has(root, columns[i].key))
            status = read_columns(root, columns[i].key, columns[i].names, columns[i].count, err);
    if (status == STATUS_OK && json_has(root, "span_blocks")) status = read_long_array(root, "span_blocks", err);
    if (status == STATUS_OK && json_has(root, "level_blocks")) status = read_long_array(root, "level_blocks", err);
    return status == STATUS_OK ? json_take_array(root, "ends", JSON_OPTIONAL, &array, err) : status;
}

enum status trace_file_read_head(struct trace_file *s, struct error *err)
{
    struct json_object root;
    const struct json_input *input = json_stream_head(s->json);
    struct trace *trace = &s->head;
    TRY(json_object_open(&root, input, json_input_root(input), "a trace", err));
    TRY(read_head(trace, &root, err));
    TRY(read_streams(trace, &root, err));
    TRY(read_places(trace, &root, err));
    TRY(read_jobs(trace, &root, err));
    TRY(read_operations(s, &root, err));
    TRY(read_span_columns(trace, &root, err));
    TRY(read_long_array(&root, "spans", err));
    TRY(read_columns(&root, "level_columns", trace_level_columns, TRACE_LEVEL_COLUMNS, err));
    TRY(read_long_array(&root, "levels", err));
    TRY(read_index(&root, err));
    return json_object_close(&root, err);
}
