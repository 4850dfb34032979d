/*
 * An interpreter of plans fills a trace; all other code only reads it.
 *
 * The writer calls trace_init() with the number of operations of its plan, so that nothing is
 * allocated while it runs; sets spans[i] and levels[i] and counts them; sets peaks, losses and
 * `complete`; calls trace_finish(), which derives what follows from the spans; and trace_write().
 *
 *     number      0     1     2     3     4
 *     h2d       [ 0 ]       [   3   ]
 *     compute          [ 1 ]         [ 4 ]        makespan: end of 4 - start of 0
 *     d2h                   [ 2 ]
 *
 * Plan order is the only order in which a prediction and its measurement can be compared: sorted by time, two runs of
 * one plan differ. A stream runs its operations in plan order, so one pass by number that keeps the end of the last
 * span of each stream proves that no spans overlap.
 */
#include "traces/trace.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/try.h"
#include "planner/plan.h"
#include "traces/trace_judge.h"

const char *const trace_source_names[2] = {"predicted", "measured"};

/* --- an empty trace for a plan -------------------------------------------------------------- */

enum { NAME_BYTES = 64 };

/* Writes a device's name from parts, because there may be thousands of devices. Returns its end. */
static char *device_name(char name[NAME_BYTES], const char *prefix, uint32_t device)
{
    int length = snprintf(name, NAME_BYTES, "%s%" PRIu32, prefix, device);
    assert(length > 0 && length < NAME_BYTES / 2);
    return name + length;
}

static enum status name_streams(struct trace *trace, struct trace_stream *streams, const struct plan *plan,
                                const char *prefix, uint32_t device, struct error *err)
{
    char name[NAME_BYTES], *kind_name = device_name(name, prefix, device);
    enum status status = STATUS_OK;
    *kind_name++ = ' ';
    for (uint32_t kind = STREAM_COMPUTE; kind < plan_device_streams(plan) && status == STATUS_OK; kind++) {
        struct trace_stream *stream = &streams[plan_stream(plan, device, kind)];
        *stream = (struct trace_stream){.device = device, .kind = kind};
        assert(strlen(plan_stream_names[kind]) < NAME_BYTES / 2);
        strcpy(kind_name, plan_stream_names[kind]);
        status = arena_string(&trace->arena, name, &stream->name, err);
    }
    return status;
}

static enum status name_host_streams(struct trace *trace, struct trace_stream *streams, const struct plan *plan,
                                     uint32_t host, struct error *err)
{
    char name[NAME_BYTES], *kind_name = device_name(name, "host", host);
    enum status status = STATUS_OK;
    *kind_name++ = ' ';
    for (uint32_t kind = STREAM_HOST; kind < STREAM_KIND_COUNT && status == STATUS_OK; kind++) {
        if (!plan_has_stream(plan, kind)) continue;
        struct trace_stream *stream = &streams[plan_host_stream(plan, host, kind)];
        *stream = (struct trace_stream){
            .name = plan_stream_names[kind], .device = PLAN_NONE, .host = host, .kind = kind};
        if (hardware_host_count(&plan->hardware) == 1) continue;
        strcpy(kind_name, plan_stream_names[kind]);
        status = arena_string(&trace->arena, name, &stream->name, err);
    }
    return status;
}

static enum status init_streams(struct trace *trace, const struct plan *plan, const char *prefix,
                                struct error *err)
{
    uint32_t count = plan_stream_count(plan);
    struct trace_stream *streams;
    TRY(ARENA_NEW(&trace->arena, count, streams, err));
    for (uint32_t d = 0; d < plan->hardware.device_count; d++) {
        TRY(name_streams(trace, streams, plan, prefix, d, err));
    }
    for (uint32_t h = 0; h < hardware_host_count(&plan->hardware); h++) {
        TRY(name_host_streams(trace, streams, plan, h, err));
    }
    trace->streams = streams;
    trace->stream_count = count;
    trace->has_waits = plan->gang_count > 0;
    return STATUS_OK;
}

