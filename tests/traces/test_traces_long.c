/* label: medium
 * Long traces: a trace is judged, and a window of it read, in memory that does not grow with the trace; a
 * window has the spans and levels that a filter of the whole has. Arguments are the number of spans and a version of
 * the format; test_traces_long_many and _indexed have files larger than the 1 GiB up to which JSON is read whole.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "tests/support/sim/support_traces.h"
#include "tests/support/sim/support_traces_long.h"
#include "traces/trace_format.h"
#include "traces/trace_reader.h"

static uint64_t span_count = 300000;
static int only_version; /* 0: both */

enum way { NOTHING, SHOW, JUDGE, WINDOW, MINIBATCHES, WHOLE };

struct reading {
    enum way way;
    const char *path;
    uint64_t count;
    bool indexed;
};

static int go(const void *context)
{
    const struct reading *reading = context;
    const char *path = reading->path;
    const uint64_t count = reading->count;
    struct error err = {0};
    struct trace trace = {0};
    struct trace_reader *reader = NULL;
    uint64_t found = 0, levels = 0;
    double middle_s = (double)count / 4;
    enum status status = STATUS_OK;
    switch (reading->way) {
    case NOTHING: return STATUS_OK;
    case SHOW: /* as `trace show` does; a trace with an index is not read */
        status = trace_reader_open(path, NULL, &reader, &err);
        if (status == STATUS_OK && trace_reader_counts(reader, &found, &levels) != reading->indexed)
            status = STATUS_CHECK;
        if (status == STATUS_OK && !reading->indexed) status = trace_reader_finish(reader, &found, &err);
        trace_reader_close(reader);
        if (status == STATUS_OK && found != count) status = STATUS_CHECK;
        break;
    case JUDGE:
        status = trace_reader_open(path, NULL, &reader, &err);
        if (status == STATUS_OK) status = trace_reader_finish(reader, &found, &err);
        trace_reader_close(reader);
        if (status == STATUS_OK && found != count) status = STATUS_CHECK;
        break;
    case WINDOW: /* spans that begin at 10 s and each half second up to 60 s; the one before ends at 9.875 s */
        status = trace_read_part(path, &(struct trace_part){.from_s = middle_s + 10, .to_s = middle_s + 60}, &trace,
                                 &err);
        if (status == STATUS_OK && (trace.span_count != 101 || trace.level_count < 101 || trace.level_count > 103))
            status = STATUS_CHECK;
        break;
    case MINIBATCHES:
        status = trace_read_part(path, &(struct trace_part){.minibatches = 7}, &trace, &err);
        if (status == STATUS_OK && trace.span_count != 700) status = STATUS_CHECK;
        break;
    case WHOLE:
        status = trace_read(path, &trace, &err);
        if (status == STATUS_OK && trace.span_count != count) status = STATUS_CHECK;
        break;
    }
    if (err.text[0]) fprintf(stderr, "%s\n", err.text);
    trace_release(&trace);
    return (int)status;
}

static long peak_kib(enum way way, const char *path, uint64_t count, int version)
{
    const struct reading reading = {.way = way, .path = path, .count = count, .indexed = version > 1};
    return support_peak_kib(go, &reading);
}

static void memory_does_not_grow(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int version;
    } files[] = {{"long1.json", 1}, {"long1.json.gz", 1}, {"long2.json", TRACE_VERSION},
                 {"long2.json.gz", TRACE_VERSION}};
    for (size_t n = 0; n < ARRAY_COUNT(files); n++) {
        const char *path = support_path(files[n].name);
        const int version = files[n].version;
        if (only_version > 0 && (version != only_version || strstr(path, ".gz"))) continue;
        support_write_long(path, &(struct support_long){.span_count = span_count, .version = version});
        long nothing = peak_kib(NOTHING, path, span_count, version), shown = peak_kib(SHOW, path, span_count, version);
        long judged = peak_kib(JUDGE, path, span_count, version), window = peak_kib(WINDOW, path, span_count, version);
        long batches = peak_kib(MINIBATCHES, path, span_count, version);
        print_message("%s: %ld KiB for nothing, %ld to show, %ld to judge, %ld for a window, %ld for minibatches\n",
                      files[n].name, nothing, shown, judged, window, batches);
        /* A span or level that was kept would take 6 MiB. The index of a long trace takes a few bytes by span. */
        long most = nothing + SUPPORT_SLACK_KIB + (long)(span_count / TRACE_BLOCK_SPANS * 256 / 1024);
        assert_true(shown < most);
        assert_true(judged < most);
        assert_true(window < most);
        assert_true(batches < most);
        remove(path);
    }
    support_clean();
}

