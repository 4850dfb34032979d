/* Hand-made traces, a directory for files, and a reader of whole files. */
#include "tests/support/sim/support_traces.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/plan.h"
#include "tests/support/support_folder.h"

static struct trace_stream streams[] = {
    {"gpu0 compute", 0, 0, STREAM_COMPUTE}, {"gpu0 h2d", 0, 0, STREAM_H2D}, {"gpu0 d2h", 0, 0, STREAM_D2H},
    {"gpu1 compute", 1, 0, STREAM_COMPUTE}, {"gpu1 h2d", 1, 0, STREAM_H2D}, {"gpu1 d2h", 1, 0, STREAM_D2H},
    {"host", PLAN_NONE, 0, STREAM_HOST},
};

static const struct trace_place places[] = {
    {"host", (uint64_t)64 << 30, (uint64_t)21 << 30, 0.0625},
    {"gpu0", (uint64_t)8 << 30, (uint64_t)7 << 30, 0.5},
    {"gpu1", (uint64_t)8 << 30, (uint64_t)3 << 30, 0.25},
};

static const struct trace_job jobs[] = {
    {.name = "alpha", .tokens = 640, .samples = 10, .minibatches = 5},
    {.name = "beta", .tokens = 480, .samples = 15, .minibatches = 3},
};

static void *copy_of(struct arena *arena, const void *from, size_t count, size_t size)
{
    struct error err = {0};
    void *to = NULL;
    enum status status = arena_array(arena, count, size, &to, &err);
    assert(status == STATUS_OK);
    if (count > 0) memcpy(to, from, count * size);
    return to;
}

void support_trace(struct trace *trace, enum trace_source source, const struct span_row *rows,
                   size_t row_count, const struct trace_level *levels, size_t level_count)
{
    *trace = (struct trace){.source = source,
                            .hardware = "two-gpus",
                            .policy = "by-hand",
                            .plan_fingerprint = 0x0123456789abcdef,
                            .complete = true,
                            .stream_count = 7,
                            .place_count = 3,
                            .job_count = 2,
                            .span_count = row_count,
                            .level_count = level_count};
    trace->streams = copy_of(&trace->arena, streams, 7, sizeof streams[0]);
    trace->places = copy_of(&trace->arena, places, 3, sizeof places[0]);
    trace->jobs = copy_of(&trace->arena, jobs, 2, sizeof jobs[0]);
    trace->levels = copy_of(&trace->arena, levels, level_count, sizeof *levels);
    struct error err = {0};
    enum status status = ARENA_NEW(&trace->arena, row_count, trace->spans, &err);
    assert(status == STATUS_OK);
    for (size_t i = 0; i < row_count; i++) {
        const struct span_row *row = &rows[i];
        uint32_t kind = streams[row->stream].kind;
        trace->spans[i] = (struct trace_span){
            .start_s = row->start_s,
            .end_s = row->end_s,
            .number = i,
            .bytes = row->bytes,
            .minibatch = row->minibatch,
            .stream = row->stream,
            .job = row->job,
            .shard = row->shard,
            .kind = kind == STREAM_H2D || kind == STREAM_D2H ? OP_COPY : OP_COMPUTE,
            .pass = (uint8_t)row->pass,
            .op_index = (uint8_t)row->op_index};
    }
    trace_finish(trace);
}

void support_scene(struct trace *trace, enum trace_source source, double stretch)
{
    struct span_row rows[] = {
        {HOST, 0, 0, PLAN_BATCH, 0, 0, 0.0625, 0.125, 0},
        {GPU0_H2D, 0, 0, PLAN_FORWARD, 1, 0, 0.125, 0.25, 2000000000},
        {GPU0, 0, 0, PLAN_FORWARD, 2, 0, 0.25, 0.4375, 0},
        {GPU0_H2D, 0, 1, PLAN_LOSS, 0, 0, 0.25, 0.375, 2400000000},
        {GPU0, 0, 1, PLAN_LOSS, 1, 0, 0.4375, 0.875, 0},
        {GPU0_D2H, 0, 1, PLAN_LOSS, 2, 0, 0.875, 1.0, 2400000000},
        {GPU1_H2D, 1, 0, PLAN_FORWARD, 0, 0, 0.1875, 0.3125, 1500000000},
        {GPU1, 1, 0, PLAN_FORWARD, 1, 0, 0.3125, 0.6875, 0},
        {GPU0_H2D, 0, 0, PLAN_BACKWARD, 0, 0, 0.5, 0.625, 2000000000},
        {GPU0, 0, 0, PLAN_BACKWARD, 1, 0, 0.9375, 1.25, 0},
        {GPU0_D2H, 0, 0, PLAN_BACKWARD, 2, 0, 1.25, 1.4375, 2000000000},
    };
    struct trace_level levels[] = {
        {0.0625, (uint64_t)21 << 30, 0}, {0.125, (uint64_t)4 << 30, 1}, {0.1875, (uint64_t)3 << 30, 2},
        {0.5, (uint64_t)7 << 30, 1},     {0.6875, 0, 2},                {1.4375, 0, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        rows[i].start_s *= stretch;
        rows[i].end_s *= stretch;
    }
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) levels[i].time_s *= stretch;
    support_trace(trace, source, rows, sizeof rows / sizeof rows[0], levels,
                  sizeof levels / sizeof levels[0]);
}

/* --- files ---------------------------------------------------------------------------------- */

static char folder[SUPPORT_FOLDER_BYTES];

const char *support_path(const char *name)
{
    static char path[160];
    if (!folder[0]) support_folder_make(folder);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

void support_clean(void)
{
    if (!folder[0]) return;
    support_folder_remove(folder);
    folder[0] = 0;
}

char *support_slurp(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    char *text = malloc((size_t)size + 1);
    assert(text);
    size_t got = fread(text, 1, (size_t)size, file);
    fclose(file);
    text[got] = 0;
    if (length) *length = got;
    return text;
}
