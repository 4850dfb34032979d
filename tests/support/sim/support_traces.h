/* Hand-made traces for tests: two devices, two jobs, spans as rows of a table. */
#ifndef SPILLWAY_TESTS_SUPPORT_SIM_SUPPORT_TRACES_H
#define SPILLWAY_TESTS_SUPPORT_SIM_SUPPORT_TRACES_H

#include <math.h>
#include <stddef.h>

#include "traces/trace.h"

/* cmocka 1.1.5 compares floats; this compares doubles. */
#define assert_near(a, b, tolerance) assert_true(fabs((a) - (b)) <= (tolerance))

/* Indexes of streams in the hand-made traces, numbered as by plan_stream(). */
enum { GPU0, GPU0_H2D, GPU0_D2H, GPU1, GPU1_H2D, GPU1_D2H, HOST };

struct span_row {
    uint32_t stream, job, shard, pass, op_index, minibatch;
    double start_s, end_s;
    uint64_t bytes;
};

/*
 * Makes a complete, finished trace of plan 0x0123456789abcdef with jobs "alpha" (640 tokens) and "beta" (480 tokens), 8
 * GiB of each device and 64 GiB of host memory. Span i has number i. Release it with trace_release().
 */
void support_trace(struct trace *trace, enum trace_source source, const struct span_row *rows,
                   size_t row_count, const struct trace_level *levels, size_t level_count);

/*
 * Makes a trace of one minibatch of alpha in two shards on gpu0, during a forward pass of beta on gpu1; makespan 1.4375
 * - 0.0625 = 1.375 s. `stretch` multiplies every time.
 */
void support_scene(struct trace *trace, enum trace_source source, double stretch);

/* Returns a path in a fresh folder. support_clean() removes the folder and its files. */
const char *support_path(const char *name);
void support_clean(void);

/* Returns the bytes of a file, NUL-terminated; the caller frees them. */
char *support_slurp(const char *path, size_t *length);

#endif
