/*
 * Spans come in plan order, which is the order of a trace. Changes of memory levels come in that
 * order too, but a trace needs them by time, across streams. They are collected as (time, place,
 * change in bytes), sorted at the end and summed up. If two changes have the same time, memory is
 * released before it is acquired: the next user of a slot waits for the last one.
 *
 * A slot is acquired when the operation with ACQUIRE starts and released when the operation with
 * RELEASE ends; in the plan's terms another stream may then still read it for a moment.
 *
 * Without spans there are no changes either, and the peaks follow plan order.
 */
#include "exec/state/run_record.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

struct run_record_change {
    double time_s;
    uint64_t order; /* of arrival */
    int64_t bytes;
    uint32_t place;
};

struct run_record {
    const struct plan *plan;
    struct trace *trace;
    bool spans;
    struct run_record_change *changes;
    uint64_t change_count, change_limit;
    uint64_t *level; /* per place, in plan order */
    double *busy_s;  /* per stream */
    double first_s, last_s;
};

/* Counts the accesses in the whole run that acquire or release a slot: the largest number of
 * changes. */
static uint64_t count_changes(const struct plan *plan)
{
    uint64_t total = 0;
    for (uint32_t s = 0; s < plan->segment_count; s++) {
        const struct plan_segment *const segment = &plan->segments[s];
        uint64_t once = 0;
        for (uint32_t i = 0; i < segment->instance_count; i++) {
            const struct plan_instance *const instance =
                &plan->instances[segment->first_instance + i];
            once += 2 * (uint64_t)plan->units[instance->unit].op_count;
        }
        total += once * segment->repeat_count;
    }
    return total;
}

enum status run_record_create(const struct plan *plan, bool spans, struct trace *trace,
                              struct run_record **out, struct error *err)
{
    struct run_record *record = alloc_zeroed(1, sizeof *record);
    if (!record) return error_memory(err, "the record of a run", sizeof *record);
    record->plan = plan;
    record->trace = trace;
    record->spans = spans;
    record->first_s = INFINITY;
    record->change_limit = spans ? count_changes(plan) : 0;
    const uint32_t places = plan->hardware.device_count + 1;
    record->level = alloc_zeroed(places, sizeof *record->level);
    record->busy_s = alloc_zeroed(plan_stream_count(plan), sizeof *record->busy_s);
    if (spans) record->changes = alloc_zeroed(record->change_limit + 1, sizeof *record->changes);
    enum status status = STATUS_OK;
    if (!record->level || !record->busy_s || (spans && !record->changes))
        status = error_memory(err, "the record of a run",
                              record->change_limit * sizeof *record->changes);
    if (status == STATUS_OK)
        status = trace_init(trace, plan, TRACE_MEASURED, spans ? plan_operations(plan) : 0,
                            spans ? record->change_limit + 1 : 0, err);
    if (status == STATUS_OK)
        *out = record;
    else
        run_record_destroy(record);
    return status;
}

void run_record_destroy(struct run_record *record)
{
    if (!record) return;
    free(record->changes);
    free(record->level);
    free(record->busy_s);
    free(record);
}

static void add_change(struct run_record *record, double time_s, uint32_t place, int64_t bytes)
{
    if (bytes == 0) return;
    assert(record->change_count < record->change_limit);
    record->changes[record->change_count] = (struct run_record_change){
        .time_s = time_s, .order = record->change_count, .bytes = bytes, .place = place};
    record->change_count++;
}

void run_record_span(struct run_record *record, const struct trace_span *span)
{
    struct trace *const trace = record->trace;
    record->first_s = fmin(record->first_s, span->start_s);
    record->last_s = fmax(record->last_s, span->end_s);
    record->busy_s[span->stream] += span->end_s - span->start_s;
    if (record->spans) {
        trace->spans[trace->span_count++] = *span;
        return;
    }
    struct trace_job *const job = &trace->jobs[span->job];
    if (job->end_s == 0) job->start_s = span->start_s; /* its first operation */
    job->start_s = fmin(job->start_s, span->start_s);
    job->end_s = fmax(job->end_s, span->end_s);
}

double run_record_busy_s(const struct run_record *record, uint32_t stream)
{
    return record->busy_s[stream];
}

void run_record_slots(struct run_record *record, const struct run_slots *slots)
{
    const uint32_t place = 1 + slots->device;
    if (record->spans) {
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

static int compare_changes(const void *left, const void *right)
{
    const struct run_record_change *const a = left, *const b = right;
    if (a->time_s < b->time_s || a->time_s > b->time_s) return a->time_s < b->time_s ? -1 : 1;
    if ((a->bytes < 0) != (b->bytes < 0)) return a->bytes < 0 ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

void run_record_finish(struct run_record *record)
{
    struct trace *const trace = record->trace;
    trace_finish(trace);
    trace->places[0].peak_bytes = plan_host_bytes(record->plan);
    if (!record->spans) {
        trace->makespan_s = fmax(0, record->last_s - record->first_s);
        if (isinf(record->first_s)) trace->makespan_s = 0;
        return;
    }
    trace->levels[trace->level_count++] =
        (struct trace_level){.bytes = trace->places[0].peak_bytes, .place = 0};
    qsort(record->changes, record->change_count, sizeof *record->changes, compare_changes);
    for (uint64_t i = 0; i < record->change_count; i++) {
        const struct run_record_change *const change = &record->changes[i];
        uint64_t *const level = &record->level[change->place];
        *level += (uint64_t)change->bytes; /* two's complement: adds or subtracts */
        trace->levels[trace->level_count++] = (struct trace_level){
            .time_s = change->time_s, .bytes = *level, .place = change->place};
        struct trace_place *const place = &trace->places[change->place];
        if (*level > place->peak_bytes) {
            place->peak_bytes = *level;
            place->peak_time_s = change->time_s;
        }
    }
}
