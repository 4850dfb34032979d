/*
 * A trace as a file.
 *
 *     {"spillway_trace": 3, "made_by": ..., "source": "predicted",
 *      "span_columns": ["number", "operation", "minibatch", "start_s", "end_s", "waited_s"],
 *      "spans": [[0, 0, 0, 0.25, 0.4375, 0], ...],
 *      "level_columns": ["time_s", "place", "bytes"],
 *      "levels": [[0.25, 1, 4096], ...],
 *      "hardware": ..., "complete": true, "makespan_s": 5,
 *      "streams": [{"name": "gpu0 compute", "device": 0, "kind": "compute"}, ...],
 *      "places": [...], "jobs": [...],
 *      "operation_columns": ["stream", "job", "shard", "pass", "index", "bytes"],
 *      "operations": [[0, 0, 3, "forward", 1, 0], ...],
 *      "span_blocks": [...], "level_blocks": [...], "ends": [...]}
 *
 * Values that are known only when the run ends stand after the spans. An operation that is repeated in every minibatch
 * is stored once, in "operations", and a span is five numbers, or six: about 45 bytes. Whether an operation is a copy
 * follows from its stream; a collective is one on another stream that has bytes. The blocks are the index
 * (trace_index.h).
 *
 * Levels come while spans come, but stand after them, so they are kept in a spool, as are the rows of the index.
 * Numbers have the shortest form that reads back to the same double, so the round trip is exact. A fingerprint is
 * written as 16 hexadecimal digits: JSON integers end at 2^63.
 *
 * Only traces with waits have the column "waited_s". The others are files of version 2, which older programs read.
 * Version 1 had "operations" before "spans" and no index. Reading: trace_read.c.
 */
#include "traces/trace_writer.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files/spool.h"
#include "base/json/json_out.h"
#include "base/size.h"
#include "base/try.h"
#include "planner/plan.h"
#include "traces/trace_format.h"
#include "traces/trace_index.h"
#include "traces/trace_judge.h"
#include "traces/trace_operations.h"

const char *const trace_operation_columns[TRACE_OPERATION_COLUMNS] = {"stream", "job",   "shard",
                                                                      "pass",   "index", "bytes"};
const char *const trace_span_columns[TRACE_SPAN_COLUMNS] = {"number", "operation", "minibatch", "start_s",
                                                               "end_s", "waited_s"};
const char *const trace_level_columns[TRACE_LEVEL_COLUMNS] = {"time_s", "place", "bytes"};

/* The highest level of a place, which must not be above the peak. */
struct highest {
    uint64_t bytes, index;
};

struct trace_writer {
    char *path; /* for messages */
    struct json_file file;
    bool open;         /* `file` is */
    struct trace head; /* of the judge: peaks are not known yet */
    struct arena arena;
    struct trace_judge judge;
    struct highest *highest; /* by place */
    struct trace_operations operations;
    struct spool *levels, *span_blocks, *level_blocks;
    struct trace_span_block block; /* of the span that came last */
    uint64_t block_spans;
    struct trace_ends ends;
    struct error err; /* the first */
};

/* --- opening -------------------------------------------------------------------------------- */

static enum status create_parts(struct trace_writer *writer, const char *path, struct error *err)
{
    const size_t bytes = strlen(path) + 1;
    writer->path = alloc_zeroed(1, bytes);
    if (!writer->path) return error_memory(err, "writing a trace", bytes);
    memcpy(writer->path, path, bytes);
    enum status status = spool_create(path, &writer->levels, err);
    if (status == STATUS_OK) status = spool_create(path, &writer->span_blocks, err);
    if (status == STATUS_OK) status = spool_create(path, &writer->level_blocks, err);
    if (status == STATUS_OK) status = json_file_begin(&writer->file, path, "writing a trace", err);
    writer->open = status == STATUS_OK;
    return status;
}

enum status trace_writer_create(const char *path, struct trace_writer **out, struct error *err)
{
    struct trace_writer *writer = alloc_zeroed(1, sizeof *writer);
    if (!writer) return error_memory(err, "writing a trace", sizeof *writer);
    enum status status = create_parts(writer, path, err);
    if (status == STATUS_OK) *out = writer;
    else trace_writer_discard(writer);
    return status;
}

void trace_writer_discard(struct trace_writer *writer)
{
    if (!writer) return;
    if (writer->open) json_file_discard(&writer->file);
    trace_judge_release(&writer->judge);
    trace_operations_release(&writer->operations);
    arena_release(&writer->arena);
    spool_destroy(writer->levels);
    spool_destroy(writer->span_blocks);
    spool_destroy(writer->level_blocks);
    free(writer->path);
    free(writer);
}

