/*
 * Spans come in plan order, the order of a trace. Memory levels are needed by time, across streams, so changes are
 * collected (run_changes.h) and summed up at the end.
 *
 * A slot is acquired when the operation with ACQUIRE starts and released when the operation with
 * RELEASE ends; in the plan's terms another stream may then still read it for a moment.
 *
 * Without spans, peaks follow plan order.
 */
#include "exec/state/run_record.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/try.h"
#include "exec/state/run_changes.h"

/* 8 MiB of changes */
enum { CHANGES_MAX = 1 << 18 };

struct run_record {
    const struct plan *plan;
    struct trace *trace;
    bool spans;                  /* in `trace` */
    struct trace_writer *writer; /* may be NULL */
    struct run_changes *changes; /* NULL: only totals */
    uint64_t *level; /* per place, in plan order */
    double *busy_s;  /* per stream */
    double first_s, last_s;
};

/* Returns the largest number of changes: accesses that acquire or release a slot. */
static uint64_t count_changes(const struct plan *plan)
{
    uint64_t total = 0;
    for (uint32_t s = 0; s < plan->segment_count; s++) {
        const struct plan_segment *const segment = &plan->segments[s];
        uint64_t once = 0;
        for (uint32_t i = 0; i < segment->task_count; i++) {
            const struct plan_task *const task =
                &plan->tasks[segment->first_task + i];
            once += 2 * (uint64_t)plan->units[task->unit].op_count * plan_task_members(plan, task);
        }
        total += once * segment->repeat_count;
    }
    return total;
}

static enum status init_trace(struct run_record *record, uint64_t change_limit, struct error *err)
{
    const struct plan *const plan = record->plan;
    enum status status = trace_init(record->trace, plan, TRACE_MEASURED, record->spans ? plan_operations(plan) : 0,
                                    record->spans ? change_limit + 1 : 0, err);
    if (status != STATUS_OK || !record->writer) return status;
    record->trace->plan_fingerprint = plan_fingerprint(plan);
    return trace_writer_begin(record->writer, record->trace, err);
}

enum status run_record_create(const struct plan *plan, bool spans, struct trace_writer *writer, struct trace *trace,
                              struct run_record **out, struct error *err)
{
    struct run_record *record = alloc_zeroed(1, sizeof *record);
    if (!record) return error_memory(err, "the record of a run", sizeof *record);
    record->plan = plan;
    record->trace = trace;
    record->spans = spans;
    record->writer = writer;
    record->first_s = INFINITY;
    const uint64_t change_limit = count_changes(plan);
    const uint32_t places = plan->hardware.device_count + 1;
    record->level = alloc_zeroed(places, sizeof *record->level);
    record->busy_s = alloc_zeroed(plan_stream_count(plan), sizeof *record->busy_s);
    enum status status = STATUS_OK;
    if (!record->level || !record->busy_s)
        status = error_memory(err, "the record of a run", places * sizeof *record->level);
    if (status == STATUS_OK && (spans || writer))
        status = run_changes_create(change_limit < CHANGES_MAX ? (size_t)change_limit : CHANGES_MAX, &record->changes,
                                    err);
    if (status == STATUS_OK) status = init_trace(record, change_limit, err);
    if (status == STATUS_OK)
        *out = record;
    else
        run_record_destroy(record);
    return status;
}

void run_record_destroy(struct run_record *record)
{
    if (!record) return;
    run_changes_destroy(record->changes);
    free(record->level);
    free(record->busy_s);
    free(record);
}

static void add_change(struct run_record *record, double time_s, uint32_t place, int64_t bytes)
{
    if (bytes != 0) run_changes_add(record->changes, time_s, place, bytes);
}

static void record_span(struct run_record *record, const struct trace_span *span)
{
    struct trace *const trace = record->trace;
    record->first_s = fmin(record->first_s, span->start_s);
    record->last_s = fmax(record->last_s, span->end_s);
    record->busy_s[span->stream] += span->end_s - span->start_s;
    if (record->spans) trace->spans[trace->span_count++] = *span;
    if (record->writer) trace_writer_span(record->writer, span);
    if (record->changes) return;
    struct trace_job *const job = &trace->jobs[span->job];
    if (job->end_s == 0) job->start_s = span->start_s; /* its first operation */
    job->start_s = fmin(job->start_s, span->start_s);
    job->end_s = fmax(job->end_s, span->end_s);
}

double run_record_busy_s(const struct run_record *record, uint32_t stream)
{
    return record->busy_s[stream];
}

static void record_slots(struct run_record *record, const struct run_slots *slots)
{
    const uint32_t place = 1 + slots->device;
    if (record->changes) {
        add_change(record, slots->start_s, place, (int64_t)slots->acquired_bytes);
        add_change(record, slots->end_s, place, -(int64_t)slots->released_bytes);
        return;
    }
    struct trace_place *const traced = &record->trace->places[place];
    record->level[place] += slots->acquired_bytes;
    if (record->level[place] > traced->peak_bytes) {
        traced->peak_bytes = record->level[place];
        traced->peak_time_s = slots->start_s;
    }
    record->level[place] -= slots->released_bytes;
}

void run_record_ended(struct run_record *record, const struct run_ended *ended)
{
    for (uint32_t i = 0; i < ended->slot_count; i++) record_slots(record, &ended->slots[i]);
    if (ended->has_span) record_span(record, &ended->span);
}

static void add_level(struct run_record *record, const struct trace_level *level)
{
    struct trace *const trace = record->trace;
    if (record->spans) trace->levels[trace->level_count++] = *level;
    if (record->writer) trace_writer_level(record->writer, level);
}

static enum status add_levels(struct run_record *record, struct error *err)
{
    struct trace *const trace = record->trace;
    add_level(record, &(struct trace_level){.bytes = trace->places[0].peak_bytes, .place = 0});
    for (;;) {
        struct run_change change;
        bool more;
        TRY(run_changes_next(record->changes, &change, &more, err));
        if (!more) return STATUS_OK;
        uint64_t *const level = &record->level[change.place];
        *level += (uint64_t)change.bytes; /* two's complement: adds or subtracts */
        add_level(record, &(struct trace_level){.time_s = change.time_s, .bytes = *level, .place = change.place});
        struct trace_place *const place = &trace->places[change.place];
        if (*level > place->peak_bytes) {
            place->peak_bytes = *level;
            place->peak_time_s = change.time_s;
        }
    }
}

enum status run_record_finish(struct run_record *record, struct error *err)
{
    struct trace *const trace = record->trace;
    if (record->writer) trace_writer_total(record->writer, trace);
    trace_finish(trace);
    trace->places[0].peak_bytes = plan_host_bytes(record->plan);
    if (record->changes) {
        struct error failed = {0};
        if (add_levels(record, &failed) == STATUS_OK) return STATUS_OK;
        if (record->writer) trace_writer_fail(record->writer, &failed); /* the run is more than its trace */
        if (record->spans) *err = failed;
        return err->status;
    }
    trace->makespan_s = fmax(0, record->last_s - record->first_s);
    if (isinf(record->first_s)) trace->makespan_s = 0;
    return STATUS_OK;
}
