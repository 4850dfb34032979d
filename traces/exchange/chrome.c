/*
 * Traces for common viewers: chrome://tracing and ui.perfetto.dev.
 *
 * The format is old and loosely defined, and viewers differ in the files that they accept. This writer uses the
 * common part. A device of a trace is a process, a stream a thread:
 *
 *     predicted gpu0     compute   [ job-1 shard 0 forward ][ job-1 shard 1 ...
 *                        h2d       [ ... ]--\ (flow)
 *                        memory    ___/~~~~
 *     measured gpu0      compute   ...
 *
 * Time. Viewers count nanoseconds and expect that events of one track nest or are disjoint. Two events that overlap
 * by a rounding error are drawn wrongly or dropped. Both ends of a span are therefore rounded to nanoseconds and the
 * duration is their difference: rounding is monotonic, so disjoint spans stay disjoint. Microseconds are written with
 * their fraction. A reader that multiplies by 1000 and truncates may lose a nanosecond (1.001 us * 1000 is
 * 1000.999...); the number is then raised by one unit in the last place. Above 2^53 ns a double no longer holds a
 * nanosecond: refused.
 *
 * Arrows go from each H2D copy to the next computation in its unit. A unit instance is a sequence of spans with
 * successive numbers whose op_index starts at 0. The copies since the last computation are kept as a range of
 * indexes, so the pass is linear for every file.
 *
 * Counters: memory of each place from the levels; the rate of each copy stream as a step at the start of a copy and a
 * step to zero at its end, unless the next copy begins at once.
 *
 * Source: "Trace Event Format" (Google, 2016), complete, metadata, counter and flow events.
 */
#include "traces/exchange/chrome.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/files/file.h"
#include "base/json/json_out.h"
#include "base/try.h"
#include "planner/plan.h"

enum { NAME_BYTES = 256 };

static const double time_max_ns = 0x1p53;

struct chrome {
    struct json_out *out;
    const struct trace *const *traces;
    uint32_t trace_count;
    uint64_t minibatch_limit; /* 0: none */
    uint64_t flow_count;
};

/* --- numbers -------------------------------------------------------------------------------- */

static uint64_t nanoseconds(double time_s)
{
    assert(time_s >= 0 && time_s * 1e9 <= time_max_ns);
    return (uint64_t)llround(time_s * 1e9);
}

static double microseconds(uint64_t time_ns)
{
    double time_us = (double)time_ns / 1000;
    return (uint64_t)(time_us * 1000) < time_ns ? nextafter(time_us, INFINITY) : time_us;
}

/* --- processes and threads ------------------------------------------------------------------ */

/* Returns the place whose process shows a stream. A host's place and its streams share a process; so do place 1 + d
 * and the streams of device d. */
static uint32_t stream_place(const struct trace *trace, const struct trace_stream *stream)
{
    return plan_stream_is_host(stream->kind) ? trace_host_place(trace, stream->host) : stream->device + 1;
}

/* Returns a process number from 1 on; the same device of two traces has adjacent numbers. */
static uint64_t process_id(const struct chrome *chrome, uint32_t trace, uint32_t place)
{
    return (uint64_t)place * chrome->trace_count + trace + 1;
}

static void write_metadata(const struct chrome *chrome, const char *name, uint64_t process,
                           const uint64_t *thread, const char *key, const char *text,
                           uint64_t number)
{
    json_out_object_begin(chrome->out, NULL, true);
    json_out_string(chrome->out, "ph", "M");
    json_out_string(chrome->out, "name", name);
    json_out_u64(chrome->out, "pid", process);
    if (thread) json_out_u64(chrome->out, "tid", *thread);
    json_out_object_begin(chrome->out, "args", true);
    if (text)
        json_out_string(chrome->out, key, text);
    else
        json_out_u64(chrome->out, key, number);
    json_out_object_end(chrome->out);
    json_out_object_end(chrome->out);
}

