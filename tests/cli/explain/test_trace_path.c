/*
 * cli/explain/trace_path.h and traces/exchange/chrome_read.h: the path of a trace without its plan against a path
 * found by comparing all pairs, from memory and from files, in windows of several sizes; the memory that a long trace
 * takes; other programs' traces and their faults.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/files/file_in.h"
#include "base/random.h"
#include "base/size.h"
#include "cli/explain/trace_path.h"
#include "planner/plan.h"
#include "tests/support/sim/support_traces.h"
#include "tests/support/sim/support_traces_long.h"
#include "tests/support/support_seed.h"
#include "traces/exchange/chrome_read.h"

/* --- paths ------------------------------------------------------------------------------------- */

enum { STREAMS = 5, SPANS = 700, JOBS = 2 };

/* Spans of a stream follow each other; numbers are their places. A tenth take no time. */
static void draw(uint64_t seed, struct trace *trace, struct trace_stream *streams, struct trace_span *spans,
                 struct trace_job *jobs)
{
    double free_s[STREAMS] = {0};
    for (uint32_t s = 0; s < STREAMS; s++)
        streams[s] = (struct trace_stream){.name = "s", .device = s / 2, .kind = STREAM_COMPUTE};
    for (uint32_t i = 0; i < SPANS; i++) {
        uint32_t stream = (uint32_t)random_below(seed, 4 * i, STREAMS);
        double gap_s = (double)random_below(seed, 4 * i + 1, 3), seconds = (double)random_below(seed, 4 * i + 2, 10);
        spans[i] = (struct trace_span){.start_s = free_s[stream] + gap_s, .end_s = free_s[stream] + gap_s + seconds,
                                       .number = i,
                                       .stream = stream, .job = (uint32_t)random_below(seed, 4 * i + 3, 2)};
        free_s[stream] = spans[i].end_s;
    }
    jobs[0] = jobs[1] = (struct trace_job){.name = "j"};
    *trace = (struct trace){.streams = streams, .stream_count = STREAMS, .jobs = jobs, .job_count = 2, .spans = spans,
                            .span_count = SPANS};
}

static uint32_t closeness(const struct trace *trace, const struct trace_span *a, const struct trace_span *b)
{
    bool device = trace->streams[a->stream].device == trace->streams[b->stream].device;
    return (a->stream == b->stream ? 4u : 0u) + (device ? 2u : 0u) + (a->job == b->job ? 1u : 0u);
}

static bool ends_later(const struct trace_span *a, const struct trace_span *b)
{
    return a->end_s > b->end_s || (!(a->end_s < b->end_s) && a->number > b->number);
}

/* Returns the operation that `span` waited for, by all pairs; NULL: none had ended. */
static const struct trace_span *awaited_by(const struct trace *trace, const struct trace_span *span)
{
    const struct trace_span *latest = NULL, *best = NULL;
    for (uint64_t k = 0; k < trace->span_count; k++) {
        const struct trace_span *other = &trace->spans[k];
        if (!(other->end_s > other->start_s) || other->end_s > span->start_s) continue;
        if (!latest || ends_later(other, latest)) latest = other;
    }
    for (uint64_t k = 0; latest && k < trace->span_count; k++) {
        const struct trace_span *other = &trace->spans[k];
        if (!(other->end_s > other->start_s) || other->end_s > span->start_s || other->end_s < latest->end_s - 1e-6)
            continue;
        uint32_t close = closeness(trace, other, span), closest = best ? closeness(trace, best, span) : 0;
        if (!best || close > closest || (close == closest && ends_later(other, best))) best = other;
    }
    return best;
}

struct expected {
    double begin_s, end_s, gap_s, stream_s[STREAMS], awaited_s[STREAMS][STREAMS];
    uint64_t operations, job_operations[JOBS];
};

