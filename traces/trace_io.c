/*
 * A trace as a file.
 *
 *     {"spillway_trace": 1, "source": "predicted", ...,
 *      "streams": [{"name": "gpu0 compute", "device": 0, "kind": "compute"}, ...],
 *      "operation_columns": ["stream", "job", "shard", "pass", "index", "bytes"],
 *      "operations": [[0, 0, 3, "forward", 1, 0], ...],
 *      "span_columns": ["number", "operation", "minibatch", "start_s", "end_s"],
 *      "spans": [[0, 0, 0, 0.25, 0.4375], ...], ...}
 *
 * A run of a million spans has a few hundred different operations, repeated in every minibatch, so
 * what repeats is stored once, in "operations", and a span is five numbers: about 45 bytes instead
 * of 90, and less than half the values for the reader to keep. Whether an operation is a copy
 * follows from its stream; a collective is one on another stream that has bytes. Columns are named once and must be these; the next version adds to them
 * under another number.
 *
 * Writing makes two passes over the spans: one collects the operations in a hash table, in order
 * of first use (the table decides nothing about the order, so equal traces give equal bytes), one
 * writes. Numbers have the shortest form that reads back to the same double, which makes the round
 * trip exact. A fingerprint is written as 16 hexadecimal digits: JSON integers end at 2^63.
 *
 * Reading trusts nothing: every index is in range before it is used, every count is within a
 * limit, and the result passes trace_check() before a caller sees it.
 */
#include "traces/trace.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/random.h"
#include "base/size.h"
#include "planner/plan.h"

static const char *const operation_columns[] = {"stream", "job", "shard", "pass", "index", "bytes"};
static const char *const span_columns[] = {"number", "operation", "minibatch", "start_s", "end_s"};
static const char *const level_columns[] = {"time_s", "place", "bytes"};

/* --- operations: what spans share ----------------------------------------------------------- */

struct operation {
    uint64_t bytes;
    uint32_t stream, job, shard;
    uint8_t pass, index;
};

/* Open addressing; cells hold an index into `items` plus one, 0 when free. */
struct operation_table {
    struct arena arena;
    struct operation *items;
    uint32_t *cells;
    uint32_t count;
    uint32_t cell_count; /* a power of two, at least twice the count */
};

static struct operation span_operation(const struct trace_span *span)
{
    return (struct operation){.bytes = span->bytes,
                              .stream = span->stream,
                              .job = span->job,
                              .shard = span->shard,
                              .pass = span->pass,
                              .index = span->op_index};
}

static bool operations_equal(const struct operation *a, const struct operation *b)
{
    return a->bytes == b->bytes && a->stream == b->stream && a->job == b->job &&
           a->shard == b->shard && a->pass == b->pass && a->index == b->index;
}

/* The cell that holds `operation`, or the free one where it belongs. */
static uint32_t *operation_cell(const struct operation_table *table,
                                const struct operation *operation)
{
    uint64_t names = (uint64_t)operation->job << 32 | operation->shard;
    uint64_t rest = (uint64_t)operation->stream << 16 | (uint64_t)operation->pass << 8 |
                    operation->index;
    uint64_t hash = random_u64(names ^ random_mix(operation->bytes), rest);
    uint32_t mask = table->cell_count - 1;
    for (uint32_t i = (uint32_t)hash & mask;; i = (i + 1) & mask) {
        uint32_t item = table->cells[i];
        if (item == 0 || operations_equal(&table->items[item - 1], operation))
            return &table->cells[i];
    }
}

static enum status operation_table_grow(struct operation_table *table, struct error *err)
{
    struct operation_table larger = {.count = table->count,
                                     .cell_count = table->cell_count ? table->cell_count * 2 : 1024};
    void *items, *cells;
    enum status status = arena_array(&larger.arena, larger.cell_count / 2, sizeof *table->items,
                                     &items, err);
    if (status == STATUS_OK)
        status = arena_array(&larger.arena, larger.cell_count, sizeof *table->cells, &cells, err);
    if (status != STATUS_OK) {
        arena_release(&larger.arena);
        return status;
    }
    larger.items = items;
    larger.cells = cells;
    for (uint32_t i = 0; i < table->count; i++) {
        larger.items[i] = table->items[i];
        *operation_cell(&larger, &table->items[i]) = i + 1;
    }
    arena_release(&table->arena);
    *table = larger;
    return STATUS_OK;
}

