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
 * Arrows go from each H2D copy to the next computation in its unit. A task is a sequence of spans with
 * successive numbers whose op_index starts at 0. The copies since the last computation are kept, so the pass is
 * linear for every file.
 *
 * Counters: memory of each place from the levels; the rate of each copy stream as a step at the start of a copy and a
 * step to zero at its end, unless the next copy begins at once.
 *
 * A trace is read once. Its spans are written as they come; arrows and rates are kept in temporary files until their
 * turn, so memory does not grow with the trace.
 *
 * Source: "Trace Event Format" (Google, 2016), complete, metadata, counter and flow events.
 */
#include "traces/exchange/chrome.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/files/file.h"
#include "base/files/spool.h"
#include "base/json/json_out.h"
#include "base/try.h"
#include "planner/plan.h"

enum { NAME_BYTES = 256 };

static const double time_max_ns = 0x1p53;

/* An arrow, from a copy to a computation. */
struct chrome_arrow {
    uint64_t from_ns, to_ns;
    uint32_t from_stream, to_stream;
};

struct chrome_rate {
    uint64_t time_ns;
    double gb_per_s;
    uint32_t stream;
};

struct chrome {
    struct json_out *out;
    struct trace_reader *const *readers;
    const struct trace *traces[CHROME_TRACES_MAX]; /* their heads */
    uint32_t trace_count;
    uint64_t minibatch_limit; /* 0: none */
    uint64_t flow_count;

    /* The trace that is written. */
    struct spool *arrows, *rates;
    uint64_t *ends_ns;          /* by stream: when the copy before ended, 0 before the first */
    struct trace_span *waiting; /* copies of a task since its last computation */
    size_t waiting_count, waiting_capacity;
    struct trace_span last;     /* the span before */
    uint64_t span_count;
    double last_s;              /* the last end of the spans that are kept */
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
        if (trace->has_waits && span->kind == OP_COLLECTIVE) json_out_double(out, "waited_us", span->waited_s * 1e6);
    }
    if (predicted)
        json_out_double(out, "predicted_us", (predicted->end_s - predicted->start_s) * 1e6);
    json_out_object_end(out);
    json_out_object_end(out);
}

/* Returns whether the other trace is the prediction of trace `t`. */
static bool has_prediction(const struct chrome *chrome, uint32_t t)
{
    if (chrome->trace_count != 2 || chrome->traces[t]->source != TRACE_MEASURED) return false;
    const struct trace *other = chrome->traces[1 - t];
    bool same = other->plan_fingerprint == chrome->traces[t]->plan_fingerprint;
    return same && other->source == TRACE_PREDICTED;
}

/* The prediction of a measured trace, read as far as its spans. */
struct chrome_prediction {
    struct trace_reader *reader; /* NULL: none */
    struct trace_span span;
    bool more;
};

static enum status next_predicted(struct chrome_prediction *prediction, struct error *err)
{
    return trace_reader_span(prediction->reader, &prediction->span, &prediction->more, err);
}

/* Opens the prediction of trace `t`, if there is one. */
static enum status begin_prediction(const struct chrome *chrome, uint32_t t, struct chrome_prediction *out,
                                    struct error *err)
{
    *out = (struct chrome_prediction){0};
    if (!has_prediction(chrome, t)) return STATUS_OK;
    out->reader = chrome->readers[1 - t];
    TRY(trace_reader_rewind(out->reader, err));
    return next_predicted(out, err);
}

/* Finds the prediction of a span; *out is NULL when there is none. */
static enum status find_predicted(struct chrome_prediction *prediction, const struct trace_span *span,
                                  const struct trace_span **out, struct error *err)
{
    *out = NULL;
    while (prediction->reader && prediction->more && prediction->span.number < span->number)
        TRY(next_predicted(prediction, err));
    if (prediction->reader && prediction->more && prediction->span.number == span->number) *out = &prediction->span;
    return STATUS_OK;
}

/* --- arrows --------------------------------------------------------------------------------- */

