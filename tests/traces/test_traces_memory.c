/* label: medium
 * Comparison, export and pictures of long traces: their memory does not grow with the traces. A span that
 * was kept would take 56 bytes. Profiles of other programs take less than four times their files.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/size.h"
#include "plots/plot.h"
#include "tests/support/sim/support_traces.h"
#include "tests/support/sim/support_traces_long.h"
#include "traces/compare.h"
#include "traces/exchange/chrome.h"
#include "traces/exchange/chrome_read.h"

enum { SPANS = 100000, SIDES = 2 };

struct work {
    const char *name;
    enum status (*run)(struct trace_reader *const *readers, struct error *err);
    const char *paths[SIDES];
};

static enum status nothing(struct trace_reader *const *readers, struct error *err)
{
    (void)readers;
    (void)err;
    return STATUS_OK;
}

/* Each operation was predicted 0.075 s too short; half of them are computations: 0.3 / 0.375 - 1. */
static enum status compare(struct trace_reader *const *readers, struct error *err)
{
    struct compare_result result;
    enum status status = compare_readers(readers[0], readers[1], &result, err);
    if (status != STATUS_OK) return status;
    const struct compare_class_result *compute = &result.classes[COMPARE_COMPUTE];
    bool right = fabs(compute->measured_s - 0.375 * SPANS / 2) < 1e-6 && fabs(compute->error + 0.2) < 1e-9 &&
                 result.worst_count == COMPARE_WORST_MAX;
    compare_release(&result);
    return right ? STATUS_OK : error_set(err, STATUS_CHECK, "computations are wrong");
}

static enum status export(struct trace_reader *const *readers, struct error *err)
{
    return chrome_write(readers, SIDES, 0, support_path("timeline.json"), err);
}

static enum status timeline(struct trace_reader *const *readers, struct error *err)
{
    return plot_timeline_readers(readers[0], readers[1], support_path("timeline.svg"), &(struct plot_options){0}, err);
}

static enum status memory(struct trace_reader *const *readers, struct error *err)
{
    return plot_memory_readers(readers[0], readers[1], support_path("memory.svg"), &(struct plot_options){0}, err);
}

static int go(const void *context)
{
    const struct work *work = context;
    struct trace_reader *readers[SIDES] = {NULL};
    struct error err = {0};
    enum status status = STATUS_OK;
    for (int s = 0; s < SIDES && status == STATUS_OK; s++)
        status = trace_reader_open(work->paths[s], NULL, &readers[s], &err);
    if (status == STATUS_OK) status = work->run(readers, &err);
    for (int s = 0; s < SIDES; s++) trace_reader_close(readers[s]);
    if (status != STATUS_OK) fprintf(stderr, "%s: %s\n", work->name, err.text);
    return (int)status;
}

/* Puts a small program called gnuplot on PATH, so that the memory of gnuplot does not count. */
static void stand_in(void)
{
    char program[256], path[1024];
    snprintf(program, sizeof program, "%s", support_path("gnuplot"));
    FILE *file = fopen(program, "w");
    assert_non_null(file);
    fputs("#!/bin/sh\necho a picture\n", file);
    fclose(file);
    assert_int_equal(chmod(program, 0700), 0);
    *strrchr(program, '/') = '\0';
    snprintf(path, sizeof path, "%s:%s", program, getenv("PATH"));
    setenv("PATH", path, 1);
}

static void memory_does_not_grow(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum status (*run)(struct trace_reader *const *readers, struct error *err);
    } works[] = {{"compare", compare}, {"export", export}, {"plot timeline", timeline}, {"plot memory", memory}};
    char predicted[200], measured[200];
    stand_in();
    snprintf(predicted, sizeof predicted, "%s", support_path("p.json"));
    snprintf(measured, sizeof measured, "%s", support_path("m.json"));
    for (int version = 1; version <= TRACE_VERSION; version++) {
        support_write_long(predicted, &(struct support_long){SPANS, TRACE_PREDICTED, version, 0.8});
        support_write_long(measured, &(struct support_long){SPANS, TRACE_MEASURED, version, 1});
        long least = support_peak_kib(go, &(struct work){"nothing", nothing, {predicted, measured}});
        for (size_t i = 0; i < ARRAY_COUNT(works); i++) {
            long most = support_peak_kib(go, &(struct work){works[i].name, works[i].run, {predicted, measured}});
            print_message("version %d: %ld KiB to open, %ld for %s\n", version, least, most, works[i].name);
            assert_true(most < least + SUPPORT_SLACK_KIB); /* the spans of both would be 11 MiB */
        }
    }
    support_clean();
}

/* --- other programs' traces ------------------------------------------------------------------ */

enum { EVENTS = 60000 };

/* Writes events as PyTorch's profiler does, in a bare array or in an object. Returns the length of the file. */
static long write_profile(const char *path, bool object)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(object ? "{\"schemaVersion\": 1, \"traceEvents\": [" : "[", file);
    for (int i = 0; i < EVENTS; i++)
        fprintf(file, "%s\n{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"kernel %d\", \"pid\": 0, \"tid\": %d, "
                      "\"ts\": %d.5, \"dur\": 7, \"args\": {\"device\": 0, \"stream\": 7, \"correlation\": %d, "
                      "\"grid\": [128, 1, 1], \"block\": [256, 1, 1]}}",
                i > 0 ? "," : "", i % 300, i % 3, 10 * i, 3 * i);
    fputs(object ? "]}\n" : "]\n", file);
    long length = ftell(file);
    assert_int_equal(fclose(file), 0);
    return length;
}

static int read_profile(const void *context)
{
    struct trace trace = {0};
    struct error err = {0};
    enum status status = context ? chrome_read(context, &trace, &err) : STATUS_OK;
    if (status == STATUS_OK && context && (trace.span_count != EVENTS || trace.job_count != 300)) status = STATUS_CHECK;
    trace_release(&trace);
    return (int)status;
}

/* The limit of all JSON readers: four times the file. A tree of it took eleven times. */
static void profiles_take_little(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* sanitizers keep freed memory */
#endif
    for (int object = 0; object < 2; object++) {
        const char *path = support_path("profile.json");
        long kib = write_profile(path, object) / 1024, least = support_peak_kib(read_profile, NULL);
        long most = support_peak_kib(read_profile, path);
        print_message("%ld KiB of events: %ld KiB more than %ld\n", kib, most - least, least);
        assert_true(most - least < 4 * kib);
    }
    support_clean();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_does_not_grow), cmocka_unit_test(profiles_take_little)};
    return cmocka_run_group_tests_name("traces of any length", tests, NULL, NULL);
}
