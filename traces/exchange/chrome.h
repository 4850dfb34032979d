/*
 * Writes traces for chrome://tracing and ui.perfetto.dev: a process per device and per trace, a
 * track per stream, counters of memory, flow arrows from a copy to the computation that needs it.
 * Events of one track never overlap. Compressed when the name ends in .gz.
 */
#ifndef SPILLWAY_TRACES_EXCHANGE_CHROME_H
#define SPILLWAY_TRACES_EXCHANGE_CHROME_H

#include "traces/trace_reader.h"

/*
 * Writes one trace, or a prediction and its measurement, as processes "predicted gpu0" and "measured gpu0". If both are
 * of one plan, measured events also carry predicted_us. minibatch_limit > 0 keeps only the first minibatches of each
 * job, and memory up to their end. The readers go from the first span to the end, a prediction twice; memory does not
 * grow with the traces, but temporary files do. Errors: STATUS_LIMIT for a run of more than 104 days (2^53
 * nanoseconds), STATUS_IO; the errors of the readers.
 */
enum { CHROME_TRACES_MAX = 2 };
MUST_CHECK enum status chrome_write(struct trace_reader *const *readers, uint32_t trace_count,
                                    uint64_t minibatch_limit, const char *path,
                                    struct error *err);

#endif
