/*
 * A stream runs its operations in plan order, so the end of the last span of each stream suffices to prove that no
 * spans overlap.
 *
 * The judge repeats the sums of trace_finish() instead of calling it. The comparison of totals allows a
 * relative 1e-9, far above the rounding of one subtraction and far below anything worth reporting; the
 * order of spans is compared exactly, since both ends come from one clock.
 */
#include "traces/trace_judge.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/try.h"
#include "planner/plan.h"

static const double total_tolerance = 1e-9; /* relative to the makespan */
static const double wait_tolerance_s = 1e-6; /* waits are differences of clocks */

static bool time_ok(double time_s)
{
    return time_s >= 0 && time_s <= TRACE_TIME_MAX_S; /* false for NaN */
}

static enum status check_tables(const struct trace *trace, struct error *err)
{
    if (trace->source > TRACE_MEASURED)
        return error_set(err, STATUS_CHECK, "source %" PRIu32 " is neither predicted nor measured",
                         trace->source);
    if (trace->place_count == 0) return error_set(err, STATUS_CHECK, "there is no place");
    if (trace->more_hosts >= trace->place_count)
        return error_set(err, STATUS_CHECK, "%" PRIu32 " hosts after the first among %" PRIu32 " places",
                         trace->more_hosts, trace->place_count);
    uint32_t devices = trace_device_count(trace);
    for (uint32_t i = 0; i < trace->stream_count; i++) {
        const struct trace_stream *stream = &trace->streams[i];
        bool host = plan_stream_is_host(stream->kind);
        if (stream->kind >= STREAM_KIND_COUNT ||
            (host ? stream->device != PLAN_NONE : stream->device >= devices))
            return error_set(err, STATUS_CHECK,
                             "stream '%s' has kind %" PRIu32 " and device %" PRIu32
                             " (there are %" PRIu32 " devices)",
                             stream->name, stream->kind, stream->device, devices);
        if (stream->host > (host ? trace->more_hosts : 0))
            return error_set(err, STATUS_CHECK, "stream '%s' is of host %" PRIu32 " (there are %" PRIu32 ")",
                             stream->name, stream->host, trace->more_hosts + 1);
    }
    for (uint32_t j = 0; j < trace->job_count; j++) {
        const struct trace_job *job = &trace->jobs[j];
        if (!time_ok(job->start_s) || !time_ok(job->end_s) || job->end_s < job->start_s ||
            !isfinite(job->final_loss))
            return error_set(err, STATUS_CHECK, "job '%s' has no sensible times or loss", job->name);
    }
    if (!time_ok(trace->makespan_s))
        return error_set(err, STATUS_CHECK, "the makespan is %g s", trace->makespan_s);
    return STATUS_OK;
}

static enum status check_span(const struct trace *trace, const struct trace_span *span,
                              struct error *err)
{
    uint64_t n = span->number;
    if (!time_ok(span->start_s) || !time_ok(span->end_s) || span->end_s < span->start_s)
        return error_set(err, STATUS_CHECK, "span %" PRIu64 " runs from %.9g s to %.9g s", n,
                         span->start_s, span->end_s);
    if (span->stream >= trace->stream_count)
        return error_set(err, STATUS_CHECK,
                         "span %" PRIu64 " is on stream %" PRIu32 " (there are %" PRIu32 ")", n,
                         span->stream, trace->stream_count);
    if (span->job >= trace->job_count)
        return error_set(err, STATUS_CHECK,
                         "span %" PRIu64 " is of job %" PRIu32 " (there are %" PRIu32 ")", n,
                         span->job, trace->job_count);
    if (span->kind >= OP_KIND_COUNT || span->pass >= PLAN_PASS_COUNT)
        return error_set(err, STATUS_CHECK, "span %" PRIu64 " has kind %d and pass %d", n,
                         span->kind, span->pass);
    uint32_t stream_kind = trace->streams[span->stream].kind;
    bool copies = plan_stream_copies(stream_kind);
    if (span->kind == OP_COLLECTIVE && span->bytes == 0)
        return error_set(err, STATUS_CHECK, "span %" PRIu64 " is a collective of 0 bytes", n);
    if ((span->kind == OP_COPY) != copies)
        return error_set(err, STATUS_CHECK, "span %" PRIu64 " is a %s on stream '%s'", n,
                         span->kind == OP_COPY ? "copy" : "computation",
                         trace->streams[span->stream].name);
    if (span->kind == OP_COMPUTE && span->bytes != 0)
        return error_set(err, STATUS_CHECK,
                         "span %" PRIu64 " is a computation and copies %" PRIu64 " bytes", n,
                         span->bytes);
    const bool waits = span->waited_s > 0 || span->waited_s < 0 || isnan(span->waited_s);
    if (waits && (span->kind != OP_COLLECTIVE || !trace->has_waits || !time_ok(span->waited_s)))
        return error_set(err, STATUS_CHECK, "span %" PRIu64 " waits %.9g s for members (expected 0%s)", n,
                         span->waited_s, span->kind == OP_COLLECTIVE && trace->has_waits ? ", or more" : "");
    return STATUS_OK;
}

/* --- in order ------------------------------------------------------------------------------- */

enum status trace_judge_begin(struct trace_judge *judge, const struct trace *trace, struct error *err)
{
    judge->trace = trace;
    TRY(ARENA_NEW(&judge->arena, trace->stream_count, judge->stream_end_s, err));
    TRY(ARENA_NEW(&judge->arena, trace->job_count, judge->bounds_s, err));
    trace_judge_restart(judge);
    return check_tables(trace, err);
}

