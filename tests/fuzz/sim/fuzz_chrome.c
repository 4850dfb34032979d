/* The reader of other programs' traces on any bytes; an accepted trace has a path whose parts add up. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "cli/explain/trace_path.h"
#include "traces/exchange/chrome_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trace trace = {0};
    struct arena arena = {0};
    struct error err = {0};
    struct trace_reader *reader = NULL;
    struct explain_path path;
    if (chrome_parse("input", (const char *)data, size, &trace, &err) == STATUS_OK &&
        trace_reader_of(&trace, &reader, &err) == STATUS_OK &&
        explain_trace_path(reader, "input", EXPLAIN_ALIKE_MOST, &arena, &path, &err) == STATUS_OK) {
        double sum_s = 0;
        for (uint32_t s = 0; s < path.stream_count; s++) sum_s += path.streams[s].seconds;
        if (!(fabs(sum_s + path.gap_s - path.makespan_s) <= 1e-6 * path.makespan_s)) abort();
    }
    trace_reader_close(reader);
    arena_release(&arena);
    trace_release(&trace);
    return 0;
}
