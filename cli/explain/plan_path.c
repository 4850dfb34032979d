/*
 * Each operation is a row. The walk over the plan gives the operations that it waited for, whose rows give its gap, its
 * end in the schedule and the awaited one that decided. The newest rows are in a ring; a row that leaves the ring is
 * final and goes to the spool. Nearly all awaited rows are in the ring. The path goes back in the order of numbers, so
 * each block of the spool is read once.
 *
 *     spool  [ 0 .. count - window )      ring  [ count - window .. count )
 */
#include "cli/explain/plan_path.h"

#include <assert.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/files/spool.h"
#include "base/try.h"
#include "planner/walk/plan_walk.h"
#include "sim/duration.h"

enum { BLOCK_ROWS = 1024 };

struct path_row {
    double seconds, alone_s, gap_s;
    double traced_end_s; /* by the trace */
    double end_s;        /* in the schedule */
    uint64_t decisive;   /* EXPLAIN_NOBODY: the start of the run */
    uint32_t stream, job;
};

/* What the operations of a group wait for. */
struct path_front {
    double traced_ready_s, ready_s;
    uint64_t decisive;
};

struct explain_plan_path {
    const struct plan *plan;
    struct plan_walk *walk;
    struct sim_durations *durations;
    struct arena arena;
    uint64_t *last_of; /* by stream: its last operation */
    struct path_front front;
    struct path_row *ring; /* entry number % window */
    uint64_t window, count;
    struct spool *spool;
    struct path_row *block; /* of the spool: rows from block_first to before block_end */
    uint64_t block_first, block_end;
    uint64_t last; /* ends last in the schedule */
    double makespan_s;
    enum status status; /* the first failure, and its text */
    struct error err;
};

/* --- rows ----------------------------------------------------------------------------------------- */

static bool in_ring(const struct explain_plan_path *p, uint64_t number)
{
    return number + p->window >= p->count;
}

static struct path_row *ring_row(const struct explain_plan_path *p, uint64_t number)
{
    return &p->ring[number & (p->window - 1)];
}

static struct path_row *add_row(struct explain_plan_path *p)
{
    struct path_row *row = ring_row(p, p->count);
    if (p->count >= p->window) spool_write(p->spool, row, sizeof *row);
    p->count++;
    return row;
}

/* Reads one row: while spans come. */
static enum status read_row(struct explain_plan_path *p, uint64_t number, struct path_row *out, struct error *err)
{
    if (!in_ring(p, number)) return spool_read(p->spool, number * sizeof *out, out, sizeof *out, err);
    *out = *ring_row(p, number);
    return STATUS_OK;
}

/* Reads a row together with those before it: on the way back. */
static enum status read_back(struct explain_plan_path *p, uint64_t number, struct path_row *out, struct error *err)
{
    if (in_ring(p, number)) return read_row(p, number, out, err);
    if (number < p->block_first || number >= p->block_end) {
        p->block_end = number + 1;
        p->block_first = p->block_end > BLOCK_ROWS ? p->block_end - BLOCK_ROWS : 0;
        TRY(spool_read(p->spool, p->block_first * sizeof *out, p->block, (p->block_end - p->block_first) * sizeof *out,
                       err));
    }
    *out = p->block[number - p->block_first];
    return STATUS_OK;
}

/* --- spans ---------------------------------------------------------------------------------------- */

static enum status wait_for(struct explain_plan_path *p, uint64_t number, struct error *err)
{
    struct path_row awaited;
    struct path_front *front = &p->front;
    TRY(read_row(p, number, &awaited, err));
    front->traced_ready_s = max_s(front->traced_ready_s, awaited.traced_end_s);
    if (front->decisive != EXPLAIN_NOBODY && awaited.end_s <= front->ready_s) return STATUS_OK;
    front->ready_s = max_s(front->ready_s, awaited.end_s);
    front->decisive = number;
    return STATUS_OK;
}

/* Gives the operations of a group, the last of which has come, their gap and end. */
static void end_group(struct explain_plan_path *p, const struct plan_walk_op *op, const struct trace_span *span)
{
    const struct path_front *front = &p->front;
    double gap_s = max_s(span->start_s - front->traced_ready_s, 0);
    double end_s = front->ready_s + gap_s + ring_row(p, op->number)->seconds;
    for (uint64_t n = op->number + 1 - op->join_count; n <= op->number; n++) {
        struct path_row *row = ring_row(p, n);
        row->gap_s = gap_s;
        row->end_s = end_s;
        row->decisive = front->decisive;
    }
    if (p->last != EXPLAIN_NOBODY && end_s <= p->makespan_s) return;
    p->last = op->number;
    p->makespan_s = end_s;
}

