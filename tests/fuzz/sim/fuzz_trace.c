/* The reader of traces on any bytes. Every user of traces must survive an accepted trace. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/support/support_trace_pair.h"
#include "traces/compare.h"
#include "traces/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trace trace = {0};
    struct error err = {0};
    if (trace_parse("input", (const char *)data, size, &trace, &err) == STATUS_OK) {
        if (trace_check(&trace, &err) != STATUS_OK) abort();
        for (uint32_t j = 0; j < trace.job_count; j++)
            if (trace_job_tokens_per_s(&trace, j) < 0) abort();
        struct trace measured = trace; /* the same arrays under another name */
        trace.source = TRACE_PREDICTED;
        measured.source = TRACE_MEASURED;
        struct compare_result comparison = {0};
        if (trace_pair_compare(&trace, &measured, &comparison, &err) == STATUS_OK &&
            comparison.throughput_error != 0)
            abort(); /* a trace differs from itself */
        compare_release(&comparison);
    }
    trace_release(&trace);
    return 0;
}