static void write_processes(const struct chrome *chrome, uint32_t t)
{
    const struct trace *trace = chrome->traces[t];
    for (uint32_t p = 0; p < trace->place_count; p++) {
        char name[NAME_BYTES];
        uint64_t process = process_id(chrome, t, p);
        snprintf(name, sizeof name, "%s %s", trace_source_names[trace->source],
                 trace->places[p].name);
        write_metadata(chrome, "process_name", process, NULL, "name", name, 0);
        write_metadata(chrome, "process_sort_index", process, NULL, "sort_index", NULL, process);
    }
    for (uint32_t s = 0; s < trace->stream_count; s++) {
        const struct trace_stream *stream = &trace->streams[s];
        uint64_t process = process_id(chrome, t, stream_place(chrome->traces[t], stream));
        uint64_t thread = stream->kind + 1;
        write_metadata(chrome, "thread_name", process, &thread, "name",
                       plan_stream_names[stream->kind], 0);
        write_metadata(chrome, "thread_sort_index", process, &thread, "sort_index", NULL, thread);
    }
}

/* --- events --------------------------------------------------------------------------------- */

static bool kept(const struct chrome *chrome, const struct trace_span *span)
{
    return chrome->minibatch_limit == 0 || span->minibatch < chrome->minibatch_limit;
}

static const char *category(const struct trace *trace, const struct trace_span *span)
{
    if (span->kind == OP_COLLECTIVE) return "collective";
    if (span->kind == OP_COPY)
        return plan_stream_names[trace->streams[span->stream].kind];
    return plan_pass_names[span->pass];
}

static double copy_gb_per_s(const struct trace_span *span)
{
    double duration_s = span->end_s - span->start_s;
    return duration_s > 0 ? (double)span->bytes / duration_s / 1e9 : 0;
}

static void write_span(const struct chrome *chrome, uint32_t t, const struct trace_span *span,
                       const struct trace_span *predicted)
{
    const struct trace *trace = chrome->traces[t];
    const struct trace_stream *stream = &trace->streams[span->stream];
    struct json_out *out = chrome->out;
    uint64_t start_ns = nanoseconds(span->start_s), end_ns = nanoseconds(span->end_s);
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "%s shard %" PRIu32 " %s", trace->jobs[span->job].name, span->shard,
             category(trace, span));
    json_out_object_begin(out, NULL, true);
    json_out_string(out, "ph", "X");
    json_out_string(out, "name", name);
    json_out_string(out, "cat", category(trace, span));
    json_out_u64(out, "pid", process_id(chrome, t, stream_place(chrome->traces[t], stream)));
    json_out_u64(out, "tid", stream->kind + 1);
    json_out_double(out, "ts", microseconds(start_ns));
    json_out_double(out, "dur", microseconds(end_ns - start_ns));
    json_out_object_begin(out, "args", true);
    json_out_string(out, "job", trace->jobs[span->job].name);
    json_out_u64(out, "shard", span->shard);
    json_out_u64(out, "minibatch", span->minibatch);
    if (span->kind != OP_COMPUTE) {
        json_out_u64(out, "bytes", span->bytes);
        json_out_double(out, "GBps", copy_gb_per_s(span));
    }
    if (predicted)
        json_out_double(out, "predicted_us", (predicted->end_s - predicted->start_s) * 1e6);
    json_out_object_end(out);
    json_out_object_end(out);
}

/* Returns the prediction of trace `t`; NULL when there is none. */
static const struct trace *prediction_of(const struct chrome *chrome, uint32_t t)
{
    if (chrome->trace_count != 2 || chrome->traces[t]->source != TRACE_MEASURED) return NULL;
    const struct trace *other = chrome->traces[1 - t];
    bool same = other->plan_fingerprint == chrome->traces[t]->plan_fingerprint;
    return same && other->source == TRACE_PREDICTED ? other : NULL;
}

static void write_spans(const struct chrome *chrome, uint32_t t)
{
    const struct trace *trace = chrome->traces[t], *prediction = prediction_of(chrome, t);
    uint64_t p = 0;
    for (uint64_t i = 0; i < trace->span_count; i++) {
        const struct trace_span *span = &trace->spans[i], *predicted = NULL;
        while (prediction && p < prediction->span_count &&
               prediction->spans[p].number < span->number)
            p++;
        if (prediction && p < prediction->span_count &&
            prediction->spans[p].number == span->number)
            predicted = &prediction->spans[p];
        if (kept(chrome, span)) write_span(chrome, t, span, predicted);
    }
}