static enum status operation_table_fill(struct operation_table *table, const struct trace *trace,
                                        struct error *err)
{
    for (uint64_t i = 0; i < trace->span_count; i++) {
        if (table->count >= table->cell_count / 2) {
            enum status status = operation_table_grow(table, err);
            if (status != STATUS_OK) return status;
        }
        struct operation operation = span_operation(&trace->spans[i]);
        uint32_t *cell = operation_cell(table, &operation);
        if (*cell != 0) continue;
        table->items[table->count++] = operation;
        *cell = table->count;
    }
    return STATUS_OK;
}

/* --- writing -------------------------------------------------------------------------------- */

static void write_names(struct json_out *out, const char *key, const char *const *names,
                        size_t count)
{
    json_out_array_begin(out, key, true);
    for (size_t i = 0; i < count; i++) json_out_string(out, NULL, names[i]);
    json_out_array_end(out);
}

static void write_head(const struct trace *trace, struct json_out *out)
{
    char fingerprint[17];
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, trace->plan_fingerprint);
    json_out_u64(out, "spillway_trace", TRACE_VERSION);
    json_out_string(out, "made_by", "spillway " SPILLWAY_VERSION);
    json_out_string(out, "source", trace_source_names[trace->source]);
    json_out_string(out, "hardware", trace->hardware);
    json_out_string(out, "policy", trace->policy);
    if (trace->load > 0) json_out_double(out, "load", trace->load);
    json_out_string(out, "plan", fingerprint);
    json_out_bool(out, "complete", trace->complete);
    json_out_double(out, "makespan_s", trace->makespan_s);
}

static void write_tables(const struct trace *trace, struct json_out *out)
{
    json_out_array_begin(out, "streams", false);
    for (uint32_t i = 0; i < trace->stream_count; i++) {
        const struct trace_stream *stream = &trace->streams[i];
        json_out_object_begin(out, NULL, true);
        json_out_string(out, "name", stream->name);
        if (!plan_stream_is_host(stream->kind)) json_out_u64(out, "device", stream->device);
        if (stream->host > 0) json_out_u64(out, "host", stream->host);
        json_out_string(out, "kind", plan_stream_names[stream->kind]);
        json_out_object_end(out);
    }
    json_out_array_end(out);
    if (trace->more_hosts > 0) json_out_u64(out, "hosts", trace->more_hosts + 1);
    json_out_array_begin(out, "places", false);
    for (uint32_t i = 0; i < trace->place_count; i++) {
        const struct trace_place *place = &trace->places[i];
        json_out_object_begin(out, NULL, true);
        json_out_string(out, "name", place->name);
        json_out_u64(out, "capacity_bytes", place->capacity_bytes);
        json_out_u64(out, "peak_bytes", place->peak_bytes);
        json_out_double(out, "peak_time_s", place->peak_time_s);
        json_out_object_end(out);
    }
    json_out_array_end(out);
    json_out_array_begin(out, "jobs", false);
    for (uint32_t i = 0; i < trace->job_count; i++) {
        const struct trace_job *job = &trace->jobs[i];
        json_out_object_begin(out, NULL, true);
        json_out_string(out, "name", job->name);
        json_out_u64(out, "tokens", job->tokens);
        json_out_u64(out, "samples", job->samples);
        json_out_u64(out, "minibatches", job->minibatches);
        json_out_double(out, "start_s", job->start_s);
        json_out_double(out, "end_s", job->end_s);
        if (job->has_loss) json_out_double(out, "final_loss", job->final_loss);
        json_out_object_end(out);
    }
    json_out_array_end(out);
}

static void write_operations(const struct operation_table *table, struct json_out *out)
{
    write_names(out, "operation_columns", operation_columns, ARRAY_COUNT(operation_columns));
    json_out_array_begin(out, "operations", false);
    for (uint32_t i = 0; i < table->count; i++) {
        const struct operation *operation = &table->items[i];
        json_out_array_begin(out, NULL, true);
        json_out_u64(out, NULL, operation->stream);
        json_out_u64(out, NULL, operation->job);
        json_out_u64(out, NULL, operation->shard);
        json_out_string(out, NULL, plan_pass_names[operation->pass]);
        json_out_u64(out, NULL, operation->index);
        json_out_u64(out, NULL, operation->bytes);
        json_out_array_end(out);
    }
    json_out_array_end(out);
}