void trace_judge_restart(struct trace_judge *judge)
{
    const struct trace *trace = judge->trace;
    for (uint32_t s = 0; s < trace->stream_count; s++) judge->stream_end_s[s] = 0;
    for (uint32_t j = 0; j < trace->job_count; j++) {
        judge->bounds_s[j][0] = -1;
        judge->bounds_s[j][1] = 0;
    }
    judge->span_count = judge->last_number = judge->level_count = 0;
    judge->first_s = judge->last_s = judge->level_s = 0;
}

void trace_judge_release(struct trace_judge *judge)
{
    arena_release(&judge->arena);
}

static void add_to_totals(struct trace_judge *judge, const struct trace_span *span)
{
    double *bounds = judge->bounds_s[span->job];
    if (bounds[0] < 0 || span->start_s < bounds[0]) bounds[0] = span->start_s;
    if (span->end_s > bounds[1]) bounds[1] = span->end_s;
    if (judge->span_count == 0 || span->start_s < judge->first_s) judge->first_s = span->start_s;
    if (span->end_s > judge->last_s) judge->last_s = span->end_s;
}

enum status trace_judge_span(struct trace_judge *judge, const struct trace_span *span, struct error *err)
{
    TRY(check_span(judge->trace, span, err));
    if (judge->span_count > 0 && span->number <= judge->last_number)
        return error_set(err, STATUS_CHECK, "span %" PRIu64 " comes after span %" PRIu64, span->number,
                         judge->last_number);
    double *end_s = &judge->stream_end_s[span->stream];
    if (span->start_s < *end_s)
        return error_set(err, STATUS_CHECK,
                         "span %" PRIu64 " starts at %.9g s on stream '%s', where the one "
                         "before it ends at %.9g s",
                         span->number, span->start_s, judge->trace->streams[span->stream].name, *end_s);
    if (span->start_s - span->waited_s < *end_s - wait_tolerance_s)
        return error_set(err, STATUS_CHECK,
                         "span %" PRIu64
                         " waits for members from %.9g s on stream '%s', where the one before it ends at "
                         "%.9g s",
                         span->number, span->start_s - span->waited_s, judge->trace->streams[span->stream].name,
                         *end_s);
    *end_s = span->end_s;
    add_to_totals(judge, span);
    judge->last_number = span->number;
    judge->span_count++;
    return STATUS_OK;
}

enum status trace_judge_level(struct trace_judge *judge, const struct trace_level *level, struct error *err)
{
    const struct trace *trace = judge->trace;
    uint64_t i = judge->level_count;
    if (!time_ok(level->time_s) || (i > 0 && level->time_s < judge->level_s))
        return error_set(err, STATUS_CHECK, "memory level %" PRIu64 " is at %.9g s", i, level->time_s);
    if (level->place >= trace->place_count)
        return error_set(err, STATUS_CHECK,
                         "memory level %" PRIu64 " is at place %" PRIu32 " (there are %" PRIu32 ")", i,
                         level->place, trace->place_count);
    const struct trace_place *place = &trace->places[level->place];
    if (level->bytes > place->peak_bytes)
        return error_set(err, STATUS_CHECK,
                         "memory level %" PRIu64 " of '%s' is %" PRIu64 " bytes, above the peak of %" PRIu64, i,
                         place->name, level->bytes, place->peak_bytes);
    judge->level_s = level->time_s;
    judge->level_count++;
    return STATUS_OK;
}

/* --- the end -------------------------------------------------------------------------------- */

static enum status check_peaks(const struct trace *trace, struct error *err)
{
    for (uint32_t p = 0; p < trace->place_count; p++) {
        const struct trace_place *place = &trace->places[p];
        if (place->peak_bytes > place->capacity_bytes)
            return error_set(err, STATUS_CHECK,
                             "the peak of '%s' is %" PRIu64 " bytes, above its capacity of %" PRIu64,
                             place->name, place->peak_bytes, place->capacity_bytes);
        if (!time_ok(place->peak_time_s))
            return error_set(err, STATUS_CHECK, "the peak of '%s' is at %g s", place->name,
                             place->peak_time_s);
    }
    return STATUS_OK;
}

static enum status check_totals(const struct trace_judge *judge, struct error *err)
{
    const struct trace *trace = judge->trace;
    double slack_s = total_tolerance * judge->last_s;
    if (fabs(judge->last_s - judge->first_s - trace->makespan_s) > slack_s)
        return error_set(err, STATUS_CHECK, "the makespan is %.9g s, but the spans take %.9g s",
                         trace->makespan_s, judge->last_s - judge->first_s);
    for (uint32_t j = 0; j < trace->job_count; j++) {
        const struct trace_job *job = &trace->jobs[j];
        const double *bounds = judge->bounds_s[j];
        if (bounds[0] >= 0 && (fabs(job->start_s - bounds[0]) > slack_s || fabs(job->end_s - bounds[1]) > slack_s))
            return error_set(err, STATUS_CHECK,
                             "job '%s' runs from %.9g s to %.9g s, but its spans from %.9g s to "
                             "%.9g s",
                             job->name, job->start_s, job->end_s, bounds[0], bounds[1]);
    }
    return STATUS_OK;
}

enum status trace_judge_end(const struct trace_judge *judge, struct error *err)
{
    enum status status = check_tables(judge->trace, err);
    if (status == STATUS_OK) status = check_peaks(judge->trace, err);
    return status == STATUS_OK && judge->span_count > 0 ? check_totals(judge, err) : status;
}