static void write_names(struct json_out *out, const char *key, const char *const *names,
                        size_t count)
{
    json_out_array_begin(out, key, true);
    for (size_t i = 0; i < count; i++) json_out_string(out, NULL, names[i]);
    json_out_array_end(out);
}

/* The judge's trace has no peaks: they are compared at the end. */
static enum status begin_judge(struct trace_writer *writer, const struct trace *trace, struct error *err)
{
    writer->head = *trace;
    writer->head.arena = (struct arena){0};
    TRY(ARENA_NEW(&writer->arena, trace->place_count, writer->head.places, err));
    TRY(ARENA_NEW(&writer->arena, trace->place_count, writer->highest, err));
    for (uint32_t p = 0; p < trace->place_count; p++)
        writer->head.places[p] = (struct trace_place){.name = trace->places[p].name, .peak_bytes = UINT64_MAX};
    return trace_judge_begin(&writer->judge, &writer->head, err);
}

enum status trace_writer_begin(struct trace_writer *writer, const struct trace *trace, struct error *err)
{
    struct json_out *out = writer->file.out;
    TRY(begin_judge(writer, trace, err));
    json_out_object_begin(out, NULL, false);
    json_out_u64(out, "spillway_trace", trace->has_waits ? TRACE_VERSION : TRACE_VERSION - 1);
    json_out_string(out, "made_by", "spillway " SPILLWAY_VERSION);
    json_out_string(out, "source", trace_source_names[trace->source]);
    write_names(out, "span_columns", trace_span_columns, trace_span_column_count(trace));
    json_out_array_begin(out, "spans", false);
    return STATUS_OK;
}

/* --- spans ---------------------------------------------------------------------------------- */

static void end_span_block(struct trace_writer *writer)
{
    if (writer->block_spans > 0) spool_write(writer->span_blocks, &writer->block, sizeof writer->block);
    writer->block_spans = 0;
}

static void count_in_block(struct trace_writer *writer, const struct trace_span *span)
{
    struct trace_span_block *block = &writer->block;
    if (writer->block_spans == TRACE_BLOCK_SPANS) end_span_block(writer);
    if (writer->block_spans++ == 0) {
        *block = (struct trace_span_block){.first = writer->judge.span_count - 1,
                                           .at = json_out_place(writer->file.out),
                                           .from_s = span->start_s,
                                           .to_s = span->end_s,
                                           .minibatch = span->minibatch};
        return;
    }
    if (span->start_s < block->from_s) block->from_s = span->start_s;
    if (span->end_s > block->to_s) block->to_s = span->end_s;
    if (span->minibatch < block->minibatch) block->minibatch = span->minibatch;
}

void trace_writer_span(struct trace_writer *writer, const struct trace_span *span)
{
    struct json_out *out = writer->file.out;
    uint32_t operation;
    if (writer->err.status != STATUS_OK) return;
    if (trace_judge_span(&writer->judge, span, &writer->err) != STATUS_OK) return;
    if (trace_operations_find(&writer->operations, span, &operation, &writer->err) != STATUS_OK) return;
    count_in_block(writer, span);
    json_out_array_begin(out, NULL, true);
    json_out_u64(out, NULL, span->number);
    json_out_u64(out, NULL, operation);
    json_out_u64(out, NULL, span->minibatch);
    json_out_double(out, NULL, span->start_s);
    json_out_double(out, NULL, span->end_s);
    if (writer->head.has_waits) json_out_double(out, NULL, span->waited_s);
    json_out_array_end(out);
}

/* --- levels --------------------------------------------------------------------------------- */

void trace_writer_level(struct trace_writer *writer, const struct trace_level *level)
{
    uint64_t index = writer->judge.level_count;
    if (writer->err.status != STATUS_OK) return;
    if (trace_judge_level(&writer->judge, level, &writer->err) != STATUS_OK) return;
    struct highest *highest = &writer->highest[level->place];
    if (level->bytes > highest->bytes) *highest = (struct highest){.bytes = level->bytes, .index = index};
    spool_write(writer->levels, level, sizeof *level);
}

/* A row of the index in the spool: the block, then what each place holds. */
static void begin_level_block(struct trace_writer *writer, uint64_t first, double time_s, const struct trace_held *held)
{
    const struct trace_level_block block = {.first = first, .at = json_out_place(writer->file.out), .time_s = time_s};
    spool_write(writer->level_blocks, &block, sizeof block);
    spool_write(writer->level_blocks, held, writer->head.place_count * sizeof *held);
}

