/*
 * Checks traces span by span, so that a trace can be checked while it is read. trace_check() applies it to a whole
 * trace and lists the rules.
 *
 *     trace_judge_begin    streams, places and jobs
 *     trace_judge_span     each span, in the order of the trace
 *     trace_judge_level    each level, in the order of the trace
 *     trace_judge_end      peaks and totals
 */
#ifndef SPILLWAY_TRACES_TRACE_JUDGE_H
#define SPILLWAY_TRACES_TRACE_JUDGE_H

#include "traces/trace.h"

struct trace_judge {
    struct arena arena;
    const struct trace *trace; /* borrowed; its spans and levels are ignored */
    double *stream_end_s;      /* per stream: the end of its last span */
    double (*bounds_s)[2];     /* per job: first and last time; the first is -1 before its first span */
    uint64_t span_count, last_number, level_count;
    double first_s, last_s, level_s;
};

/* The caller zeroes *judge, and releases it also after an error. Errors of all functions: STATUS_CHECK. */
MUST_CHECK enum status trace_judge_begin(struct trace_judge *judge, const struct trace *trace, struct error *err);
/* Forgets the spans and levels that it saw. */
void trace_judge_restart(struct trace_judge *judge);
MUST_CHECK enum status trace_judge_span(struct trace_judge *judge, const struct trace_span *span, struct error *err);
MUST_CHECK enum status trace_judge_level(struct trace_judge *judge, const struct trace_level *level, struct error *err);
MUST_CHECK enum status trace_judge_end(const struct trace_judge *judge, struct error *err);
void trace_judge_release(struct trace_judge *judge);

#endif
