/*
 * The path is followed back by `decisive`. Handovers are sorted by streams and equal ones added: pairs of streams may
 * be many more.
 */
#include "cli/explain/critical_path.h"

#include <stdlib.h>

#include "base/try.h"
#include "sim/engine/allocate.h"

static int by_streams(const void *a, const void *b)
{
    const struct explain_handover *x = a, *y = b;
    if (x->waiter != y->waiter) return x->waiter < y->waiter ? -1 : 1;
    return (x->awaited > y->awaited) - (x->awaited < y->awaited);
}

/* Orders by awaited seconds, longest first, then by streams. */
static int by_seconds(const void *a, const void *b)
{
    const struct explain_handover *x = a, *y = b;
    if (x->awaited_s > y->awaited_s || x->awaited_s < y->awaited_s) return x->awaited_s > y->awaited_s ? -1 : 1;
    return by_streams(a, b);
}

static uint32_t add_up(struct explain_handover *handovers, uint64_t count)
{
    uint32_t kept = 0;
    qsort(handovers, count, sizeof *handovers, by_streams);
    for (uint64_t i = 0; i < count; i++) {
        if (kept > 0 && by_streams(&handovers[kept - 1], &handovers[i]) == 0) {
            handovers[kept - 1].count += handovers[i].count;
            handovers[kept - 1].awaited_s += handovers[i].awaited_s;
        } else {
            handovers[kept++] = handovers[i];
        }
    }
    qsort(handovers, kept, sizeof *handovers, by_seconds);
    return kept;
}

static void add(struct explain_share *share, const struct explain_times *times, uint64_t number)
{
    share->seconds += times->seconds[number];
    share->alone_s += times->alone_s[number];
    share->operations++;
}

enum status explain_path_find(const struct trace *trace, const struct explain_times *times,
                              const struct explain_schedule *schedule, struct arena *arena, struct explain_path *out,
                              struct error *err)
{
    enum status status = STATUS_OK;
    uint64_t length = 0, handovers = 0;
    for (uint64_t at = schedule->last; at != EXPLAIN_NOBODY; at = schedule->decisive[at]) length++;
    *out = (struct explain_path){.makespan_s = schedule->makespan_s,
                                 .streams = sim_allocate(arena, trace->stream_count, sizeof *out->streams, &status, err),
                                 .jobs = sim_allocate(arena, trace->job_count, sizeof *out->jobs, &status, err),
                                 .handovers = sim_allocate(arena, length, sizeof *out->handovers, &status, err),
                                 .stream_count = trace->stream_count,
                                 .job_count = trace->job_count,
                                 .operations = length};
    if (status != STATUS_OK) return status;
    for (uint64_t at = schedule->last; at != EXPLAIN_NOBODY; at = schedule->decisive[at]) {
        const struct trace_span *span = &trace->spans[at];
        uint64_t before = schedule->decisive[at];
        add(&out->streams[span->stream], times, at);
        add(&out->jobs[span->job], times, at);
        out->gap_s += times->gap_s[at];
        if (before == EXPLAIN_NOBODY || trace->spans[before].stream == span->stream) continue;
        out->handovers[handovers++] = (struct explain_handover){.waiter = span->stream,
                                                                .awaited = trace->spans[before].stream,
                                                                .count = 1,
                                                                .awaited_s = times->seconds[before]};
    }
    out->handover_count = add_up(out->handovers, handovers);
    return STATUS_OK;
}