static enum status write_levels(struct trace_writer *writer, struct error *err)
{
    enum { LEVELS_AT_ONCE = 512 };
    struct trace_level levels[LEVELS_AT_ONCE];
    struct json_out *out = writer->file.out;
    const uint64_t count = writer->judge.level_count, by_block = trace_block_levels(writer->head.place_count);
    struct trace_held *held = NULL;
    enum status status = ARENA_NEW(&writer->arena, writer->head.place_count, held, err);
    write_names(out, "level_columns", trace_level_columns, ARRAY_COUNT(trace_level_columns));
    json_out_array_begin(out, "levels", false);
    for (uint64_t i = 0; i < count && status == STATUS_OK; i++) {
        const struct trace_level *level = &levels[i % LEVELS_AT_ONCE];
        if (i % LEVELS_AT_ONCE == 0) {
            uint64_t part = count - i < LEVELS_AT_ONCE ? count - i : LEVELS_AT_ONCE;
            status = spool_read(writer->levels, i * sizeof *level, levels, part * sizeof *level, err);
            if (status != STATUS_OK) break;
        }
        if (i % by_block == 0) begin_level_block(writer, i, level->time_s, held);
        held[level->place] = (struct trace_held){.next = i + 1, .time_s = level->time_s, .bytes = level->bytes};
        json_out_array_begin(out, NULL, true);
        json_out_double(out, NULL, level->time_s);
        json_out_u64(out, NULL, level->place);
        json_out_u64(out, NULL, level->bytes);
        json_out_array_end(out);
    }
    writer->ends.arrays[TRACE_LEVELS] = (struct trace_end){.count = count, .at = json_out_place(out)};
    json_out_array_end(out);
    return status;
}

/* --- the end of the file -------------------------------------------------------------------- */

static void write_run(const struct trace *trace, struct json_out *out)
{
    char fingerprint[17];
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, trace->plan_fingerprint);
    json_out_string(out, "hardware", trace->hardware);
    json_out_string(out, "policy", trace->policy);
    if (trace->load > 0) json_out_double(out, "load", trace->load);
    if (trace->late > 0) json_out_double(out, "late", trace->late);
    json_out_string(out, "plan", fingerprint);
    json_out_bool(out, "complete", trace->complete);
    json_out_double(out, "makespan_s", trace->makespan_s);
}

void trace_writer_places(const struct trace *trace, struct json_out *out)
{
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
    trace_writer_places(trace, out);
}

static void write_jobs(const struct trace *trace, struct json_out *out)
{
    json_out_array_begin(out, "jobs", false);
    for (uint32_t i = 0; i < trace->job_count; i++) {
        const struct trace_job *job = &trace->jobs[i];
        json_out_object_begin(out, NULL, true);
        json_out_string(out, "name", job->name);
        json_out_u64(out, "tokens", job->tokens);
        json_out_u64(out, "samples", job->samples);
        if (job->unit != JOB_TOKENS) json_out_string(out, "unit", job_unit_names[job->unit]);
        json_out_u64(out, "minibatches", job->minibatches);
        json_out_double(out, "start_s", job->start_s);
        json_out_double(out, "end_s", job->end_s);
        if (job->has_loss) json_out_double(out, "final_loss", job->final_loss);
        json_out_object_end(out);
    }
    json_out_array_end(out);
}

static void write_operations(const struct trace_operations *table, struct json_out *out)
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

/* --- the index ------------------------------------------------------------------------------ */

static void write_block(struct json_out *out, uint64_t first, const struct file_place *at)
{
    json_out_u64(out, NULL, first);
    json_out_u64(out, NULL, at->text);
    json_out_u64(out, NULL, at->raw);
    json_out_u64(out, NULL, at->line);
    json_out_u64(out, NULL, at->column);
}

static enum status write_span_blocks(struct trace_writer *writer, struct json_out *out, struct error *err)
{
    enum status status = STATUS_OK;
    struct trace_span_block block;
    write_names(out, "span_block_columns", trace_span_block_columns, ARRAY_COUNT(trace_span_block_columns));
    json_out_array_begin(out, "span_blocks", false);
    for (uint64_t at = 0; at < spool_length(writer->span_blocks) && status == STATUS_OK; at += sizeof block) {
        status = spool_read(writer->span_blocks, at, &block, sizeof block, err);
        if (status != STATUS_OK) break;
        json_out_array_begin(out, NULL, true);
        write_block(out, block.first, &block.at);
        json_out_double(out, NULL, block.from_s);
        json_out_double(out, NULL, block.to_s);
        json_out_u64(out, NULL, block.minibatch);
        json_out_array_end(out);
    }
    json_out_array_end(out);
    return status;
}

