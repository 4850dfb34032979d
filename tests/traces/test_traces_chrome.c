/* traces/exchange/chrome.h, judged from outside: jansson reads the file and the rules are recomputed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/random.h"
#include "planner/plan.h"
#include "tests/support/sim/support_traces.h"
#include "traces/exchange/chrome.h"

/* --- the judge ------------------------------------------------------------------------------ */

struct event {
    json_int_t pid, tid;
    int64_t start_ns, end_ns;
};

static int by_track(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    if (x->pid != y->pid) return x->pid < y->pid ? -1 : 1;
    if (x->tid != y->tid) return x->tid < y->tid ? -1 : 1;
    if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
    return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

static const char *text_of(const json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));
    return text ? text : "";
}

static json_int_t integer_of(const json_t *event, const char *key)
{
    return json_integer_value(json_object_get(event, key));
}

static double argument(const json_t *event, const char *key)
{
    const json_t *value = json_object_get(json_object_get(event, "args"), key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

/* As the strictest reader does: multiply and cut off. */
static int64_t cut_ns(const json_t *event, const char *key)
{
    const json_t *value = json_object_get(event, key);
    assert_true(json_is_number(value));
    double time_us = json_number_value(value);
    assert_true(time_us >= 0);
    int64_t time_ns = (int64_t)(time_us * 1000);
    assert_int_equal(time_ns, llround(time_us * 1000)); /* another reader sees the same */
    return time_ns;
}

static json_t *load(const char *path)
{
    gzFile file = gzopen(path, "rb"); /* reads plain files as well */
    assert_non_null(file);
    size_t length = 0, capacity = 1 << 24;
    char *text = malloc(capacity);
    assert_non_null(text);
    for (int got = 1; got > 0; length += (size_t)got)
        got = gzread(file, text + length, (unsigned)(capacity - length));
    assert_true(length < capacity);
    gzclose(file);
    json_error_t error;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (!root) fail_msg("%s:%d:%d: %s", path, error.line, error.column, error.text);
    free(text);
    return root;
}

static size_t count_phase(const json_t *root, const char *phase)
{
    const json_t *events = json_object_get(root, "traceEvents");
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(events); i++)
        count += strcmp(text_of(json_array_get(events, i), "ph"), phase) == 0;
    return count;
}

static void no_track_overlaps(const json_t *root)
{
    const json_t *events = json_object_get(root, "traceEvents");
    struct event *tracks = calloc(json_array_size(events), sizeof *tracks);
    assert_non_null(tracks);
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        if (strcmp(text_of(event, "ph"), "X") != 0) continue;
        int64_t start_ns = cut_ns(event, "ts");
        tracks[count++] = (struct event){integer_of(event, "pid"), integer_of(event, "tid"),
                                         start_ns, start_ns + cut_ns(event, "dur")};
    }
    qsort(tracks, count, sizeof *tracks, by_track);
    for (size_t i = 1; i < count; i++)
        if (tracks[i].pid == tracks[i - 1].pid && tracks[i].tid == tracks[i - 1].tid)
            assert_true(tracks[i].start_ns >= tracks[i - 1].end_ns);
    free(tracks);
}

/* Every process and thread that has events has a name, once. */
static void tracks_are_named(const json_t *root)
{
    const json_t *events = json_object_get(root, "traceEvents");
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        if (strcmp(text_of(event, "ph"), "X") != 0) continue;
        int processes = 0, threads = 0;
        for (size_t k = 0; k < json_array_size(events); k++) {
            const json_t *meta = json_array_get(events, k);
            if (strcmp(text_of(meta, "ph"), "M") != 0) continue;
            if (integer_of(meta, "pid") != integer_of(event, "pid")) continue;
            processes += strcmp(text_of(meta, "name"), "process_name") == 0;
            threads += strcmp(text_of(meta, "name"), "thread_name") == 0 &&
                       integer_of(meta, "tid") == integer_of(event, "tid");
        }
        assert_int_equal(processes, 1);
        assert_int_equal(threads, 1);
    }
}