/* --- arrows --------------------------------------------------------------------------------- */

static void write_flow_end(const struct chrome *chrome, uint32_t t, const struct trace_span *span,
                           bool begins, uint64_t time_ns)
{
    const struct trace_stream *stream = &chrome->traces[t]->streams[span->stream];
    struct json_out *out = chrome->out;
    json_out_object_begin(out, NULL, true);
    json_out_string(out, "ph", begins ? "s" : "f");
    if (!begins) json_out_string(out, "bp", "e"); /* bind to the event around it */
    json_out_string(out, "name", "copy to use");
    json_out_string(out, "cat", "flow");
    json_out_u64(out, "id", chrome->flow_count);
    json_out_u64(out, "pid", process_id(chrome, t, stream_place(chrome->traces[t], stream)));
    json_out_u64(out, "tid", stream->kind + 1);
    json_out_double(out, "ts", microseconds(time_ns));
    json_out_object_end(out);
}

/* Writes a flow arrow. It starts inside the copy, because at the copy's very end it could belong to the next copy. */
static void write_flow(struct chrome *chrome, uint32_t t, const struct trace_span *copy,
                       const struct trace_span *compute)
{
    uint64_t start_ns = nanoseconds(copy->start_s), end_ns = nanoseconds(copy->end_s);
    chrome->flow_count++;
    write_flow_end(chrome, t, copy, true, end_ns > start_ns ? end_ns - 1 : start_ns);
    write_flow_end(chrome, t, compute, false, nanoseconds(compute->start_s));
}

/* Returns true when `span` begins another unit instance than the previous span's. */
static bool begins_instance(const struct trace_span *before, const struct trace_span *span)
{
    return span->op_index == 0 || span->number != before->number + 1 || span->job != before->job ||
           span->shard != before->shard;
}

static void write_flows(struct chrome *chrome, uint32_t t)
{
    const struct trace *trace = chrome->traces[t];
    uint64_t first = 0; /* first span of this instance after its last computation */
    for (uint64_t i = 0; i < trace->span_count; i++) {
        const struct trace_span *span = &trace->spans[i];
        if (i > 0 && begins_instance(&trace->spans[i - 1], span)) first = i;
        if (span->kind != OP_COMPUTE) continue;
        for (uint64_t c = first; c < i; c++) {
            const struct trace_span *copy = &trace->spans[c];
            uint32_t kind = trace->streams[copy->stream].kind;
            if ((kind == STREAM_H2D || kind == STREAM_P2P) && copy->end_s <= span->start_s &&
                kept(chrome, copy) && kept(chrome, span))
                write_flow(chrome, t, copy, span);
        }
        first = i + 1;
    }
}

/* --- counters ------------------------------------------------------------------------------- */

static void write_counter(const struct chrome *chrome, uint64_t process, const char *name,
                          uint64_t time_ns, const char *key, double value)
{
    json_out_object_begin(chrome->out, NULL, true);
    json_out_string(chrome->out, "ph", "C");
    json_out_string(chrome->out, "name", name);
    json_out_u64(chrome->out, "pid", process);
    json_out_double(chrome->out, "ts", microseconds(time_ns));
    json_out_object_begin(chrome->out, "args", true);
    json_out_double(chrome->out, key, value);
    json_out_object_end(chrome->out);
    json_out_object_end(chrome->out);
}

static void write_memory(const struct chrome *chrome, uint32_t t, double last_s)
{
    const struct trace *trace = chrome->traces[t];
    for (uint64_t i = 0; i < trace->level_count && trace->levels[i].time_s <= last_s; i++) {
        const struct trace_level *level = &trace->levels[i];
        write_counter(chrome, process_id(chrome, t, level->place), "memory (GiB)",
                      nanoseconds(level->time_s), "used", (double)level->bytes * 0x1p-30);
    }
}

static void write_rate(const struct chrome *chrome, uint32_t t, uint32_t s, uint64_t time_ns,
                       double gb_per_s)
{
    const struct trace_stream *stream = &chrome->traces[t]->streams[s];
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "%s (GB/s)", plan_stream_names[stream->kind]);
    write_counter(chrome, process_id(chrome, t, stream_place(chrome->traces[t], stream)), name, time_ns, "rate",
                  gb_per_s);
}