/* The row of the block that stands at *at in the spool, which goes on after it. */
static enum status write_level_block(struct trace_writer *writer, uint64_t *at, struct json_out *out, struct error *err)
{
    struct trace_level_block block;
    enum status status = spool_read(writer->level_blocks, *at, &block, sizeof block, err);
    if (status != STATUS_OK) return status;
    *at += sizeof block;
    json_out_array_begin(out, NULL, true);
    write_block(out, block.first, &block.at);
    json_out_double(out, NULL, block.time_s);
    for (uint32_t p = 0; p < writer->head.place_count && status == STATUS_OK; p++) {
        struct trace_held held;
        status = spool_read(writer->level_blocks, *at, &held, sizeof held, err);
        if (status != STATUS_OK) break;
        *at += sizeof held;
        json_out_u64(out, NULL, held.next);
        json_out_double(out, NULL, held.time_s);
        json_out_u64(out, NULL, held.bytes);
    }
    json_out_array_end(out);
    return status;
}

static enum status write_level_blocks(struct trace_writer *writer, struct json_out *out, struct error *err)
{
    enum status status = STATUS_OK;
    uint64_t at = 0;
    write_names(out, "level_block_columns", trace_level_block_columns, ARRAY_COUNT(trace_level_block_columns));
    write_names(out, "place_columns", trace_place_columns, ARRAY_COUNT(trace_place_columns));
    json_out_array_begin(out, "level_blocks", false);
    while (at < spool_length(writer->level_blocks) && status == STATUS_OK)
        status = write_level_block(writer, &at, out, err);
    json_out_array_end(out);
    return status;
}

/* --- the end -------------------------------------------------------------------------------- */

void trace_writer_fail(struct trace_writer *writer, const struct error *err)
{
    if (writer->err.status == STATUS_OK) writer->err = *err;
}

void trace_writer_total(const struct trace_writer *writer, struct trace *trace)
{
    const struct trace_judge *judge = &writer->judge;
    if (judge->span_count == 0) return;
    for (uint32_t j = 0; j < trace->job_count; j++) {
        const double *bounds = judge->bounds_s[j];
        trace->jobs[j].start_s = bounds[0] < 0 ? 0 : bounds[0]; /* a job that never ran */
        trace->jobs[j].end_s = bounds[1];
    }
    trace->makespan_s = judge->last_s - judge->first_s;
}

/* Judges the trace with its final peaks and totals. */
static enum status judge_all(struct trace_writer *writer, const struct trace *trace, struct error *err)
{
    if (writer->err.status != STATUS_OK) {
        *err = writer->err;
        return err->status;
    }
    for (uint32_t p = 0; p < trace->place_count; p++)
        if (writer->highest[p].bytes > trace->places[p].peak_bytes)
            return error_set(err, STATUS_CHECK,
                             "memory level %" PRIu64 " of '%s' is %" PRIu64 " bytes, above the peak of %" PRIu64,
                             writer->highest[p].index, trace->places[p].name, writer->highest[p].bytes,
                             trace->places[p].peak_bytes);
    writer->judge.trace = trace;
    return trace_judge_end(&writer->judge, err);
}

static enum status write_end(struct trace_writer *writer, const struct trace *trace, struct error *err)
{
    struct json_out *out = writer->file.out;
    end_span_block(writer);
    writer->ends.arrays[TRACE_SPANS] = (struct trace_end){.count = writer->judge.span_count, .at = json_out_place(out)};
    json_out_array_end(out);
    enum status status = write_levels(writer, err);
    write_run(trace, out);
    write_tables(trace, out);
    write_jobs(trace, out);
    write_operations(&writer->operations, out);
    if (status == STATUS_OK) status = write_span_blocks(writer, out, err);
    if (status == STATUS_OK) status = write_level_blocks(writer, out, err);
    trace_ends_write(&writer->ends, out);
    json_out_object_end(out);
    return status;
}

enum status trace_writer_commit(struct trace_writer *writer, const struct trace *trace, struct error *err)
{
    assert(trace->place_count == writer->head.place_count && trace->job_count == writer->head.job_count);
    enum status status = judge_all(writer, trace, err);
    if (status == STATUS_CHECK) status = error_add(err, "the trace for '%s'", writer->path);
    if (status == STATUS_OK) status = write_end(writer, trace, err);
    if (status == STATUS_OK) {
        writer->open = false;
        status = json_file_end(&writer->file, err);
    }
    trace_writer_discard(writer);
    return status;
}
