/*
 * One pass in plan order keeps the last access and write for each device and each buffer that an operation with a
 * lookahead limit may access. A writer waits for the last access, a reader for the last write. A lifetime's begin or
 * end clears both.
 */
#include "sim/lookahead.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/try.h"
#include "planner/plan_gang.h"
#include "sim/engine/allocate.h"

enum {
    FEW = 32,               /* a kind of stream with limits has at most one in FEW operations */
    CELLS_MAX = 1 << 24,    /* of devices times buffers */
    LIMITS_MAX = PLAN_OPS_MAX /* operations after these have no lookahead limits */
};

/* An access: the index on its stream, from 1, and among all noted operations. */
struct lookahead_seen {
    uint64_t count, number;
    uint32_t stream;
};

struct lookahead_cell {
    uint64_t period; /* valid if this equals the maker's period */
    struct lookahead_seen access, write;
};

struct sim_lookahead_maker {
    const struct plan *plan;
    bool few[STREAM_KIND_COUNT];
    uint32_t *watched;       /* per buffer: its number among watched ones, from 1; 0: none */
    uint32_t watched_count;
    bool *concerns;          /* per operation: it accesses a watched buffer */
    struct lookahead_cell *cells;      /* [device][watched buffer] */
    uint64_t period, number; /* calls of sim_lookahead_maker_forget(); noted operations */
    struct sim_lookahead_limit *limits; /* until sim_lookahead_make(), `left` counts the operations before */
    size_t limit_count, limit_capacity;
};

/* --- which streams and buffers -------------------------------------------------------------- */

static bool choose_kinds(struct sim_lookahead_maker *m, const uint64_t operations[STREAM_KIND_COUNT])
{
    uint64_t all = 0;
    bool some = false;
    for (uint32_t k = 0; k < STREAM_KIND_COUNT; k++) all += operations[k];
    for (uint32_t k = 0; k < STREAM_HOST; k++) some |= m->few[k] = operations[k] > 0 && operations[k] <= all / FEW;
    return some;
}

/* Excludes boundaries and their gradients, which end on other devices. */
static bool may_watch(const struct plan_buffer *buffer)
{
    return buffer->on_device && buffer->kind != BUFFER_BOUNDARY && buffer->kind != BUFFER_BOUNDARY_GRADIENT;
}

static void watch_buffers(struct sim_lookahead_maker *m)
{
    const struct plan *plan = m->plan;
    for (uint32_t o = 0; o < plan->op_count; o++) {
        const struct plan_op *op = &plan->ops[o];
        for (uint32_t a = 0; m->few[op->stream] && a < op->access_count; a++) {
            const struct plan_access *access = &plan->accesses[op->first_access + a];
            if (access->flags & ACCESS_ACQUIRE || !may_watch(&plan->buffers[access->buffer])) continue;
            if (m->watched[access->buffer] == 0) m->watched[access->buffer] = ++m->watched_count;
        }
    }
    for (uint32_t o = 0; o < plan->op_count; o++)
        for (uint32_t a = 0; a < plan->ops[o].access_count; a++)
            m->concerns[o] |= m->watched[plan->accesses[plan->ops[o].first_access + a].buffer] > 0;
}

enum status sim_lookahead_maker_create(const struct plan *plan, const uint64_t operations[STREAM_KIND_COUNT],
                                       struct sim_lookahead_maker **out, struct error *err)
{
    struct sim_lookahead_maker *m = alloc_zeroed(1, sizeof *m);
    *out = NULL;
    if (!m) return error_memory(err, "lookahead limits of streams", sizeof *m);
    m->plan = plan;
    m->period = 1;
    bool useful = plan->gang_count > 0 && choose_kinds(m, operations);
    if (useful) {
        m->watched = alloc_zeroed(plan->buffer_count, sizeof *m->watched);
        m->concerns = alloc_zeroed(plan->op_count, sizeof *m->concerns);
        if (m->watched && m->concerns) watch_buffers(m);
        size_t cells = (size_t)m->watched_count * plan->hardware.device_count;
        useful = cells > 0 && cells <= CELLS_MAX;
        m->cells = alloc_zeroed(useful ? cells : 1, sizeof *m->cells);
        if (!m->watched || !m->concerns || !m->cells) {
            sim_lookahead_maker_destroy(m);
            return error_memory(err, "lookahead limits of streams", cells * sizeof *m->cells);
        }
    }
    if (useful) *out = m;
    else sim_lookahead_maker_destroy(m);
    return STATUS_OK;
}

void sim_lookahead_maker_destroy(struct sim_lookahead_maker *maker)
{
    if (!maker) return;
    free(maker->watched);
    free(maker->concerns);
    free(maker->cells);
    free(maker->limits);
    free(maker);
}

bool sim_lookahead_maker_concerns(const struct sim_lookahead_maker *maker, const struct plan_op *op)
{
    return maker->concerns[op - maker->plan->ops];
}

