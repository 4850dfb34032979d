/*
 * cli/explain/trace_times.h and traces/exchange/chrome_read.h: the path of a trace without its plan against a path
 * found by comparing all pairs, its parts against the makespan; other programs' traces and their faults.
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
#include "cli/explain/critical_path.h"
#include "cli/explain/trace_times.h"
#include "planner/plan.h"
#include "tests/support/support_seed.h"
#include "traces/exchange/chrome_read.h"

/* --- paths ------------------------------------------------------------------------------------- */

enum { STREAMS = 5, SPANS = 120 };

/* Spans of a stream follow each other; numbers are their places. A tenth take no time. */
static void draw(uint64_t seed, struct trace *trace, struct trace_stream *streams, struct trace_span *spans,
                 struct trace_job *jobs)
{
    double free_s[STREAMS] = {0};
    for (uint32_t s = 0; s < STREAMS; s++) streams[s] = (struct trace_stream){.name = "s", .device = s / 2, .kind = STREAM_COMPUTE};
    for (uint32_t i = 0; i < SPANS; i++) {
        uint32_t stream = (uint32_t)random_below(seed, 4 * i, STREAMS);
        double gap_s = (double)random_below(seed, 4 * i + 1, 3), seconds = (double)random_below(seed, 4 * i + 2, 10);
        spans[i] = (struct trace_span){.start_s = free_s[stream] + gap_s, .end_s = free_s[stream] + gap_s + seconds, .number = i,
                                       .stream = stream, .job = (uint32_t)random_below(seed, 4 * i + 3, 2)};
        free_s[stream] = spans[i].end_s;
    }
    jobs[0] = jobs[1] = (struct trace_job){.name = "j"};
    *trace = (struct trace){.streams = streams, .stream_count = STREAMS, .jobs = jobs, .job_count = 2, .spans = spans,
                            .span_count = SPANS};
}

/* Returns the latest end by which the operation could begin, by all pairs. */
static double awaited_end_s(const struct trace *trace, uint64_t i, double begin_s)
{
    double latest_s = begin_s;
    for (uint64_t k = 0; k < trace->span_count; k++) {
        const struct trace_span *other = &trace->spans[k];
        if (other->end_s > other->start_s && other->end_s <= trace->spans[i].start_s) latest_s = fmax(latest_s, other->end_s);
    }
    return latest_s;
}

static void check_path(const struct trace *trace, struct arena *arena)
{
    struct explain_times times;
    struct explain_schedule schedule;
    struct explain_path path;
    struct error err = {0};
    double begin_s = INFINITY, end_s = 0, seconds = 0;
    assert_int_equal(explain_trace_times(trace, arena, &times, &schedule, &err), STATUS_OK);
    for (uint64_t i = 0; i < trace->span_count; i++) {
        if (!(trace->spans[i].end_s > trace->spans[i].start_s)) continue;
        begin_s = fmin(begin_s, trace->spans[i].start_s);
        end_s = fmax(end_s, trace->spans[i].end_s);
    }
    assert_true(fabs(schedule.makespan_s - (end_s - begin_s)) < 1e-9);
    for (uint64_t at = schedule.last; at != EXPLAIN_NOBODY; at = schedule.decisive[at]) {
        double awaited_s = awaited_end_s(trace, at, begin_s);
        assert_true(fabs(trace->spans[at].start_s - times.gap_s[at] - awaited_s) < 1e-5);
        uint64_t before = schedule.decisive[at];
        if (before != EXPLAIN_NOBODY) assert_true(fabs(trace->spans[before].end_s - awaited_s) < 1e-5);
    }
    assert_int_equal(explain_path_find(trace, &times, &schedule, arena, &path, &err), STATUS_OK);
    for (uint32_t s = 0; s < path.stream_count; s++) seconds += path.streams[s].seconds;
    assert_true(fabs(seconds + path.gap_s - path.makespan_s) < 1e-6);
}

static void paths_are_those_of_all_pairs(void **state)
{
    (void)state;
    uint64_t seed = support_seed("paths");
    for (uint64_t n = 0; n < 200; n++) {
        struct trace trace;
        struct trace_stream streams[STREAMS];
        struct trace_span spans[SPANS];
        struct trace_job jobs[2];
        struct arena arena = {0};
        draw(random_u64(seed, n), &trace, streams, spans, jobs);
        check_path(&trace, &arena);
        arena_release(&arena);
    }
}

static void a_trace_of_nothing_is_refused(void **state)
{
    (void)state;
    struct trace_stream stream = {.name = "s"};
    struct trace_span span = {.start_s = 2, .end_s = 2};
    const struct trace trace = {.streams = &stream, .stream_count = 1, .spans = &span, .span_count = 1};
    struct arena arena = {0};
    struct explain_times times;
    struct explain_schedule schedule;
    struct error err = {0};
    assert_int_equal(explain_trace_times(&trace, &arena, &times, &schedule, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "the trace has no operations that last");
    arena_release(&arena);
}

/* --- other programs' traces ---------------------------------------------------------------------- */

/* A profiler's: the processor's event does not count, since a GPU's are there. The second product begins while the
 * first runs: it is taken to begin with its end, at 1430.25. */
static const char profiled[] =
    "{\"traceEvents\": [\n"
    "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"pid\": 42, \"tid\": 42, \"ts\": 900, \"dur\": 2000},\n"
    "{\"ph\": \"X\", \"cat\": \"gpu_memcpy\", \"name\": \"Memcpy HtoD (Pinned -> Device)\", \"pid\": 0, \"tid\": 7, \"ts\": 1000.5, \"dur\": 300},\n"
    "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"sgemm\", \"pid\": 0, \"tid\": 7, \"ts\": 1310, \"dur\": 120.25},\n"
    "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"sgemm\", \"pid\": 0, \"tid\": 7, \"ts\": 1420, \"dur\": 150},\n"
    "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ncclAllReduce\", \"pid\": 0, \"tid\": \"20\", \"ts\": 1570, \"dur\": 400},\n"
    "{\"ph\": \"i\", \"name\": \"mark\", \"pid\": 0, \"tid\": 7, \"ts\": 1},\n"
    "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 0, \"args\": {\"name\": \"GPU 0\"}},\n"
    "{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": 0, \"tid\": 7, \"args\": {\"name\": \"stream 7\"}}]}";

static bool recognised(const char *text, size_t length)
{
    struct file_in *file;
    struct error err = {0};
    bool found = false;
    if (file_in_of_text("t", text, length, &file, &err) || chrome_recognise(file, &found, &err)) fail_msg("%s", err.text);
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
        {"{\"traceEvents\": [{\"ph\": \"X\", \"ts\": 1}]}", "t:1:18: an event's 'dur' is missing (expected microseconds)"},
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
        cmocka_unit_test(a_profiler_s_trace_is_read),    cmocka_unit_test(what_is_nested_does_not_count_twice),
        cmocka_unit_test(long_names_end_with_a_character), cmocka_unit_test(what_is_wrong_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