/* 56 bytes a span and 24 a level, doubled where arrays grow; a tree took ten times that. */
static void a_whole_trace_is_its_spans(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* sanitizers keep freed memory, and shadows of it */
#endif
    const char *path = support_path("whole.json");
    const uint64_t count = 300000;
    support_write_long(path, &(struct support_long){.span_count = count, .version = TRACE_VERSION});
    long nothing = peak_kib(NOTHING, path, count, TRACE_VERSION), whole = peak_kib(WHOLE, path, count, TRACE_VERSION);
    print_message("%ld KiB for nothing, %ld for the whole\n", nothing, whole);
    assert_true(whole - nothing < (long)(count * 2 * (56 + 24) / 1024) + 4096);
    support_clean();
}

/* Compares a window with the filtered whole. */
static void a_window_is_a_part_of_the_whole(void **state)
{
    (void)state;
    const char *path = support_path("part.json.gz");
    struct error err = {0};
    struct trace whole = {0};
    support_write_long(path, &(struct support_long){.span_count = 5000, .version = 1});
    if (trace_read(path, &whole, &err)) fail_msg("%s", err.text);
    for (uint32_t round = 0; round < 20; round++) {
        struct trace part = {0};
        const struct trace_part window = {.from_s = round * 131.0, .to_s = round * 131.0 + 0.3 + round * 7.25,
                                          .minibatches = round % 3 * 20};
        if (trace_read_part(path, &window, &part, &err)) fail_msg("%s", err.text);
        double end_s = 0;
        uint64_t k = 0, before[2] = {UINT64_MAX, UINT64_MAX}, l = 0;
        for (uint64_t i = 0; i < whole.span_count; i++) {
            const struct trace_span *span = &whole.spans[i];
            if (span->end_s < window.from_s || span->start_s > window.to_s) continue;
            if (window.minibatches > 0 && span->minibatch >= window.minibatches) continue;
            assert_true(k < part.span_count);
            end_s = fmax(end_s, span->end_s);
            assert_int_equal(part.spans[k].number, span->number);
            assert_true(part.spans[k].start_s == span->start_s && part.spans[k++].kind == span->kind);
        }
        assert_int_equal(k, part.span_count);
        double before_s = window.minibatches > 0 ? fmin(window.from_s, nextafter(end_s, INFINITY)) : window.from_s;
        for (uint64_t i = 0; i < whole.level_count && whole.levels[i].time_s < before_s; i++)
            before[whole.levels[i].place] = i;
        for (uint64_t i = 0; i < whole.level_count; i++) {
            const struct trace_level *level = &whole.levels[i];
            bool last_before = level->time_s < window.from_s && before[level->place] == i;
            if ((level->time_s < window.from_s && !last_before) || level->time_s > window.to_s) continue;
            if (window.minibatches > 0 && level->time_s > end_s) continue;
            assert_true(l < part.level_count);
            assert_true(part.levels[l].time_s == level->time_s && part.levels[l].bytes == level->bytes);
            l++;
        }
        assert_int_equal(l, part.level_count);
        assert_true(part.makespan_s == whole.makespan_s && part.jobs[0].end_s == whole.jobs[0].end_s);
        trace_release(&part);
    }
    trace_release(&whole);
    support_clean();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_does_not_grow),
        cmocka_unit_test(a_whole_trace_is_its_spans),
        cmocka_unit_test(a_window_is_a_part_of_the_whole),
    };
    if (argc > 1) span_count = strtoull(argv[1], NULL, 10);
    if (argc > 2) only_version = atoi(argv[2]);
    return cmocka_run_group_tests_name("traces/trace_reader.h", tests, NULL, NULL);
}