static void write_spans(const struct trace *trace, const struct operation_table *table,
                        struct json_out *out)
{
    write_names(out, "span_columns", span_columns, ARRAY_COUNT(span_columns));
    json_out_array_begin(out, "spans", false);
    for (uint64_t i = 0; i < trace->span_count; i++) {
        const struct trace_span *span = &trace->spans[i];
        struct operation operation = span_operation(span);
        uint32_t cell = *operation_cell(table, &operation);
        assert(cell > 0);
        json_out_array_begin(out, NULL, true);
        json_out_u64(out, NULL, span->number);
        json_out_u64(out, NULL, cell - 1);
        json_out_u64(out, NULL, span->minibatch);
        json_out_double(out, NULL, span->start_s);
        json_out_double(out, NULL, span->end_s);
        json_out_array_end(out);
    }
    json_out_array_end(out);
}

static void write_levels(const struct trace *trace, struct json_out *out)
{
    write_names(out, "level_columns", level_columns, ARRAY_COUNT(level_columns));
    json_out_array_begin(out, "levels", false);
    for (uint64_t i = 0; i < trace->level_count; i++) {
        json_out_array_begin(out, NULL, true);
        json_out_double(out, NULL, trace->levels[i].time_s);
        json_out_u64(out, NULL, trace->levels[i].place);
        json_out_u64(out, NULL, trace->levels[i].bytes);
        json_out_array_end(out);
    }
    json_out_array_end(out);
}

enum status trace_write(const struct trace *trace, const char *path, struct error *err)
{
    struct operation_table table = {0};
    struct json_file file;
    enum status status = trace_check(trace, err);
    if (status != STATUS_OK) {
        status = error_add(err, "the trace for '%s'", path);
        goto out;
    }
    status = operation_table_fill(&table, trace, err);
    if (status != STATUS_OK) goto out;
    status = json_file_begin(&file, path, "writing a trace", err);
    if (status != STATUS_OK) goto out;
    json_out_object_begin(file.out, NULL, false);
    write_head(trace, file.out);
    write_tables(trace, file.out);
    write_operations(&table, file.out);
    write_spans(trace, &table, file.out);
    write_levels(trace, file.out);
    json_out_object_end(file.out);
    status = json_file_end(&file, err);
out:
    arena_release(&table.arena);
    return status;
}

/* --- reading -------------------------------------------------------------------------------- */

/* A text that lives as long as the trace. */
static enum status take_text(struct trace *trace, struct json_object *object, const char *key,
                             const char **out, struct error *err)
{
    const char *text = NULL;
    enum status status = json_take_string(object, key, JSON_REQUIRED, &text, err);
    if (status != STATUS_OK) return status;
    return arena_string(&trace->arena, text, out, err);
}