enum status trace_name_host(struct trace *trace, uint32_t host, struct error *err)
{
    struct trace_place *place = &trace->places[trace_host_place(trace, host)];
    if (trace->more_hosts > 0) {
        char name[NAME_BYTES];
        device_name(name, "host", host);
        return arena_string(&trace->arena, name, &place->name, err);
    }
    place->name = "host";
    return STATUS_OK;
}

static enum status init_places(struct trace *trace, const struct plan *plan, const char *prefix,
                               struct error *err)
{
    uint32_t devices = plan->hardware.device_count, hosts = hardware_host_count(&plan->hardware);
    uint32_t count = devices + hosts;
    struct trace_place *places;
    TRY(ARENA_NEW(&trace->arena, count, places, err));
    trace->places = places;
    trace->place_count = count;
    trace->more_hosts = hosts - 1;
    for (uint32_t h = 0; h < hosts; h++) {
        places[trace_host_place(trace, h)].capacity_bytes = hardware_host_bytes(&plan->hardware);
        TRY(trace_name_host(trace, h, err));
    }
    for (uint32_t d = 0; d < devices; d++) {
        places[1 + d].capacity_bytes = plan->hardware.devices[d].memory_bytes;
        char name[NAME_BYTES];
        device_name(name, prefix, d);
        TRY(arena_string(&trace->arena, name, &places[1 + d].name, err));
    }
    return STATUS_OK;
}

static enum status init_jobs(struct trace *trace, const struct plan *plan, struct error *err)
{
    uint32_t count = plan->jobs.count;
    struct trace_job *jobs;
    TRY(ARENA_NEW(&trace->arena, count, jobs, err));
    for (uint32_t j = 0; j < count; j++) {
        const struct job *job = &plan->jobs.jobs[j];
        jobs[j].minibatches = job->minibatches;
        jobs[j].unit = job_unit(job);
        const uint64_t trained = job_makes_outputs(job) ? 0 : job->minibatches;
        if (!size_mul(trained, job_samples(job), &jobs[j].samples) ||
            !size_mul(jobs[j].samples, job->sequence, &jobs[j].tokens) ||
            jobs[j].tokens > INT64_MAX)
            return error_set(err, STATUS_LIMIT, "too many tokens in job '%s' (limit is %" PRId64 ")",
                             job->name, INT64_MAX);
        TRY(arena_string(&trace->arena, job->name, &jobs[j].name, err));
    }
    trace->jobs = jobs;
    trace->job_count = count;
    return STATUS_OK;
}

static enum status init_records(struct trace *trace, uint64_t span_limit, uint64_t level_limit,
                                struct error *err)
{
    if (span_limit > TRACE_SPANS_MAX)
        return error_set(err, STATUS_LIMIT, "too many spans (limit is %d)", TRACE_SPANS_MAX);
    if (level_limit > TRACE_LEVELS_MAX)
        return error_set(err, STATUS_LIMIT, "too many memory levels (limit is %d)",
                         TRACE_LEVELS_MAX);
    TRY(ARENA_NEW(&trace->arena, span_limit, trace->spans, err));
    return ARENA_NEW(&trace->arena, level_limit, trace->levels, err);
}

enum status trace_init(struct trace *trace, const struct plan *plan, enum trace_source source,
                       uint64_t span_limit, uint64_t level_limit, struct error *err)
{
    const char *prefix = strcmp(plan->hardware.backend, "cuda") == 0 ? "gpu" : "dev";
    trace->source = source;
    if (source == TRACE_PREDICTED) trace->load = hardware_load_taken(&plan->hardware);
    if (span_limit > 0) trace->plan_fingerprint = plan_fingerprint(plan);
    TRY(arena_string(&trace->arena, plan->hardware.name, &trace->hardware, err));
    TRY(arena_string(&trace->arena, plan->policy, &trace->policy, err));
    TRY(init_streams(trace, plan, prefix, err));
    TRY(init_places(trace, plan, prefix, err));
    TRY(init_jobs(trace, plan, err));
    return init_records(trace, span_limit, level_limit, err);
}