/* --- in plan order -------------------------------------------------------------------------- */

void sim_lookahead_maker_forget(struct sim_lookahead_maker *maker)
{
    maker->period++;
}

static enum status add_limit(struct sim_lookahead_maker *m, uint32_t stream, uint64_t before,
                             const struct lookahead_seen *awaited, struct error *err)
{
    if (m->limit_count == LIMITS_MAX) return STATUS_OK;
    TRY(array_reserve(&m->limits, &m->limit_capacity, m->limit_count, sizeof *m->limits, LIMITS_MAX,
                                       "lookahead limits of streams", err));
    m->limits[m->limit_count++] = (struct sim_lookahead_limit){
        .left = before, .count = awaited->count, .stream = stream, .awaited = awaited->stream};
    return STATUS_OK;
}

/* Returns the buffer's cell on the device, cleared if of an earlier period or lifetime. */
static struct lookahead_cell *cell_of(struct sim_lookahead_maker *m, uint32_t device, const struct plan_access *access)
{
    uint32_t watched = m->watched[access->buffer];
    if (watched == 0) return NULL;
    struct lookahead_cell *cell = &m->cells[(size_t)device * m->watched_count + watched - 1];
    if (cell->period != m->period || access->flags & ACCESS_ACQUIRE)
        *cell = (struct lookahead_cell){.period = m->period};
    return cell;
}

enum status sim_lookahead_maker_note(struct sim_lookahead_maker *m, const struct plan_task *task,
                                     const struct plan_op *op, uint32_t device, uint32_t place, uint32_t stream,
                                     uint64_t before, struct error *err)
{
    uint32_t first, end;
    struct lookahead_seen last = {0}, now = {before + 1, ++m->number, stream};
    if (!sim_lookahead_maker_concerns(m, op)) return STATUS_OK;
    plan_gang_own_accesses(m->plan, task, op, place, &first, &end);
    for (uint32_t a = first; a < end; a++) {
        const struct plan_access *access = &m->plan->accesses[op->first_access + a];
        struct lookahead_cell *cell = cell_of(m, device, access);
        if (!cell) continue;
        bool writes = access->flags & ACCESS_WRITE;
        const struct lookahead_seen *awaited = writes ? &cell->access : &cell->write;
        if (awaited->number > last.number && awaited->stream != stream) last = *awaited;
        cell->access = now;
        if (writes) cell->write = now;
        if (access->flags & ACCESS_RELEASE) cell->period = 0;
    }
    return last.number > 0 && m->few[op->stream] ? add_limit(m, stream, before, &last, err) : STATUS_OK;
}

/* --- limits -------------------------------------------------------------------------------- */

enum status sim_lookahead_make(struct sim_lookahead_maker *maker, struct arena *arena, const uint64_t *totals,
                               struct sim_lookahead *out, struct error *err)
{
    enum status status = STATUS_OK;
    uint32_t streams = plan_stream_count(maker->plan), count = (uint32_t)maker->limit_count;
    if (count == 0) return STATUS_OK;
    struct sim_lookahead lookahead = {.count = count};
    lookahead.limits = sim_allocate(arena, count, sizeof *lookahead.limits, &status, err);
    lookahead.next = sim_allocate(arena, streams, sizeof *lookahead.next, &status, err);
    lookahead.end = sim_allocate(arena, streams, sizeof *lookahead.end, &status, err);
    lookahead.first_shut = sim_allocate(arena, streams, sizeof *lookahead.first_shut, &status, err);
    lookahead.next_shut = sim_allocate(arena, streams, sizeof *lookahead.next_shut, &status, err);
    if (status != STATUS_OK) return status;
    for (uint32_t g = 0; g < count; g++) lookahead.end[maker->limits[g].stream]++;
    for (uint32_t s = 0, sum = 0; s < streams; s++) {
        lookahead.next[s] = sum;
        sum += lookahead.end[s];
        lookahead.end[s] = lookahead.next[s]; /* until they are filled in: position of the next */
        lookahead.first_shut[s] = lookahead.next_shut[s] = PLAN_NONE;
    }
    for (uint32_t g = 0; g < count; g++) {
        struct sim_lookahead_limit limit = maker->limits[g];
        limit.left = totals[limit.stream] - limit.left;
        lookahead.limits[lookahead.end[limit.stream]++] = limit;
    }
    *out = lookahead;
    return STATUS_OK;
}

const struct sim_lookahead_limit *sim_lookahead_next(struct sim_lookahead *lookahead, uint32_t stream, uint64_t left)
{
    if (!lookahead->next) return NULL;
    uint32_t *next = &lookahead->next[stream], end = lookahead->end[stream];
    while (*next < end && lookahead->limits[*next].left > left) ++*next;
    return *next < end && lookahead->limits[*next].left == left ? &lookahead->limits[*next] : NULL;
}