static void expect(const struct trace *trace, struct expected *out)
{
    const struct trace_span *at = NULL;
    *out = (struct expected){.begin_s = INFINITY};
    for (uint64_t i = 0; i < trace->span_count; i++) {
        const struct trace_span *span = &trace->spans[i];
        if (!(span->end_s > span->start_s)) continue;
        out->begin_s = fmin(out->begin_s, span->start_s);
        if (!at || ends_later(span, at)) at = span;
    }
    for (out->end_s = at->end_s; at;) {
        const struct trace_span *before = awaited_by(trace, at);
        out->operations++;
        out->job_operations[at->job]++;
        out->stream_s[at->stream] += at->end_s - at->start_s;
        out->gap_s += at->start_s - (before ? before->end_s : out->begin_s);
        if (before && before->stream != at->stream)
            out->awaited_s[at->stream][before->stream] += before->end_s - before->start_s;
        at = before;
    }
}

/* Times are whole seconds, so sums are exact. */
static void check_path(struct trace_reader *reader, const struct expected *expected, uint64_t window_spans)
{
    struct explain_path path;
    struct arena arena = {0};
    struct error err = {0};
    double seconds = 0, awaited_s = 0;
    if (explain_trace_path(reader, "t", window_spans, &arena, &path, &err)) fail_msg("%s", err.text);
    assert_true(path.makespan_s == expected->end_s - expected->begin_s);
    assert_int_equal(path.operations, expected->operations);
    assert_true(path.gap_s == expected->gap_s);
    for (uint32_t s = 0; s < STREAMS; s++) {
        seconds += path.streams[s].seconds;
        assert_true(path.streams[s].seconds == expected->stream_s[s]);
        for (uint32_t k = 0; k < STREAMS; k++) awaited_s += expected->awaited_s[s][k];
    }
    for (uint32_t j = 0; j < JOBS; j++) assert_int_equal(path.jobs[j].operations, expected->job_operations[j]);
    for (size_t i = 0; i < path.handover_count; i++) {
        const struct explain_handover *handover = &path.handovers[i];
        assert_true(handover->awaited_s == expected->awaited_s[handover->waiter][handover->awaited]);
        awaited_s -= handover->awaited_s;
    }
    assert_true(awaited_s == 0);
    assert_true(fabs(seconds + path.gap_s - path.makespan_s) < 1e-6);
    arena_release(&arena);
}

static void paths_are_those_of_all_pairs(void **state)
{
    (void)state;
    uint64_t seed = support_seed("paths");
    for (uint64_t n = 0; n < 60; n++) {
        struct trace trace;
        struct trace_stream streams[STREAMS];
        struct trace_span spans[SPANS];
        struct trace_job jobs[JOBS];
        struct trace_reader *reader;
        struct expected expected;
        struct error err = {0};
        draw(random_u64(seed, n), &trace, streams, spans, jobs);
        expect(&trace, &expected);
        if (trace_reader_of(&trace, &reader, &err)) fail_msg("%s", err.text);
        check_path(reader, &expected, SPANS);
        check_path(reader, &expected, EXPLAIN_ALIKE_MOST);
        check_path(reader, &expected, EXPLAIN_ALIKE_MOST + random_below(seed, n, SPANS));
        trace_reader_close(reader);
    }
}