void trace_release(struct trace *trace)
{
    arena_release(&trace->arena);
    *trace = (struct trace){0};
}

/* --- what follows from the spans ------------------------------------------------------------ */

static int compare_numbers(const void *a, const void *b)
{
    const struct trace_span *left = a, *right = b;
    return (left->number > right->number) - (left->number < right->number);
}

void trace_finish(struct trace *trace)
{
    if (trace->span_count == 0) return;
    bool ordered = true;
    for (uint64_t i = 1; i < trace->span_count && ordered; i++)
        ordered = trace->spans[i - 1].number < trace->spans[i].number;
    if (!ordered)
        qsort(trace->spans, trace->span_count, sizeof *trace->spans, compare_numbers);

    for (uint32_t j = 0; j < trace->job_count; j++) {
        trace->jobs[j].start_s = INFINITY;
        trace->jobs[j].end_s = 0;
    }
    double start_s = INFINITY, end_s = 0;
    for (uint64_t i = 0; i < trace->span_count; i++) {
        const struct trace_span *span = &trace->spans[i];
        assert(span->job < trace->job_count);
        struct trace_job *job = &trace->jobs[span->job];
        job->start_s = fmin(job->start_s, span->start_s);
        job->end_s = fmax(job->end_s, span->end_s);
        start_s = fmin(start_s, span->start_s);
        end_s = fmax(end_s, span->end_s);
    }
    for (uint32_t j = 0; j < trace->job_count; j++)
        if (isinf(trace->jobs[j].start_s)) trace->jobs[j].start_s = 0; /* it never ran */
    trace->makespan_s = end_s - start_s;
}

double trace_job_tokens_per_s(const struct trace *trace, uint32_t job)
{
    assert(job < trace->job_count);
    const struct trace_job *j = &trace->jobs[job];
    return j->end_s > j->start_s ? (double)j->tokens / (j->end_s - j->start_s) : 0;
}

double trace_job_samples_per_s(const struct trace *trace, uint32_t job)
{
    assert(job < trace->job_count);
    const struct trace_job *j = &trace->jobs[job];
    return j->end_s > j->start_s ? (double)j->samples / (j->end_s - j->start_s) : 0;
}

uint32_t trace_unit(const struct trace *trace)
{
    uint32_t unit = JOB_UNIT_COUNT - 1;
    for (uint32_t j = 0; j < trace->job_count; j++)
        if (trace->jobs[j].unit < unit) unit = trace->jobs[j].unit;
    return unit;
}

double trace_tokens_per_s(const struct trace *trace)
{
    double tokens = 0;
    for (uint32_t j = 0; j < trace->job_count; j++) tokens += (double)trace->jobs[j].tokens;
    return trace->makespan_s > 0 ? tokens / trace->makespan_s : 0;
}

/* --- the judge ------------------------------------------------------------------------------ */

static enum status judge_all(struct trace_judge *judge, const struct trace *trace, struct error *err)
{
    enum status status = trace_judge_begin(judge, trace, err);
    for (uint64_t i = 0; i < trace->span_count && status == STATUS_OK; i++)
        status = trace_judge_span(judge, &trace->spans[i], err);
    for (uint64_t i = 0; i < trace->level_count && status == STATUS_OK; i++)
        status = trace_judge_level(judge, &trace->levels[i], err);
    return status == STATUS_OK ? trace_judge_end(judge, err) : status;
}

enum status trace_check(const struct trace *trace, struct error *err)
{
    struct trace_judge judge = {0};
    enum status status = judge_all(&judge, trace, err);
    trace_judge_release(&judge);
    return status;
}