/* `ends_ns`: scratch, stream_count zeros; when the copy before ended, 0 before the first. */
static void write_rates(const struct chrome *chrome, uint32_t t, uint64_t *ends_ns)
{
    const struct trace *trace = chrome->traces[t];
    for (uint64_t i = 0; i < trace->span_count; i++) {
        const struct trace_span *span = &trace->spans[i];
        if (span->kind != OP_COPY || !kept(chrome, span)) continue;
        uint64_t start_ns = nanoseconds(span->start_s), *end_ns = &ends_ns[span->stream];
        if (*end_ns > 0 && *end_ns < start_ns) write_rate(chrome, t, span->stream, *end_ns, 0);
        write_rate(chrome, t, span->stream, start_ns, copy_gb_per_s(span));
        *end_ns = nanoseconds(span->end_s);
    }
    for (uint32_t s = 0; s < trace->stream_count; s++)
        if (ends_ns[s] > 0) write_rate(chrome, t, s, ends_ns[s], 0);
}

/* --- the file ------------------------------------------------------------------------------- */

static enum status write_trace(struct chrome *chrome, uint32_t t, struct arena *scratch,
                               struct error *err)
{
    const struct trace *trace = chrome->traces[t];
    double last_s = trace->span_count == 0 ? trace->makespan_s : 0;
    for (uint64_t i = 0; i < trace->span_count; i++)
        if (kept(chrome, &trace->spans[i])) last_s = fmax(last_s, trace->spans[i].end_s);
    if (last_s * 1e9 > time_max_ns)
        return error_set(err, STATUS_LIMIT,
                         "the %s trace lasts %.0f s (limit of this format is %.0f s)",
                         trace_source_names[trace->source], last_s, time_max_ns / 1e9);
    uint64_t *ends_ns;
    TRY(ARENA_NEW(scratch, trace->stream_count, ends_ns, err));
    write_processes(chrome, t);
    write_spans(chrome, t);
    write_flows(chrome, t);
    write_memory(chrome, t, last_s);
    write_rates(chrome, t, ends_ns);
    return STATUS_OK;
}

static void write_other_data(const struct chrome *chrome)
{
    char fingerprint[17];
    struct json_out *out = chrome->out;
    const struct trace *trace = chrome->traces[0];
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, trace->plan_fingerprint);
    json_out_object_begin(out, "otherData", false);
    json_out_string(out, "made_by", "spillway " SPILLWAY_VERSION);
    json_out_u64(out, "trace_version", TRACE_VERSION);
    json_out_string(out, "hardware", trace->hardware);
    json_out_string(out, "policy", trace->policy);
    json_out_string(out, "plan", fingerprint);
    json_out_object_end(out);
}

enum status chrome_write(const struct trace *const *traces, uint32_t trace_count,
                         uint64_t minibatch_limit, const char *path, struct error *err)
{
    assert(trace_count >= 1 && trace_count <= CHROME_TRACES_MAX);
    struct chrome chrome = {
        .traces = traces, .trace_count = trace_count, .minibatch_limit = minibatch_limit};
    struct arena scratch = {0};
    struct file_out *file = NULL;
    enum status status = file_out_create(path, &file, err);
    if (status != STATUS_OK) goto out;
    chrome.out = json_out_create(file);
    if (!chrome.out) {
        status = error_memory(err, "writing a trace", 0);
        goto out;
    }
    json_out_object_begin(chrome.out, NULL, false);
    json_out_string(chrome.out, "displayTimeUnit", "ms");
    write_other_data(&chrome);
    json_out_array_begin(chrome.out, "traceEvents", false);
    for (uint32_t t = 0; t < trace_count && status == STATUS_OK; t++)
        status = write_trace(&chrome, t, &scratch, err);
    json_out_array_end(chrome.out);
    json_out_object_end(chrome.out);
    if (status != STATUS_OK) goto out;
    if (!json_out_complete(chrome.out)) {
        status = error_memory(err, "writing a trace", 0);
        goto out;
    }
    status = file_out_commit(file, err);
    file = NULL;
out:
    json_out_destroy(chrome.out);
    file_out_discard(file);
    arena_release(&scratch);
    return status;
}