static void counters_stay_within(const json_t *root, const char *name, const char *key, double max)
{
    const json_t *events = json_object_get(root, "traceEvents");
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        if (strcmp(text_of(event, "ph"), "C") != 0 || strcmp(text_of(event, "name"), name) != 0)
            continue;
        count++;
        assert_true(argument(event, key) >= 0 && argument(event, key) <= max);
    }
    assert_true(count > 0);
}

/* Arrows come in pairs that go forward in time, and begin and end inside an event of their track. */
static void arrows_bind(const json_t *root)
{
    const json_t *events = json_object_get(root, "traceEvents");
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *from = json_array_get(events, i);
        if (strcmp(text_of(from, "ph"), "s") != 0) continue;
        size_t ends = 0, starts_inside = 0, ends_at_start = 0;
        for (size_t k = 0; k < json_array_size(events); k++) {
            const json_t *to = json_array_get(events, k);
            const char *phase = text_of(to, "ph");
            if (strcmp(phase, "f") == 0 && integer_of(to, "id") == integer_of(from, "id")) {
                ends++;
                assert_string_equal(text_of(to, "bp"), "e");
                assert_true(cut_ns(to, "ts") >= cut_ns(from, "ts"));
                for (size_t x = 0; x < json_array_size(events); x++) {
                    const json_t *use = json_array_get(events, x);
                    ends_at_start += strcmp(text_of(use, "ph"), "X") == 0 &&
                                     integer_of(use, "pid") == integer_of(to, "pid") &&
                                     integer_of(use, "tid") == integer_of(to, "tid") &&
                                     cut_ns(use, "ts") == cut_ns(to, "ts");
                }
            }
            if (strcmp(phase, "X") == 0 && strcmp(text_of(to, "cat"), "h2d") == 0 &&
                integer_of(to, "pid") == integer_of(from, "pid") &&
                cut_ns(to, "ts") <= cut_ns(from, "ts") &&
                cut_ns(to, "ts") + cut_ns(to, "dur") > cut_ns(from, "ts"))
                starts_inside++;
        }
        assert_int_equal(ends, 1);
        assert_int_equal(starts_inside, 1);
        assert_int_equal(ends_at_start, 1);
    }
}

static const json_t *find_event(const json_t *root, const char *name, json_int_t pid)
{
    const json_t *events = json_object_get(root, "traceEvents");
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        if (strcmp(text_of(event, "name"), name) == 0 && integer_of(event, "pid") == pid)
            return event;
    }
    fail_msg("no event '%s'", name);
    return NULL;
}

/* --- tests ---------------------------------------------------------------------------------- */

/* Writes traces in memory. */
static enum status write_traces(const struct trace *const *traces, uint32_t count, uint64_t minibatches,
                                const char *path, struct error *err)
{
    struct trace_reader *readers[CHROME_TRACES_MAX] = {NULL};
    enum status status = STATUS_OK;
    for (uint32_t t = 0; t < count && status == STATUS_OK; t++) status = trace_reader_of(traces[t], &readers[t], err);
    if (status == STATUS_OK) status = chrome_write(readers, count, minibatches, path, err);
    for (uint32_t t = 0; t < count; t++) trace_reader_close(readers[t]);
    return status;
}

