/* Long traces of equal spans, and the memory that reading them takes. */
#ifndef SPILLWAY_TESTS_SUPPORT_SIM_SUPPORT_TRACES_LONG_H
#define SPILLWAY_TESTS_SUPPORT_SIM_SUPPORT_TRACES_LONG_H

#include "traces/trace.h"

struct support_long {
    uint64_t span_count;
    enum trace_source source;
    int version;      /* of the file: 1, without an index, or TRACE_VERSION */
    double stretch;   /* of the durations; 0: 1 */
};

/*
 * Writes a trace of one device: its streams compute and h2d take turns, and span k lasts from k / 2 to k / 2 + 0.375 s,
 * in minibatch k / 100. A level at the start of each span.
 */
void support_write_long(const char *path, const struct support_long *trace);

/*
 * The most memory, in KiB, that may come on top of a process's first for buffers, for code that is read from its
 * file and for allocators that keep freed memory. Programs with sanitizers are larger, and so are their blocks.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SUPPORT_SLACK_KIB = 5632 };
#else
enum { SUPPORT_SLACK_KIB = 4096 };
#endif

/* Returns the most memory, in KiB, that a process of its own holds while it runs `run`, which returns 0. */
long support_peak_kib(int (*run)(const void *context), const void *context);

#endif
