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
 * A run of a million spans has a few hundred different operations, repeated in every minibatch. Each operation is
 * therefore stored once, in "operations", and a span is five numbers: about 45 bytes instead of 90, and less than
 * half the values for the reader to keep. The stream of an operation tells whether it is a copy; a collective is an
 * operation with bytes on another stream. Columns are named once and must be these; the next version adds columns
 * under another number.
 *
 * Writing makes two passes over the spans: one collects the operations in a hash table, in order
 * of first use (the table decides nothing about the order, so equal traces give equal bytes), one
 * writes. Numbers have the shortest form that reads back to the same double, which makes the round
 * trip exact. A fingerprint is written as 16 hexadecimal digits: JSON integers end at 2^63.
 *
 * Reading: trace_read.c.
 */
#include "traces/trace_format.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json_out.h"
#include "base/random.h"
#include "base/size.h"
#include "base/try.h"
#include "planner/plan.h"

const char *const trace_operation_columns[TRACE_OPERATION_COLUMNS] = {"stream", "job", "shard", "pass", "index", "bytes"};
const char *const trace_span_columns[TRACE_SPAN_COLUMNS] = {"number", "operation", "minibatch", "start_s", "end_s"};
const char *const trace_level_columns[TRACE_LEVEL_COLUMNS] = {"time_s", "place", "bytes"};

/* --- operations: what spans share ----------------------------------------------------------- */

/* Open addressing; cells hold an index into `items` plus one, 0 when free. */
struct operation_table {
    struct arena arena;
    struct trace_operation *items;
    uint32_t *cells;
    uint32_t count;
    uint32_t cell_count; /* a power of two, at least twice the count */
};

static struct trace_operation span_operation(const struct trace_span *span)
{
    return (struct trace_operation){.bytes = span->bytes,
                              .stream = span->stream,
                              .job = span->job,
                              .shard = span->shard,
                              .pass = span->pass,
                              .index = span->op_index};
}

static bool operations_equal(const struct trace_operation *a, const struct trace_operation *b)
{
    return a->bytes == b->bytes && a->stream == b->stream && a->job == b->job &&
           a->shard == b->shard && a->pass == b->pass && a->index == b->index;
}

/* Returns the cell that holds `operation`, or the free cell for it. */
static uint32_t *operation_cell(const struct operation_table *table,
                                const struct trace_operation *operation)
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
    enum status status = ARENA_NEW(&larger.arena, larger.cell_count / 2, larger.items, err);
    if (status == STATUS_OK)
        status = ARENA_NEW(&larger.arena, larger.cell_count, larger.cells, err);
    if (status != STATUS_OK) {
        arena_release(&larger.arena);
        return status;
    }
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
            TRY(operation_table_grow(table, err));
        }
        struct trace_operation operation = span_operation(&trace->spans[i]);
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
    write_names(out, "operation_columns", trace_operation_columns, ARRAY_COUNT(trace_operation_columns));
    json_out_array_begin(out, "operations", false);
    for (uint32_t i = 0; i < table->count; i++) {
        const struct trace_operation *operation = &table->items[i];
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
    write_names(out, "span_columns", trace_span_columns, ARRAY_COUNT(trace_span_columns));
    json_out_array_begin(out, "spans", false);
    for (uint64_t i = 0; i < trace->span_count; i++) {
        const struct trace_span *span = &trace->spans[i];
        struct trace_operation operation = span_operation(span);
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
    write_names(out, "level_columns", trace_level_columns, ARRAY_COUNT(trace_level_columns));
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