static void a_trace_of_nothing_is_refused(void **state)
{
    (void)state;
    struct trace_stream stream = {.name = "s"};
    struct trace_span span = {.start_s = 2, .end_s = 2};
    const struct trace trace = {.streams = &stream, .stream_count = 1, .spans = &span, .span_count = 1};
    struct arena arena = {0};
    struct trace_reader *reader;
    struct explain_path path;
    struct error err = {0};
    assert_int_equal(trace_reader_of(&trace, &reader, &err), STATUS_OK);
    assert_int_equal(explain_trace_path(reader, "t", EXPLAIN_WINDOW_SPANS, &arena, &path, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "t: the trace has no operations that last");
    trace_reader_close(reader);
    arena_release(&arena);
}

/* --- long traces ---------------------------------------------------------------------------------- */

enum { LONG_SPANS = 300000 };

/* Span k is on stream k % 2 and begins 0.125 s after the end of span k - 1, so all spans are on the path. */
static int explain(const void *context)
{
    struct trace_reader *reader;
    struct explain_path path;
    struct arena arena = {0};
    struct error err = {0};
    if (!context) return 0;
    if (trace_reader_open(context, NULL, &reader, &err)) return 1;
    bool right = explain_trace_path(reader, context, EXPLAIN_ALIKE_MOST, &arena, &path, &err) == STATUS_OK &&
                 path.operations == LONG_SPANS && path.handover_count == 2 &&
                 path.handovers[0].count + path.handovers[1].count == LONG_SPANS - 1 &&
                 fabs(path.streams[1].seconds - 0.375 * LONG_SPANS / 2) < 1e-6 &&
                 fabs(path.gap_s - 0.125 * (LONG_SPANS - 1)) < 1e-6;
    trace_reader_close(reader);
    arena_release(&arena);
    return !right;
}

/* Spans that were kept, with times and waits, would take 39 MiB. */
static void memory_does_not_grow(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* sanitizers keep freed memory */
#endif
    static const char *const names[] = {"long.json", "long.json.gz"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        const char *path = support_path(names[i]);
        support_write_long(path, &(struct support_long){.span_count = LONG_SPANS, .version = TRACE_VERSION});
        long least = support_peak_kib(explain, NULL), most = support_peak_kib(explain, path);
        print_message("%s: %ld KiB more than %ld\n", names[i], most - least, least);
        assert_true(most - least < 4096);
    }
    support_clean();
}

/* A trace without an index is one window. */
static void old_traces_have_paths(void **state)
{
    (void)state;
    const char *path = support_path("old.json");
    support_write_long(path, &(struct support_long){.span_count = LONG_SPANS, .version = 1});
    assert_int_equal(explain(path), 0);
    support_clean();
}

/* --- other programs' traces ---------------------------------------------------------------------- */

/* A profiler's: the processor's event does not count, since a GPU's are there. The second product begins while the
 * first runs: it is taken to begin with its end, at 1430.25. */
static const char profiled[] =
    "{\"traceEvents\": [\n"
    "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"pid\": 42, \"tid\": 42, \"ts\": 900, "
    "\"dur\": 2000},\n"
    "{\"ph\": \"X\", \"cat\": \"gpu_memcpy\", \"name\": \"Memcpy HtoD (Pinned -> Device)\", \"pid\": 0, \"tid\": 7, "
    "\"ts\": 1000.5, \"dur\": 300},\n"
    "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"sgemm\", \"pid\": 0, \"tid\": 7, \"ts\": 1310, "
    "\"dur\": 120.25},\n"
    "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"sgemm\", \"pid\": 0, \"tid\": 7, \"ts\": 1420, \"dur\": 150},\n"
    "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ncclAllReduce\", \"pid\": 0, \"tid\": \"20\", \"ts\": 1570, "
    "\"dur\": 400},\n"
    "{\"ph\": \"i\", \"name\": \"mark\", \"pid\": 0, \"tid\": 7, \"ts\": 1},\n"
    "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 0, \"args\": {\"name\": \"GPU 0\"}},\n"
    "{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": 0, \"tid\": 7, \"args\": {\"name\": \"stream 7\"}}]}";

static bool recognised(const char *text, size_t length)
{
    struct file_in *file;
    struct error err = {0};
    bool found = false;
    if (file_in_of_text("t", text, length, &file, &err) || chrome_recognise(file, &found, &err))
        fail_msg("%s", err.text);
    file_in_close(file);
    return found;
}

static void a_profiler_s_trace_is_read(void **state)
{
    (void)state;
    struct trace trace = {0};
    struct error err = {0};
    assert_true(recognised(profiled, strlen(profiled)));
    if (chrome_parse("k.json", profiled, strlen(profiled), &trace, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_int_equal(trace.span_count, 4);
    assert_int_equal(trace.stream_count, 3);
    assert_string_equal(trace.streams[0].name, "GPU 0, stream 7 h2d");
    assert_string_equal(trace.streams[1].name, "GPU 0, stream 7");
    assert_string_equal(trace.streams[2].name, "GPU 0, 20 data");
    assert_int_equal(trace.streams[0].device, trace.streams[2].device);
    assert_true(fabs(trace.spans[0].end_s - 300e-6) < 1e-12);
    assert_true(fabs(trace.spans[2].start_s - 429.75e-6) < 1e-12); /* 1430.25 less 1000.5 */
    assert_true(fabs(trace.makespan_s - 969.5e-6) < 1e-12);
    assert_int_equal(trace.job_count, 3);
    assert_string_equal(trace.jobs[0].name, "ncclAllReduce"); /* 400 us, 300 us, 260 us */
    assert_string_equal(trace.jobs[2].name, "sgemm");
    trace_release(&trace);
}

/* Without a GPU, the outermost spans of each track count, here 10 to 60 and 70 to 75. A bare array is a trace, too. */
static const char nested[] =
    "[{\"ph\": \"X\", \"name\": \"in\", \"pid\": \"p\", \"tid\": 1, \"ts\": 20, \"dur\": 5},"
    " {\"ph\": \"X\", \"name\": \"out\", \"pid\": \"p\", \"tid\": 1, \"ts\": 10, \"dur\": 50},"
    " {\"ph\": \"X\", \"name\": \"last\", \"pid\": \"p\", \"tid\": 1, \"ts\": 70, \"dur\": 5}]";

static void what_is_nested_does_not_count_twice(void **state)
{
    (void)state;
    struct trace trace = {0};
    struct error err = {0};
    if (chrome_parse("n.json", nested, strlen(nested), &trace, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_int_equal(trace.span_count, 2);
    assert_string_equal(trace.jobs[trace.spans[0].job].name, "out");
    assert_true(fabs(trace.makespan_s - 65e-6) < 1e-12);
    trace_release(&trace);
}

/* 21 signs of 3 bytes and one more, of which 64 bytes have a third: it is left out. */
static void long_names_end_with_a_character(void **state)
{
    (void)state;
    static const char sign[] = "\xe2\x88\x91";
    char text[256] = "[{\"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"ts\": 4, \"dur\": 9, \"name\": \"", expected[128] = "";
    struct trace trace = {0};
    struct error err = {0};
    for (int i = 0; i < 22; i++) strcat(text, sign);
    for (int i = 0; i < 21; i++) strcat(expected, sign);
    strcat(text, "\"}]");
    strcat(expected, "...");
    if (chrome_parse("s.json", text, strlen(text), &trace, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_string_equal(trace.jobs[0].name, expected);
    trace_release(&trace);
}

static void what_is_wrong_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{\"traceEvents\": [{\"ph\": \"X\", \"ts\": 1}]}",
         "t:1:18: an event's 'dur' is missing (expected microseconds)"},
        {"{\"traceEvents\": [{\"ph\": \"X\", \"ts\": \"1\", \"dur\": 1}]}",
         "t:1:36: an event's 'ts' is no number (expected microseconds)"},
        {"[{\"ph\": \"X\", \"ts\": 1, \"dur\": -4}]", "t:1:30: an event lasts -4 microseconds (expected 0 or more)"},
        {"[3]", "t:1:2: no event (expected an object)"},
        {"[]", "t: no event has a duration (expected events of phase 'X')"},
        {"{\"traceEvents\": 3}", "t:1:1: no events (expected an array, or an object with 'traceEvents')"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct trace trace = {0};
        struct error err = {0};
        assert_int_equal(chrome_parse("t", cases[c].text, strlen(cases[c].text), &trace, &err), STATUS_BAD_INPUT);
        assert_string_equal(err.text, cases[c].message);
        trace_release(&trace);
    }
    assert_false(recognised("{\"spillway_plan\": 1}", 20));
    static char far[200000];
    memset(far, ' ', sizeof far);
    memcpy(far, "{\"a\": 0,", 8);
    memcpy(far + sizeof far - 18, "\"traceEvents\": []}", 18);
    assert_true(recognised(far, sizeof far));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_those_of_all_pairs),  cmocka_unit_test(a_trace_of_nothing_is_refused),
        cmocka_unit_test(memory_does_not_grow),          cmocka_unit_test(old_traces_have_paths),
        cmocka_unit_test(a_profiler_s_trace_is_read),    cmocka_unit_test(what_is_nested_does_not_count_twice),
        cmocka_unit_test(long_names_end_with_a_character), cmocka_unit_test(what_is_wrong_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
