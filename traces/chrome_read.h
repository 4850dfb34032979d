/*
 * Traces that other programs wrote for chrome://tracing or ui.perfetto.dev, PyTorch's profiler (Kineto) among them.
 *
 * Complete events ("X") are spans; all else but the names of processes and threads is passed over, begins and ends
 * ("B", "E") too. Where a profiler has recorded what a GPU did (categories kernel, gpu_memcpy, gpu_memset) only that
 * counts; of every track what is outermost. Events that begin before the one in front of them on their track has ended
 * begin with its end.
 *
 * A track's copies, by their names (HtoD, DtoH, PtoP), and its collectives (nccl) are streams of their own.
 * Operations of one name are one job of the trace, the job with the most seconds first.
 */
#ifndef SPILLWAY_TRACES_CHROME_READ_H
#define SPILLWAY_TRACES_CHROME_READ_H

#include "traces/trace.h"

/* Is it an array, or has it such a trace's key? What profilers write in front of that has any length. */
bool chrome_text(const char *text, size_t length);

/*
 * A measured trace without plan, machine and memory. `name` stands for the file in messages. Zeroed struct in; release with
 * trace_release(), also after an error.
 * Errors: STATUS_BAD_INPUT with file, line and column, or where nothing is in it; STATUS_LIMIT, STATUS_NO_MEMORY.
 */
MUST_CHECK enum status chrome_read(const char *name, const char *text, size_t length, struct trace *out, struct error *err);

#endif
