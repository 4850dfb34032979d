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

struct file_in;

/* Reads a file until it is known whether it is such a trace: an array, or with the key of the events after any length
 * of other keys. Errors: as file_in_read(); STATUS_NO_MEMORY. */
MUST_CHECK enum status chrome_recognise(struct file_in *file, bool *out, struct error *err);

/* Reads a measured trace without plan, machine and memory; the file is not held in memory. Errors: STATUS_BAD_INPUT
 * with file, line and column, or when the trace is empty; STATUS_LIMIT. */
MUST_CHECK enum status chrome_read(const char *path, struct trace *out, struct error *err);

/* Works as chrome_read() on a text in memory; `name` stands for the file name in messages. */
MUST_CHECK enum status chrome_parse(const char *name, const char *text, size_t length, struct trace *out,
                                    struct error *err);

#endif