static void one_trace(void **state)
{
    (void)state;
    struct trace trace;
    struct error err = {0};
    support_scene(&trace, TRACE_PREDICTED, 1);
    const struct trace *traces[] = {&trace};
    assert_int_equal(write_traces(traces, 1, 0, support_path("one.json"), &err), STATUS_OK);
    json_t *root = load(support_path("one.json"));
    assert_int_equal(count_phase(root, "X"), 11);
    assert_int_equal(count_phase(root, "M"), 3 * 2 + 7 * 2); /* name and place, of each */
    assert_int_equal(count_phase(root, "s"), 4);             /* the four H2D copies */
    assert_int_equal(count_phase(root, "f"), 4);
    /* 6 levels; rates: gpu0 h2d 0.125 .. 0.25 .. 0.375 | 0.5 .. 0.625: 3 starts, 2 ends; gpu0 d2h
       0.875 .. 1 | 1.25 .. 1.4375: 2 and 2; gpu1 h2d: 1 and 1 */
    assert_int_equal(count_phase(root, "C"), 6 + 5 + 4 + 2);
    no_track_overlaps(root);
    tracks_are_named(root);
    arrows_bind(root);
    counters_stay_within(root, "memory (GiB)", "used", 21);
    counters_stay_within(root, "h2d (GB/s)", "rate", 19.2); /* 2.4 GB in 0.125 s */
    counters_stay_within(root, "d2h (GB/s)", "rate", 19.2);

    const json_t *copy = find_event(root, "alpha shard 1 h2d", 2); /* host 1, gpu0 2, gpu1 3 */
    assert_string_equal(text_of(copy, "cat"), "h2d");
    assert_near(argument(copy, "GBps"), 19.2, 1e-9);
    assert_near(argument(copy, "bytes"), 2.4e9, 0);
    assert_near(argument(copy, "shard"), 1, 0);
    assert_int_equal(cut_ns(copy, "ts"), 250000000);
    assert_int_equal(cut_ns(copy, "dur"), 125000000);
    assert_null(json_object_get(json_object_get(copy, "args"), "predicted_us"));
    assert_string_equal(text_of(find_event(root, "alpha shard 1 loss", 2), "cat"), "loss");
    assert_string_equal(text_of(find_event(root, "alpha shard 0 backward", 2), "cat"), "backward");
    assert_string_equal(text_of(find_event(root, "alpha shard 0 batch", 1), "cat"), "batch");
    assert_string_equal(text_of(find_event(root, "beta shard 0 forward", 3), "cat"), "forward");
    const json_t *other = json_object_get(root, "otherData");
    assert_string_equal(text_of(other, "plan"), "0123456789abcdef");
    assert_string_equal(text_of(other, "made_by"), "spillway " SPILLWAY_VERSION);
    json_decref(root);
    trace_release(&trace);
    support_clean();
}

static void a_prediction_and_its_measurement(void **state)
{
    (void)state;
    struct trace predicted, measured;
    struct error err = {0};
    support_scene(&predicted, TRACE_PREDICTED, 1);
    support_scene(&measured, TRACE_MEASURED, 1.1);
    const struct trace *traces[] = {&predicted, &measured};
    assert_int_equal(write_traces(traces, 2, 0, support_path("two.json.gz"), &err), STATUS_OK);
    size_t length;
    char *raw = support_slurp(support_path("two.json.gz"), &length);
    assert_memory_equal(raw, "\x1f\x8b", 2);
    free(raw);
    json_t *root = load(support_path("two.json.gz"));
    assert_int_equal(count_phase(root, "X"), 22);
    assert_int_equal(count_phase(root, "s"), 8);
    no_track_overlaps(root);
    tracks_are_named(root);
    arrows_bind(root);
    /* processes: predicted and measured host 1, 2; gpu0 3, 4; gpu1 5, 6 */
    const json_t *loss = find_event(root, "alpha shard 1 loss", 4);
    assert_near(argument(loss, "predicted_us"), 437500, 1e-6); /* 0.875 - 0.4375 */
    assert_int_equal(cut_ns(loss, "dur"), 481250000);          /* 1.1 times that */
    json_decref(root);

    measured.plan_fingerprint++; /* another plan: its numbers mean something else */
    assert_int_equal(write_traces(traces, 2, 0, support_path("two.json"), &err), STATUS_OK);
    root = load(support_path("two.json"));
    loss = find_event(root, "alpha shard 1 loss", 4);
    assert_null(json_object_get(json_object_get(loss, "args"), "predicted_us"));
    json_decref(root);
    trace_release(&predicted);
    trace_release(&measured);
    support_clean();
}