static enum status take_fingerprint(struct json_object *object, uint64_t *out, struct error *err)
{
    const char *text = NULL;
    enum status status = json_take_string(object, "plan", JSON_REQUIRED, &text, err);
    if (status != STATUS_OK) return status;
    uint64_t value = 0;
    if (strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        return json_fail_key(object->input, object->value, "plan", err,
                             "'%s' is not the fingerprint of a plan (16 hexadecimal digits)", text);
    for (const char *c = text; *c; c++)
        value = value << 4 | (uint64_t)(*c <= '9' ? *c - '0' : *c - 'a' + 10);
    *out = value;
    return STATUS_OK;
}

/* An array of at most `limit` elements; *out_count entries of `size` bytes for them in *out. */
static enum status take_list(struct trace *trace, struct json_object *object, const char *key,
                             size_t limit, size_t size, const json_t **array, void **out,
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
    status = arena_array(&trace->arena, count, size, out, err);
    if (status == STATUS_OK) *out_count = count;
    return status;
}

static enum status take_columns(struct json_object *object, const char *key,
                                const char *const *names, size_t count, struct error *err)
{
    const json_t *array = NULL;
    enum status status = json_take_array(object, key, JSON_REQUIRED, &array, err);
    if (status != STATUS_OK) return status;
    if (json_array_size(array) != count)
        return json_fail_key(object->input, object->value, key, err,
                             "'%s' has %zu columns (expected %zu)", key, json_array_size(array),
                             count);
    for (size_t i = 0; i < count; i++) {
        const char *name = NULL;
        status = json_item_string(object->input, array, i, &name, err);
        if (status != STATUS_OK) return status;
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
    if (status == STATUS_OK) status = take_text(trace, object, "hardware", &trace->hardware, err);
    if (status == STATUS_OK) status = take_text(trace, object, "policy", &trace->policy, err);
    if (status == STATUS_OK) status = json_take_double(object, "load", JSON_OPTIONAL, 0, 1, &trace->load, err);
    if (status == STATUS_OK) status = take_fingerprint(object, &trace->plan_fingerprint, err);
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
    enum status status = take_text(trace, object, "name", &stream->name, err);
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
    void *memory = NULL;
    size_t count = 0;
    enum status status = take_list(trace, root, "streams", DEVICES_MAX * STREAM_KIND_COUNT,
                                   sizeof *trace->streams, &array, &memory, &count, err);
    trace->streams = memory;
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
    void *memory = NULL;
    size_t count = 0;
    uint32_t hosts = 1;
    enum status status = json_take_u32(root, "hosts", JSON_OPTIONAL, 1, DEVICES_MAX, &hosts, err);
    if (status != STATUS_OK) return status;
    trace->more_hosts = hosts - 1;
    status = take_list(trace, root, "places", 2 * DEVICES_MAX, sizeof *trace->places, &array, &memory, &count, err);
    trace->places = memory;
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        struct json_object object;
        struct trace_place *place = &trace->places[i];
        status = json_object_open_at(&object, root->input, array, i, "a place", err);
        if (status == STATUS_OK) status = take_text(trace, &object, "name", &place->name, err);
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
    enum status status = take_text(trace, object, "name", &job->name, err);
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
    void *memory = NULL;
    size_t count = 0;
    enum status status = take_list(trace, root, "jobs", JOBS_MAX, sizeof *trace->jobs, &array,
                                   &memory, &count, err);
    trace->jobs = memory;
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

/* An index into a table of `count` entries called `what`. */
static enum status item_index(const struct json_input *input, const json_t *array, size_t index,
                              size_t count, const char *what, uint32_t *out, struct error *err)
{
    uint32_t value = 0;
    enum status status = item_u32(input, array, index, UINT32_MAX, &value, err);
    if (status != STATUS_OK) return status;
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
    enum status status = json_item_string(input, array, index, &name, err);
    if (status != STATUS_OK) return status;
    for (uint8_t pass = 0; pass < PLAN_PASS_COUNT; pass++)
        if (strcmp(name, plan_pass_names[pass]) == 0) {
            *out = pass;
            return STATUS_OK;
        }
    return json_fail_index(input, array, index, err, "unknown pass '%s'", name);
}

static enum status read_operation(const struct trace *trace, const struct json_input *input,
                                  const json_t *row, struct operation *operation,
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

static enum status read_operations(struct trace *trace, struct json_object *root,
                                   struct operation **out, size_t *out_count, struct error *err)
{
    const json_t *array = NULL, *row = NULL;
    void *memory = NULL;
    enum status status = take_columns(root, "operation_columns", operation_columns,
                                      ARRAY_COUNT(operation_columns), err);
    if (status == STATUS_OK)
        status = take_list(trace, root, "operations", TRACE_SPANS_MAX, sizeof **out, &array,
                           &memory, out_count, err);
    *out = memory;
    for (size_t i = 0; status == STATUS_OK && i < *out_count; i++) {
        status = json_item_array(root->input, array, i, ARRAY_COUNT(operation_columns), &row, err);
        if (status == STATUS_OK)
            status = read_operation(trace, root->input, row, &(*out)[i], err);
    }
    return status;
}

static enum status read_span(const struct trace *trace, const struct json_input *input,
                             const json_t *row, const struct operation *operations,
                             size_t operation_count, struct trace_span *span, struct error *err)
{
    uint32_t which = 0;
    enum status status = json_item_u64(input, row, 0, 0, INT64_MAX, &span->number, err);
    if (status == STATUS_OK)
        status = item_index(input, row, 1, operation_count, "operation", &which, err);
    if (status == STATUS_OK) status = item_u32(input, row, 2, UINT32_MAX, &span->minibatch, err);
    if (status == STATUS_OK)
        status = json_item_double(input, row, 3, 0, TRACE_TIME_MAX_S, &span->start_s, err);
    if (status == STATUS_OK)
        status = json_item_double(input, row, 4, 0, TRACE_TIME_MAX_S, &span->end_s, err);
    if (status != STATUS_OK) return status;
    const struct operation *operation = &operations[which];
    uint32_t stream_kind = trace->streams[operation->stream].kind;
    span->stream = operation->stream;
    span->job = operation->job;
    span->shard = operation->shard;
    span->pass = operation->pass;
    span->op_index = operation->index;
    span->bytes = operation->bytes;
    span->kind = plan_stream_copies(stream_kind) ? OP_COPY : span->bytes > 0 ? OP_COLLECTIVE : OP_COMPUTE;
    return STATUS_OK;
}

static enum status read_spans(struct trace *trace, struct json_object *root, struct error *err)
{
    const json_t *array = NULL, *row = NULL;
    struct operation *operations = NULL;
    size_t operation_count = 0, count = 0;
    void *memory = NULL;
    enum status status = read_operations(trace, root, &operations, &operation_count, err);
    if (status == STATUS_OK)
        status = take_columns(root, "span_columns", span_columns, ARRAY_COUNT(span_columns), err);
    if (status == STATUS_OK)
        status = take_list(trace, root, "spans", TRACE_SPANS_MAX, sizeof *trace->spans, &array,
                           &memory, &count, err);
    trace->spans = memory;
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        status = json_item_array(root->input, array, i, ARRAY_COUNT(span_columns), &row, err);
        if (status == STATUS_OK)
            status = read_span(trace, root->input, row, operations, operation_count,
                               &trace->spans[i], err);
    }
    trace->span_count = count;
    return status;
}

static enum status read_levels(struct trace *trace, struct json_object *root, struct error *err)
{
    const struct json_input *input = root->input;
    const json_t *array = NULL, *row = NULL;
    void *memory = NULL;
    size_t count = 0;
    enum status status = take_columns(root, "level_columns", level_columns,
                                      ARRAY_COUNT(level_columns), err);
    if (status == STATUS_OK)
        status = take_list(trace, root, "levels", TRACE_LEVELS_MAX, sizeof *trace->levels, &array,
                           &memory, &count, err);
    trace->levels = memory;
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        struct trace_level *level = &trace->levels[i];
        status = json_item_array(input, array, i, ARRAY_COUNT(level_columns), &row, err);
        if (status == STATUS_OK)
            status = json_item_double(input, row, 0, 0, TRACE_TIME_MAX_S, &level->time_s, err);
        if (status == STATUS_OK)
            status = item_index(input, row, 1, trace->place_count, "place", &level->place, err);
        if (status == STATUS_OK)
            status = json_item_u64(input, row, 2, 0, INT64_MAX, &level->bytes, err);
    }
    trace->level_count = count;
    return status;
}

static enum status read_trace(const struct json_input *input, struct trace *trace,
                              struct error *err)
{
    struct json_object root;
    enum status status = json_object_open(&root, input, json_input_root(input), "a trace", err);
    if (status == STATUS_OK) status = read_head(trace, &root, err);
    if (status == STATUS_OK) status = read_streams(trace, &root, err);
    if (status == STATUS_OK) status = read_places(trace, &root, err);
    if (status == STATUS_OK) status = read_jobs(trace, &root, err);
    if (status == STATUS_OK) status = read_spans(trace, &root, err);
    if (status == STATUS_OK) status = read_levels(trace, &root, err);
    if (status == STATUS_OK) status = json_object_close(&root, err);
    if (status != STATUS_OK) return status;
    status = trace_check(trace, err);
    if (status != STATUS_OK) error_add(err, "%s", json_input_name(input));
    return status;
}

enum status trace_read(const char *path, struct trace *out, struct error *err)
{
    struct json_input *input = NULL;
    enum status status = json_input_read(path, &input, err);
    if (status == STATUS_OK) status = read_trace(input, out, err);
    json_input_destroy(input);
    return status;
}

enum status trace_parse(const char *name, const char *text, size_t length, struct trace *out,
                        struct error *err)
{
    struct json_input *input = NULL;
    enum status status = json_input_parse(name, text, length, &input, err);
    if (status == STATUS_OK) status = read_trace(input, out, err);
    json_input_destroy(input);
    return status;
}
