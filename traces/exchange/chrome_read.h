/*
 * Reads traces that other programs wrote for chrome://tracing or ui.perfetto.dev, including PyTorch's profiler
 * (Kineto).
 *
 * Complete events ("X") are spans. All other events, including "B" and "E", are skipped, except names of processes
 * and threads. If a profiler recorded a GPU's work (categories kernel, gpu_memcpy, gpu_memset), only these events
 * count; on every track, only outermost events count. An event that begins before the previous one on its track has
 * ended begins at that end.
 *
 * Copies of a track, recognised by their names (HtoD, DtoH, PtoP), and collectives (nccl) form separate streams.
 * Operations of one name form one job of the trace; the job with the most seconds comes first.
 */
#ifndef SPILLWAY_TRACES_EXCHANGE_CHROME_READ_H
#define SPILLWAY_TRACES_EXCHANGE_CHROME_READ_H

#include "traces/trace.h"

/* Returns true when the text is an array or has the key of such a trace, after any length of other keys. */
bool chrome_text(const char *text, size_t length);

/*
 * Reads a measured trace without plan, machine and memory. `name` stands for the file name in messages. The caller
 * zeroes *out, and releases it with trace_release() also after an error. Errors: STATUS_BAD_INPUT with file, line and
 * column, or when the trace is empty; STATUS_LIMIT.
 */
MUST_CHECK enum status chrome_read(const char *name, const char *text, size_t length, struct trace *out, struct error *err);

#endif
