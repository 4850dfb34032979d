/* Version 1 is written by hand, since no program writes it any more; the other one by traces/trace_writer.h. */
#include "tests/support/sim/support_traces_long.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files/file.h"
#include "planner/plan.h"
#include "traces/trace_writer.h"

enum { PEAK_BYTES = 700, CAPACITY_BYTES = 800, COPY_BYTES = 77, SHARD = 3 };

static double end_of(const struct support_long *trace, uint64_t k)
{
    return (double)k / 2 + 0.375 * (trace->stretch > 0 ? trace->stretch : 1);
}

static uint64_t level_bytes(uint64_t k)
{
    return k % 3 != 0 ? k % PEAK_BYTES : 0;
}

static void write_old(const char *path, const struct support_long *trace)
{
    struct error err = {0};
    struct file_out *out;
    double end_s = end_of(trace, trace->span_count - 1);
    if (file_out_create(path, &out, &err)) fail_msg("%s", err.text);
    file_out_printf(out, "{\n  \"spillway_trace\": 1,\n  \"source\": \"%s\",\n  \"hardware\": \"h\",\n  \"policy\": "
                         "\"p\",\n"
                         "  \"plan\": \"00000000000000ff\",\n  \"complete\": true,\n  \"makespan_s\": %.17g,\n"
                         "  \"streams\": [{\"name\": \"gpu0 compute\", \"device\": 0, \"kind\": \"compute\"},\n"
                         "    {\"name\": \"gpu0 h2d\", \"device\": 0, \"kind\": \"h2d\"}],\n"
                         "  \"places\": [{\"name\": \"host\", \"capacity_bytes\": 9, \"peak_bytes\": 0, "
                         "\"peak_time_s\": 0},\n"
                         "    {\"name\": \"gpu0\", \"capacity_bytes\": %d, \"peak_bytes\": %d, "
                         "\"peak_time_s\": 0.25}],\n"
                         "  \"jobs\": [{\"name\": \"a\", \"tokens\": 6, \"samples\": 3, \"minibatches\": 1, "
                         "\"start_s\": 0, \"end_s\": %.17g}],\n",
                    trace_source_names[trace->source], end_s, CAPACITY_BYTES, PEAK_BYTES, end_s);
    file_out_printf(out, "  \"operation_columns\": [\"stream\", \"job\", \"shard\", \"pass\", \"index\", \"bytes\"],\n"
                         "  \"operations\": [[0, 0, %d, \"forward\", 1, 0], [1, 0, %d, \"forward\", 0, %d]],\n"
                         "  \"span_columns\": [\"number\", \"operation\", \"minibatch\", \"start_s\", "
                         "\"end_s\"],\n  \"spans\": [",
                    SHARD, SHARD, COPY_BYTES);
    for (uint64_t k = 0; k < trace->span_count; k++)
        file_out_printf(out, "%s\n    [%" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %.17g, %.17g]", k > 0 ? "," : "", k,
                        k % 2, k / 100, (double)k / 2, end_of(trace, k));
    file_out_printf(out, "\n  ],\n  \"level_columns\": [\"time_s\", \"place\", \"bytes\"],\n  \"levels\": [");
    for (uint64_t k = 0; k < trace->span_count; k++)
        file_out_printf(out, "%s\n    [%.17g, %d, %" PRIu64 "]", k > 0 ? "," : "", (double)k / 2, k % 3 != 0,
                        level_bytes(k));
    file_out_printf(out, "\n  ]\n}\n");
    if (file_out_commit(out, &err)) fail_msg("%s", err.text);
}

static void write_new(const char *path, const struct support_long *trace)
{
    struct error err = {0};
    struct trace_writer *writer;
    struct trace_stream streams[] = {{.name = "gpu0 compute", .kind = STREAM_COMPUTE},
                                     {.name = "gpu0 h2d", .kind = STREAM_H2D}};
    struct trace_place places[] = {{.name = "host", .capacity_bytes = 9},
                                   {.name = "gpu0", .capacity_bytes = CAPACITY_BYTES, .peak_bytes = PEAK_BYTES,
                                    .peak_time_s = 0.25}};
    struct trace_job job = {.name = "a", .tokens = 6, .samples = 3, .minibatches = 1};
    struct trace head = {.source = (uint32_t)trace->source,
                         .hardware = "h",
                         .policy = "p",
                         .plan_fingerprint = 0xff,
                         .complete = true,
                         .streams = streams,
                         .stream_count = 2,
                         .places = places,
                         .place_count = 2,
                         .jobs = &job,
                         .job_count = 1};
    if (trace_writer_create(path, &writer, &err) || trace_writer_begin(writer, &head, &err)) fail_msg("%s", err.text);
    for (uint64_t k = 0; k < trace->span_count; k++) {
        bool copy = k % 2 == 1;
        trace_writer_span(writer, &(struct trace_span){.start_s = (double)k / 2,
                                                       .end_s = end_of(trace, k),
                                                       .number = k,
                                                       .bytes = copy ? COPY_BYTES : 0,
                                                       .minibatch = (uint32_t)(k / 100),
                                                       .stream = copy,
                                                       .shard = SHARD,
                                                       .kind = copy ? OP_COPY : OP_COMPUTE,
                                                       .pass = PLAN_FORWARD,
                                                       .op_index = !copy});
        trace_writer_level(writer,
                           &(struct trace_level){.time_s = (double)k / 2, .place = k % 3 != 0,
                                                 .bytes = level_bytes(k)});
    }
    trace_writer_total(writer, &head);
    if (trace_writer_commit(writer, &head, &err)) fail_msg("%s", err.text);
}

void support_write_long(const char *path, const struct support_long *trace)
{
    (trace->version == 1 ? write_old : write_new)(path, trace);
}

long support_peak_kib(int (*run)(const void *context), const void *context)
{
    int code;
    struct rusage use;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) _exit(run(context));
    assert_int_equal(wait4(child, &code, 0, &use), child);
    if (code != 0) fail_msg("exit code %d", code);
    return use.ru_maxrss;
}