static enum status add_span(struct explain_plan_path *p, const struct trace_span *span, struct error *err)
{
    struct plan_walk_op op;
    if (!plan_walk_next(p->walk, &op)) return error_memory(err, "a walk over the plan", 0);
    assert(op.number == span->number && op.stream == span->stream && op.join_count <= p->window);
    for (uint32_t w = 0; w < op.wait_count; w++) TRY(wait_for(p, op.waits[w], err));
    if (p->last_of[op.stream] != EXPLAIN_NOBODY) TRY(wait_for(p, p->last_of[op.stream], err));
    p->last_of[op.stream] = op.number;
    double seconds = span->end_s - span->start_s;
    *add_row(p) = (struct path_row){.seconds = seconds,
                                    .alone_s = explain_alone_s(p->plan, p->durations, &op, seconds),
                                    .traced_end_s = span->end_s,
                                    .stream = span->stream,
                                    .job = span->job};
    if (op.join_at + 1 < op.join_count) return STATUS_OK;
    end_group(p, &op, span);
    p->front = (struct path_front){.decisive = EXPLAIN_NOBODY};
    return STATUS_OK;
}

void explain_plan_path_span(void *path, const struct trace_span *span)
{
    struct explain_plan_path *p = path;
    if (p->status == STATUS_OK) p->status = add_span(p, span, &p->err);
}

/* --- the path ------------------------------------------------------------------------------------- */

static enum status create_tables(struct explain_plan_path *p, struct error *err)
{
    const uint32_t streams = plan_stream_count(p->plan);
    TRY(ARENA_NEW(&p->arena, streams, p->last_of, err));
    TRY(ARENA_NEW(&p->arena, p->window, p->ring, err));
    TRY(ARENA_NEW(&p->arena, BLOCK_ROWS, p->block, err));
    for (uint32_t s = 0; s < streams; s++) p->last_of[s] = EXPLAIN_NOBODY;
    TRY(sim_durations_create(&p->arena, p->plan, &p->plan->hardware, NULL, &p->durations, err));
    TRY(spool_create(NULL, &p->spool, err));
    return plan_walk_create(p->plan, NULL, &p->walk, err);
}

enum status explain_plan_path_create(const struct plan *plan, uint64_t window, struct explain_plan_path **out,
                                     struct error *err)
{
    assert(window > 0 && (window & (window - 1)) == 0);
    struct explain_plan_path *p = alloc_zeroed(1, sizeof *p);
    if (!p) return error_memory(err, "a critical path", sizeof *p);
    p->plan = plan;
    p->window = window;
    p->last = EXPLAIN_NOBODY;
    p->front.decisive = EXPLAIN_NOBODY;
    enum status status = create_tables(p, err);
    if (status == STATUS_OK) *out = p;
    else explain_plan_path_destroy(p);
    return status;
}

void explain_plan_path_destroy(struct explain_plan_path *path)
{
    if (!path) return;
    plan_walk_destroy(path->walk);
    spool_destroy(path->spool);
    arena_release(&path->arena);
    free(path);
}

enum status explain_plan_path_find(struct explain_plan_path *path, const struct trace *trace, struct arena *arena,
                                   struct explain_path *out, struct error *err)
{
    struct path_row row, awaited = {0};
    if (path->status != STATUS_OK) {
        *err = path->err;
        return path->status;
    }
    if (path->last == EXPLAIN_NOBODY) return error_set(err, STATUS_BAD_INPUT, "the trace has no operations");
    TRY(explain_path_begin(trace, path->makespan_s, arena, out, err));
    TRY(read_back(path, path->last, &row, err));
    for (bool waited = true; waited; row = awaited) {
        waited = row.decisive != EXPLAIN_NOBODY;
        if (waited) TRY(read_back(path, row.decisive, &awaited, err));
        TRY(explain_path_step(out, &(struct explain_step){.stream = row.stream,
                                                          .job = row.job,
                                                          .seconds = row.seconds,
                                                          .alone_s = row.alone_s,
                                                          .gap_s = row.gap_s,
                                                          .waited = waited,
                                                          .awaited_stream = waited ? awaited.stream : 0,
                                                          .awaited_s = waited ? awaited.seconds : 0},
                              err));
    }
    explain_path_end(out);
    return STATUS_OK;
}
