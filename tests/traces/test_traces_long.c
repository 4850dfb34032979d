/*
 * Long traces (label: fast): a trace is judged, and a window of it read, in memory that does not grow with the trace; a
 * window has the spans and levels that a filter of the whole has. With a number of spans as argument, a trace of
 * that many; test_traces_long_many has one that is larger than the 1 GiB up to which JSON is read whole.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/size.h"
#include "tests/support/sim/support_traces.h"
#include "traces/trace_reader.h"

static uint64_t span_count = 300000;

/* Two streams of equal operations, span k from k / 2 to k / 2 + 0.375 s; a level at the beginning of each. As
 * trace_write() has it. */
static uint64_t write_long(const char *path, uint64_t count)
{
    struct error err = {0};
    struct file_out *out;
    double end_s = (double)(count - 1) / 2 + 0.375;
    if (file_out_create(path, &out, &err)) fail_msg("%s", err.text);
    file_out_printf(out, "{\n  \"spillway_trace\": 1,\n  \"source\": \"predicted\",\n  \"hardware\": \"h\",\n  \"policy\": \"p\",\n"
                         "  \"plan\": \"00000000000000ff\",\n  \"complete\": true,\n  \"makespan_s\": %.17g,\n"
                         "  \"streams\": [{\"name\": \"gpu0 compute\", \"device\": 0, \"kind\": \"compute\"},\n"
                         "    {\"name\": \"gpu0 h2d\", \"device\": 0, \"kind\": \"h2d\"}],\n"
                         "  \"places\": [{\"name\": \"host\", \"capacity_bytes\": 9, \"peak_bytes\": 0, \"peak_time_s\": 0},\n"
                         "    {\"name\": \"gpu0\", \"capacity_bytes\": 800, \"peak_bytes\": 700, \"peak_time_s\": 0.25}],\n"
                         "  \"jobs\": [{\"name\": \"a\", \"tokens\": 6, \"samples\": 3, \"minibatches\": 1, \"start_s\": 0, "
                         "\"end_s\": %.17g}],\n",
                    end_s, end_s);
    file_out_printf(out, "  \"operation_columns\": [\"stream\", \"job\", \"shard\", \"pass\", \"index\", \"bytes\"],\n"
                         "  \"operations\": [[0, 0, 3, \"forward\", 1, 0], [1, 0, 3, \"forward\", 0, 77]],\n"
                         "  \"span_columns\": [\"number\", \"operation\", \"minibatch\", \"start_s\", \"end_s\"],\n  \"spans\": [");
    for (uint64_t k = 0; k < count; k++)
        file_out_printf(out, "%s\n    [%" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %.17g, %.17g]", k > 0 ? "," : "", k, k % 2, k / 100,
                        (double)k / 2, (double)k / 2 + 0.375);
    file_out_printf(out, "\n  ],\n  \"level_columns\": [\"time_s\", \"place\", \"bytes\"],\n  \"levels\": [");
    for (uint64_t k = 0; k < count; k++)
        file_out_printf(out, "%s\n    [%.17g, %d, %d]", k > 0 ? "," : "", (double)k / 2, k % 3 != 0, k % 3 != 0 ? (int)(k % 700) : 0);
    file_out_printf(out, "\n  ]\n}\n");
    if (file_out_commit(out, &err)) fail_msg("%s", err.text);
    return count;
}

enum way { NOTHING, JUDGE, WINDOW, MINIBATCHES, WHOLE };

static enum status go(enum way way, const char *path, uint64_t count)
{
    struct error err = {0};
    struct trace trace = {0};
    struct trace_reader *reader = NULL;
    uint64_t found = 0;
    double middle_s = (double)count / 4;
    enum status status = STATUS_OK;
    switch (way) {
    case NOTHING: return STATUS_OK;
    case JUDGE:
        status = trace_reader_open(path, NULL, &reader, &err);
        if (status == STATUS_OK) status = trace_reader_finish(reader, &found, &err);
        trace_reader_close(reader);
        if (status == STATUS_OK && found != count) status = STATUS_CHECK;
        break;
    case WINDOW: /* spans that begin at 10 s and each half second up to 60 s; the one before ends at 9.875 s */
        status = trace_read_part(path, &(struct trace_part){.from_s = middle_s + 10, .to_s = middle_s + 60}, &trace, &err);
        if (status == STATUS_OK && (trace.span_count != 101 || trace.level_count < 101 || trace.level_count > 103)) status = STATUS_CHECK;
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
    return status;
}

/* The most memory that a process of its own holds while it does this, in KiB. */
static long peak_kib(enum way way, const char *path, uint64_t count)
{
    int code;
    struct rusage use;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) _exit((int)go(way, path, count));
    assert_int_equal(wait4(child, &code, 0, &use), child);
    if (code != 0) fail_msg("way %d: exit code %d", (int)way, code);
    return use.ru_maxrss;
}

static void memory_does_not_grow(void **state)
{
    (void)state;
    static const char *const names[] = {"long.json", "long.json.gz"};
    for (size_t n = 0; n < (span_count > 1000000 ? 1 : ARRAY_COUNT(names)); n++) {
        const char *path = support_path(names[n]);
        write_long(path, span_count);
        long nothing = peak_kib(NOTHING, path, span_count), judged = peak_kib(JUDGE, path, span_count);
        long window = peak_kib(WINDOW, path, span_count), batches = peak_kib(MINIBATCHES, path, span_count);
        print_message("%s: %ld KiB for nothing, %ld to judge, %ld for a window, %ld for minibatches\n", names[n], nothing, judged,
                      window, batches);
        /* buffers, and room for allocators that keep freed memory; a span or level that was kept would take 6 MiB */
        assert_true(judged < nothing + 4096);
        assert_true(window < nothing + 4096);
        assert_true(batches < nothing + 4096);
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
    uint64_t count = write_long(path, 300000);
    long nothing = peak_kib(NOTHING, path, count), whole = peak_kib(WHOLE, path, count);
    print_message("%ld KiB for nothing, %ld for the whole\n", nothing, whole);
    assert_true(whole - nothing < (long)(count * 2 * (56 + 24) / 1024) + 4096);
    support_clean();
}

/* Two roads: a window, and the whole filtered. */
static void a_window_is_a_part_of_the_whole(void **state)
{
    (void)state;
    const char *path = support_path("part.json.gz");
    struct error err = {0};
    struct trace whole = {0};
    write_long(path, 5000);
    if (trace_read(path, &whole, &err)) fail_msg("%s", err.text);
    for (uint32_t round = 0; round < 20; round++) {
        struct trace part = {0};
        const struct trace_part window = {.from_s = round * 131.0, .to_s = round * 131.0 + 0.3 + round * 7.25, .minibatches = round % 3 * 20};
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
        for (uint64_t i = 0; i < whole.level_count && whole.levels[i].time_s < before_s; i++) before[whole.levels[i].place] = i;
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
    return cmocka_run_group_tests_name("traces/trace_reader.h", tests, NULL, NULL);
}