/* Spans that touch, of lengths around a nanosecond and far away from zero. */
static void rounding_makes_no_overlap(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    struct span_row *rows = calloc(COUNT, sizeof *rows);
    assert_non_null(rows);
    double now_s = 86400.0 / 7;
    for (uint32_t i = 0; i < COUNT; i++) {
        double length_s = random_unit(11, i) * (i % 3 == 0 ? 2e-9 : 1e-4);
        rows[i] = (struct span_row){GPU0, 0, 0, PLAN_FORWARD, 0, i / 500, now_s, now_s + length_s, 0};
        now_s += length_s;
    }
    struct trace trace;
    struct error err = {0};
    support_trace(&trace, TRACE_MEASURED, rows, COUNT, NULL, 0);
    assert_int_equal(trace_check(&trace, &err), STATUS_OK);
    const struct trace *traces[] = {&trace};
    assert_int_equal(write_traces(traces, 1, 0, support_path("fine.json"), &err), STATUS_OK);
    json_t *root = load(support_path("fine.json"));
    assert_int_equal(count_phase(root, "X"), COUNT);
    no_track_overlaps(root);
    json_decref(root);

    assert_int_equal(write_traces(traces, 1, 3, support_path("fine.json"), &err), STATUS_OK);
    root = load(support_path("fine.json"));
    assert_int_equal(count_phase(root, "X"), 3 * 500);
    json_decref(root);
    trace_release(&trace);
    free(rows);
    support_clean();
}

static void a_limit_cuts_memory_as_well(void **state)
{
    (void)state;
    struct trace trace;
    struct error err = {0};
    support_scene(&trace, TRACE_PREDICTED, 1);
    for (uint64_t i = 0; i < trace.span_count; i++)
        if (trace.spans[i].start_s >= 0.4) trace.spans[i].minibatch = 1;
    const struct trace *traces[] = {&trace};
    assert_int_equal(write_traces(traces, 1, 1, support_path("cut.json"), &err), STATUS_OK);
    json_t *root = load(support_path("cut.json"));
    assert_int_equal(count_phase(root, "X"), 6);
    assert_int_equal(count_phase(root, "s"), 2); /* the loss that the third copy is for is cut */
    /* kept spans end at 0.6875, so five of six levels; rates as before without gpu0's last copies */
    assert_int_equal(count_phase(root, "C"), 5 + 3 + 2);
    json_decref(root);
    trace_release(&trace);
    support_clean();
}

/* A collective tells its wait for members, if the trace knows it. */
static void waits_are_told(void **state)
{
    (void)state;
    for (int waits = 0; waits < 2; waits++) {
        struct trace trace;
        struct error err = {0};
        support_scene(&trace, TRACE_MEASURED, 1);
        trace.has_waits = waits;
        trace.spans[9].kind = OP_COLLECTIVE;
        trace.spans[9].bytes = 4096;
        trace.spans[9].waited_s = waits ? 0.03125 : 0;
        const struct trace *traces[] = {&trace};
        if (write_traces(traces, 1, 0, support_path("waits.json"), &err)) fail_msg("%s", err.text);
        json_t *root = load(support_path("waits.json"));
        const json_t *events = json_object_get(root, "traceEvents");
        uint32_t told = 0;
        for (size_t i = 0; i < json_array_size(events); i++) {
            const json_t *waited = json_object_get(json_object_get(json_array_get(events, i), "args"), "waited_us");
            if (!waited) continue;
            told++;
            assert_near(json_number_value(waited), 31250, 1e-6);
            assert_string_equal(text_of(json_array_get(events, i), "cat"), "collective");
        }
        assert_int_equal(told, waits);
        json_decref(root);
        trace_release(&trace);
    }
    support_clean();
}

static void what_nanoseconds_cannot_hold_is_refused(void **state)
{
    (void)state;
    struct trace trace;
    struct error err = {0};
    support_scene(&trace, TRACE_PREDICTED, 1e8);
    const struct trace *traces[] = {&trace};
    assert_int_equal(write_traces(traces, 1, 0, support_path("long.json"), &err), STATUS_LIMIT);
    assert_string_equal(err.text, "the predicted trace lasts 143750000 s (limit of this format is "
                                  "9007199 s)");
    assert_int_not_equal(access(support_path("long.json"), F_OK), 0);
    trace_release(&trace);
    support_clean();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_trace),
        cmocka_unit_test(a_prediction_and_its_measurement),
        cmocka_unit_test(rounding_makes_no_overlap),
        cmocka_unit_test(a_limit_cuts_memory_as_well),
        cmocka_unit_test(waits_are_told),
        cmocka_unit_test(what_nanoseconds_cannot_hold_is_refused),
    };
    return cmocka_run_group_tests_name("traces/exchange/chrome.h", tests, NULL, NULL);
}