static void write_flow_end(const struct chrome *chrome, uint32_t t, uint32_t s, bool begins, uint64_t time_ns)
{
    const struct trace_stream *stream = &chrome->traces[t]->streams[s];
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

/* Keeps a flow arrow. It starts inside the copy, because at the copy's very end it could belong to the next copy. */
static void keep_arrow(struct chrome *chrome, const struct trace_span *copy, const struct trace_span *compute)
{
    uint64_t start_ns = nanoseconds(copy->start_s), end_ns = nanoseconds(copy->end_s);
    const struct chrome_arrow arrow = {.from_ns = end_ns > start_ns ? end_ns - 1 : start_ns,
                                       .to_ns = nanoseconds(compute->start_s),
                                       .from_stream = copy->stream,
                                       .to_stream = compute->stream};
    spool_write(chrome->arrows, &arrow, sizeof arrow);
}

/* Returns true when `span` begins another task than the previous span's. */
static bool begins_task(const struct trace_span *before, const struct trace_span *span)
{
    return span->op_index == 0 || span->number != before->number + 1 || span->job != before->job ||
           span->shard != before->shard;
}

/* Keeps the arrows that end at a span, and the span if an arrow may begin there. */
static enum status note_arrows(struct chrome *chrome, const struct trace *trace, const struct trace_span *span,
                               struct error *err)
{
    uint32_t kind = trace->streams[span->stream].kind;
    if (chrome->span_count > 0 && begins_task(&chrome->last, span)) chrome->waiting_count = 0;
    if (span->kind == OP_COMPUTE) {
        for (size_t i = 0; i < chrome->waiting_count && kept(chrome, span); i++)
            if (chrome->waiting[i].end_s <= span->start_s) keep_arrow(chrome, &chrome->waiting[i], span);
        chrome->waiting_count = 0;
    } else if ((kind == STREAM_H2D || kind == STREAM_P2P) && kept(chrome, span)) {
        TRY(array_reserve(&chrome->waiting, &chrome->waiting_capacity, chrome->waiting_count, sizeof *span, SIZE_MAX,
                          "copies", err));
        chrome->waiting[chrome->waiting_count++] = *span;
    }
    return STATUS_OK;
}

static enum status write_arrows(struct chrome *chrome, uint32_t t, struct error *err)
{
    struct chrome_arrow arrow;
    for (uint64_t at = 0; at < spool_length(chrome->arrows); at += sizeof arrow) {
        TRY(spool_read(chrome->arrows, at, &arrow, sizeof arrow, err));
        chrome->flow_count++;
        write_flow_end(chrome, t, arrow.from_stream, true, arrow.from_ns);
        write_flow_end(chrome, t, arrow.to_stream, false, arrow.to_ns);
    }
    return STATUS_OK;
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

/* Reads the levels to the end of the trace. */
static enum status write_memory(const struct chrome *chrome, uint32_t t, double last_s, struct error *err)
{
    for (;;) {
        struct trace_level level;
        bool more;
        TRY(trace_reader_level(chrome->readers[t], &level, &more, err));
        if (!more) return STATUS_OK;
        if (level.time_s <= last_s)
            write_counter(chrome, process_id(chrome, t, level.place), "memory (GiB)", nanoseconds(level.time_s), "used",
                          (double)level.bytes * 0x1p-30);
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

static void keep_rate(struct chrome *chrome, uint32_t s, uint64_t time_ns, double gb_per_s)
{
    const struct chrome_rate rate = {.time_ns = time_ns, .gb_per_s = gb_per_s, .stream = s};
    spool_write(chrome->rates, &rate, sizeof rate);
}

static void note_rate(struct chrome *chrome, const struct trace_span *span)
{
    if (span->kind != OP_COPY || !kept(chrome, span)) return;
    uint64_t start_ns = nanoseconds(span->start_s), *end_ns = &chrome->ends_ns[span->stream];
    if (*end_ns > 0 && *end_ns < start_ns) keep_rate(chrome, span->stream, *end_ns, 0);
    keep_rate(chrome, span->stream, start_ns, copy_gb_per_s(span));
    *end_ns = nanoseconds(span->end_s);
}

static enum status write_rates(struct chrome *chrome, uint32_t t, struct error *err)
{
    struct chrome_rate rate;
    for (uint64_t at = 0; at < spool_length(chrome->rates); at += sizeof rate) {
        TRY(spool_read(chrome->rates, at, &rate, sizeof rate, err));
        write_rate(chrome, t, rate.stream, rate.time_ns, rate.gb_per_s);
    }
    for (uint32_t s = 0; s < chrome->traces[t]->stream_count; s++)
        if (chrome->ends_ns[s] > 0) write_rate(chrome, t, s, chrome->ends_ns[s], 0);
    return STATUS_OK;
}

/* --- the file ------------------------------------------------------------------------------- */

static bool too_long(double last_s)
{
    return last_s * 1e9 > time_max_ns;
}

static enum status add_span(struct chrome *chrome, uint32_t t, const struct trace_span *span,
                            struct chrome_prediction *prediction, struct error *err)
{
    const struct trace_span *predicted;
    if (kept(chrome, span)) chrome->last_s = fmax(chrome->last_s, span->end_s);
    if (!too_long(chrome->last_s)) {
        TRY(find_predicted(prediction, span, &predicted, err));
        if (kept(chrome, span)) write_span(chrome, t, span, predicted);
        TRY(note_arrows(chrome, chrome->traces[t], span, err));
        note_rate(chrome, span);
    }
    chrome->last = *span;
    chrome->span_count++;
    return STATUS_OK;
}

/* Writes the spans, and keeps arrows and rates. */
static enum status write_spans(struct chrome *chrome, uint32_t t, struct error *err)
{
    struct chrome_prediction prediction;
    TRY(begin_prediction(chrome, t, &prediction, err));
    TRY(trace_reader_rewind(chrome->readers[t], err));
    for (;;) {
        struct trace_span span;
        bool more;
        TRY(trace_reader_span(chrome->readers[t], &span, &more, err));
        if (!more) return STATUS_OK;
        TRY(add_span(chrome, t, &span, &prediction, err));
    }
}

static enum status write_events(struct chrome *chrome, uint32_t t, struct error *err)
{
    const struct trace *trace = chrome->traces[t];
    TRY(write_spans(chrome, t, err));
    double last_s = chrome->span_count == 0 ? trace->makespan_s : chrome->last_s;
    if (too_long(last_s)) {
        uint64_t count;
        TRY(trace_reader_finish(chrome->readers[t], &count, err));
        return error_set(err, STATUS_LIMIT,
                         "the %s trace lasts %.0f s (limit of this format is %.0f s)",
                         trace_source_names[trace->source], last_s, time_max_ns / 1e9);
    }
    TRY(write_arrows(chrome, t, err));
    TRY(write_memory(chrome, t, last_s, err));
    return write_rates(chrome, t, err);
}

/* `path` is the file that is written. */
static enum status write_trace(struct chrome *chrome, uint32_t t, const char *path, struct error *err)
{
    uint32_t streams = chrome->traces[t]->stream_count;
    chrome->ends_ns = alloc_zeroed(streams, sizeof *chrome->ends_ns);
    enum status status =
        chrome->ends_ns ? spool_create(path, &chrome->arrows, err) : error_memory(err, "writing a trace", streams);
    if (status == STATUS_OK) status = spool_create(path, &chrome->rates, err);
    chrome->waiting_count = chrome->span_count = 0;
    chrome->last_s = 0;
    if (status == STATUS_OK) {
        write_processes(chrome, t);
        status = write_events(chrome, t, err);
    }
    spool_destroy(chrome->arrows);
    spool_destroy(chrome->rates);
    free(chrome->ends_ns);
    free(chrome->waiting);
    chrome->arrows = chrome->rates = NULL;
    chrome->ends_ns = NULL;
    chrome->waiting = NULL;
    chrome->waiting_capacity = 0;
    return status;
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

enum status chrome_write(struct trace_reader *const *readers, uint32_t trace_count,
                         uint64_t minibatch_limit, const char *path, struct error *err)
{
    assert(trace_count >= 1 && trace_count <= CHROME_TRACES_MAX);
    struct chrome chrome = {.readers = readers, .trace_count = trace_count, .minibatch_limit = minibatch_limit};
    for (uint32_t t = 0; t < trace_count; t++) chrome.traces[t] = trace_reader_head(readers[t]);
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
        status = write_trace(&chrome, t, path, err);
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
    return status;
}
