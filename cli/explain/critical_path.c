/*
 * The path is followed back by `decisive`. Whenever the array of handovers is full, they are sorted by streams and
 * equal ones added up: a table of all pairs of streams may be far larger.
 */
#include "cli/explain/critical_path.h"

#include <stdlib.h>

#include "base/try.h"

enum { HANDOVERS_FIRST = 1024 };

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

/* Adds up equal handovers, in the order in which they were added. */
static void add_up(struct explain_path *path)
{
    struct explain_handover *handovers = path->handovers;
    size_t kept = 0;
    if (path->handover_count == 0) return;
    qsort(handovers, path->handover_count, sizeof *handovers, by_streams);
    for (size_t i = 0; i < path->handover_count; i++) {
        if (kept > 0 && by_streams(&handovers[kept - 1], &handovers[i]) == 0) {
            handovers[kept - 1].count += handovers[i].count;
            handovers[kept - 1].awaited_s += handovers[i].awaited_s;
        } else {
            handovers[kept++] = handovers[i];
        }
    }
    path->handover_count = kept;
}

static void add(struct explain_share *share, const struct explain_step *step)
{
    share->seconds += step->seconds;
    share->alone_s += step->alone_s;
    share->operations++;
}

/* Adds up, and doubles the array if that leaves it half full. */
static enum status make_room(struct explain_path *path, struct error *err)
{
    struct explain_handover *larger;
    add_up(path);
    if (path->handover_count < path->handover_capacity / 2) return STATUS_OK;
    size_t capacity = path->handover_capacity > 0 ? 2 * path->handover_capacity : HANDOVERS_FIRST;
    TRY(ARENA_NEW(path->arena, capacity, larger, err));
    for (size_t i = 0; i < path->handover_count; i++) larger[i] = path->handovers[i];
    path->handovers = larger;
    path->handover_capacity = capacity;
    return STATUS_OK;
}

enum status explain_path_begin(const struct trace *trace, double makespan_s, struct arena *arena,
                               struct explain_path *out, struct error *err)
{
    *out = (struct explain_path){.makespan_s = makespan_s,
                                 .stream_count = trace->stream_count,
                                 .job_count = trace->job_count,
                                 .arena = arena};
    TRY(ARENA_NEW(arena, trace->stream_count, out->streams, err));
    return ARENA_NEW(arena, trace->job_count, out->jobs, err);
}

enum status explain_path_step(struct explain_path *path, const struct explain_step *step, struct error *err)
{
    add(&path->streams[step->stream], step);
    add(&path->jobs[step->job], step);
    path->gap_s += step->gap_s;
    path->operations++;
    if (!step->waited || step->awaited_stream == step->stream) return STATUS_OK;
    if (path->handover_count == path->handover_capacity) TRY(make_room(path, err));
    path->handovers[path->handover_count++] = (struct explain_handover){
        .waiter = step->stream, .awaited = step->awaited_stream, .count = 1, .awaited_s = step->awaited_s};
    return STATUS_OK;
}

void explain_path_end(struct explain_path *path)
{
    if (path->handover_count == 0) return;
    add_up(path);
    qsort(path->handovers, path->handover_count, sizeof *path->handovers, by_seconds);
}

enum status explain_path_find(const struct trace *trace, const struct explain_times *times,
                              const struct explain_schedule *schedule, struct arena *arena, struct explain_path *out,
                              struct error *err)
{
    TRY(explain_path_begin(trace, schedule->makespan_s, arena, out, err));
    for (uint64_t at = schedule->last; at != EXPLAIN_NOBODY; at = schedule->decisive[at]) {
        const struct trace_span *span = &trace->spans[at];
        uint64_t before = schedule->decisive[at];
        bool waited = before != EXPLAIN_NOBODY;
        TRY(explain_path_step(out, &(struct explain_step){.stream = span->stream,
                                                          .job = span->job,
                                                          .seconds = times->seconds[at],
                                                          .alone_s = times->alone_s[at],
                                                          .gap_s = times->gap_s[at],
                                                          .waited = waited,
                                                          .awaited_stream = waited ? trace->spans[before].stream : 0,
                                                          .awaited_s = waited ? times->seconds[before] : 0},
                              err));
    }
    explain_path_end(out);
    return STATUS_OK;
}
