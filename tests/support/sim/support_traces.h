/* Hand-made traces for tests: two devices, two jobs, spans as rows of a table. */
#ifndef SPILLWAY_TESTS_SUPPORT_SIM_SUPPORT_TRACES_H
#define SPILLWAY_TESTS_SUPPORT_SIM_SUPPORT_TRACES_H

#include <math.h>
#include <stddef.h>

#include "traces/trace.h"

/* cmocka 1.1.5 compares floats; this compares doubles. */
#define assert_near(a, b, tolerance) assert_true(fabs((a) - (b)) <= (tolerance))

/* Streams of the hand-made traces, as plan_stream() numbers them. */
enum { GPU0, GPU0_H2D, GPU0_D2H, GPU1, GPU1_H2D, GPU1_D2H, HOST };

struct span_row {
    uint32_t stream, job, shard, pass, op_index, minibatch;
    double start_s, end_s;
    uint64_t bytes;
};

/*
 * Jobs "alpha" (640 tokens) and "beta" (480 tokens), 8 GiB of each device, 64 GiB of host. Span i
 * has number i. Complete, finished, and of plan 0x0123456789abcdef. Released with trace_release().
 */
void support_trace(struct trace *trace, enum trace_source source, const struct span_row *rows,
                   size_t row_count, const struct trace_level *levels, size_t level_count);

/*
 * One minibatch of alpha in two shards on gpu0, beside a forward pass of beta on gpu1; makespan
 * 1.4375 - 0.0625 = 1.375 s. With stretch 1; other values multiply every time.
 */
void support_scene(struct trace *trace, enum trace_source source, double stretch);

/* A path in a fresh directory that support_clean() removes with what is in it. */
const char *support_path(const char *name);
void support_clean(void);

/* The bytes of a file, NUL-terminated; the caller frees them. */
char *support_slurp(const char *path, size_t *length);

#endif
