/*
 * A plan of a million steps is walked, not loaded. The simulator needs the running operations, the candidates to run
 * next on their streams, and those between them in plan order:
 *
 *     plan order  ... done | base . d d r d w r d w w issued | not yet walked ...
 *                            ^ oldest that is not done          d done, r running, w waiting
 *
 * Records are in a ring, indexed by the low bits of their number. Two more rings, written and freed in the same order,
 * hold their lists: awaited operations, and lifetimes of device memory. A record has its lists' starts; the next
 * record's starts are their ends.
 *
 *     ops    [ 7: waits at 12, uses at 30 ][ 8: waits at 14, uses at 33 ][ 9: ...
 *     waits  ... | 12: 3 5 | 14: 6 | ...
 *
 * Awaited operations that are done when an operation is issued are dropped.
 *
 * A full ring is doubled: in place if it has not wrapped around; else its entries move to the longer mask's positions.
 * So memory is proportional to the widest window, about 32 + 4 * (waits + uses) bytes per operation. A stream that is
 * idle for a long stretch of the plan makes the window span it (sim.c).
 *
 * Lists of dependants per operation were rejected. They cost an allocation per wait, and most waits have ended before
 * the operation heads its stream. Checking the heads' waits needs neither counters nor lists.
 */
#include "sim/window.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { FIRST_ENTRIES = 64, LARGEST_WINDOW = 1 << 30 };

static_assert(sizeof(struct sim_op) == 32, "two records in a cache line");

/* --- rings ---------------------------------------------------------------------------------- */

static bool ring_move(char **ring, uint32_t mask, uint32_t larger_mask, size_t size, uint32_t first, uint32_t end)
{
    char *larger = alloc_zeroed((size_t)larger_mask + 1, size);
    if (!larger) return false;
    for (uint32_t i = first, count; i != end; i += count) { /* up to where the shorter ring wraps around */
        count = mask + 1 - (i & mask);
        if (count > end - i) count = end - i;
        memcpy(larger + (size_t)(i & larger_mask) * size, *ring + (size_t)(i & mask) * size, count * size);
    }
    free(*ring);
    *ring = larger;
    return true;
}

/* Keeps entries [first, end). Returns false without memory. */
static bool ring_double(void *ring, uint32_t *mask, size_t size, uint32_t first, uint32_t end)
{
    uint32_t larger_mask = *mask * 2 + 1;
    bool in_place = first <= end && end <= *mask + 1; /* it has not wrapped around yet */
    char *entries;
    memcpy(&entries, ring, sizeof entries);
    if (in_place) {
        char *larger = alloc_resize(entries, ((size_t)larger_mask + 1) * size);
        if (!larger) return false;
        entries = larger;
    } else if (!ring_move(&entries, *mask, larger_mask, size, first, end)) {
        return false;
    }
    memcpy(ring, &entries, sizeof entries);
    *mask = larger_mask;
    return true;
}

static bool ring_fits(uint32_t mask, uint32_t first, uint32_t end, uint32_t more)
{
    return (uint64_t)(end - first) + more <= (uint64_t)mask + 1;
}

static bool ring_reserve(void *ring, uint32_t *mask, size_t size, uint32_t first, uint32_t end,
                         uint32_t more)
{
    while (!ring_fits(*mask, first, end, more)) {
        if (*mask >= INT32_MAX) return false;
        if (!ring_double(ring, mask, size, first, end)) return false;
    }
    return true;
}

/* --- creation ------------------------------------------------------------------------------- */

enum status sim_window_create(const struct plan *plan, struct plan_walk *walk,
                              struct sim_lifetimes *lifetimes, const struct sim_collectives *collectives,
                              struct sim_window *window, struct error *err)
{
    struct sim_window w = {.plan = plan, .walk = walk, .lifetimes = lifetimes, .collectives = collectives};
    w.unit_of = alloc_zeroed(plan->op_count, sizeof *w.unit_of);
    w.op_mask = w.wait_mask = w.use_mask = FIRST_ENTRIES - 1;
    w.ops = alloc_zeroed(FIRST_ENTRIES, sizeof *w.ops);
    w.waits = alloc_zeroed(FIRST_ENTRIES, sizeof *w.waits);
    w.uses = alloc_zeroed(FIRST_ENTRIES, sizeof *w.uses);
    if (!w.unit_of || !w.ops || !w.waits || !w.uses) {
        w.walk = NULL;
        sim_window_release(&w);
        return error_memory(err, "the window of operations", FIRST_ENTRIES * sizeof *w.ops);
    }
    for (uint32_t u = 0; u < plan->unit_count; u++)
        for (uint32_t o = 0; o < plan->units[u].op_count; o++) w.unit_of[plan->units[u].first_op + o] = u;
    *window = w;
    return STATUS_OK;
}

void sim_window_release(struct sim_window *window)
{
    plan_walk_destroy(window->walk);
    free(window->unit_of);
    free(window->ops);
    free(window->waits);
    free(window->uses);
    *window = (struct sim_window){0};
}

uint64_t sim_window_bytes(const struct sim_window *window)
{
    return ((uint64_t)window->op_mask + 1) * sizeof *window->ops +
           ((uint64_t)window->wait_mask + 1) * sizeof *window->waits +
           ((uint64_t)window->use_mask + 1) * sizeof *window->uses;
}

/* --- issuing -------------------------------------------------------------------------------- */

/* Checks the room for one more record, the one after the last. */
static bool fits(const struct sim_window *w, const struct plan_walk_op *op)
{
    return ring_fits(w->op_mask, (uint32_t)w->base, (uint32_t)w->issued + 1, 1) &&
           ring_fits(w->wait_mask, w->wait_first, w->wait_end, op->wait_count) &&
           ring_fits(w->use_mask, w->use_first, w->use_end, op->use_count);
}

static bool reserve(struct sim_window *w, const struct plan_walk_op *op)
{
    if (fits(w, op)) return true;
    const struct sim_op *oldest = sim_window_op(w, (uint32_t)w->base);
    w->wait_first = oldest->first_wait;
    w->use_first = oldest->first_use;
    return ring_reserve(&w->ops, &w->op_mask, sizeof *w->ops, (uint32_t)w->base,
                        (uint32_t)w->issued + 1, 1) &&
           ring_reserve(&w->waits, &w->wait_mask, sizeof *w->waits, w->wait_first, w->wait_end,
                        op->wait_count) &&
           ring_reserve(&w->uses, &w->use_mask, sizeof *w->uses, w->use_first, w->use_end,
                        op->use_count);
}

static bool append_uses(struct sim_window *w, const struct plan_walk_op *op)
{
    struct sim_uses uses = {w->uses, w->use_mask, w->use_end, w->use_end};
    bool complete = sim_lifetimes_use(w->lifetimes, op->uses, op->use_count, &uses);
    w->use_end = uses.end;
    return complete;
}

static void append_waits(struct sim_window *w, const struct plan_walk_op *op)
{
    for (uint32_t i = 0; i < op->wait_count; i++) {
        if (op->waits[i] < w->base) continue;
        uint32_t low = (uint32_t)op->waits[i];
        if (sim_window_done(w, low)) continue;
        w->waits[w->wait_end++ & w->wait_mask] = low;
    }
}

static void join(const struct sim_window *window, const struct plan_walk_op *op, struct sim_op *record)
{
    assert(op->join_count <= SIM_JOINED_MAX);
    record->group = sim_collectives_group(window->collectives, op->gang, op->op->axes, op->group);
    record->peer = op->join_at == 0 ? op->join_count * SIM_JOINED + op->join_count : SIM_JOINS + op->join_at;
}

enum status sim_window_issue(struct sim_window *window, bool *some, uint32_t *low,
                             struct error *err)
{
    struct plan_walk_op op;
    *some = plan_walk_next(window->walk, &op);
    if (!*some && plan_walk_failed(window->walk))
        return error_set(err, STATUS_NO_MEMORY, "no memory for walking the plan");
    if (!*some) return STATUS_OK;
    assert(op.number == window->issued);
    if (window->issued - window->base >= LARGEST_WINDOW)
        return error_set(err, STATUS_LIMIT,
                         "too many operations between the first unfinished and the next one to "
                         "start (limit is %d)", LARGEST_WINDOW);
    if (!reserve(window, &op) || !append_uses(window, &op))
        return error_memory(err, "the window of operations", sim_window_bytes(window));
    append_waits(window, &op);

    *low = (uint32_t)window->issued++;
    struct sim_op *record = sim_window_op(window, *low);
    record->op = (uint32_t)(op.op - window->plan->ops);
    record->group = PLAN_NONE; /* clears the old value, because sim/steady.h compares records */
    record->peer = op.peer;
    if (op.op->kind == OP_COLLECTIVE) join(window, &op, record);
    record->minibatch = (op.minibatch < SIM_MINIBATCH_LAST ? op.minibatch : SIM_MINIBATCH_LAST) & SIM_MINIBATCH_LAST;
    record->stream = op.stream & SIM_NO_STREAM;
    record->waiter = SIM_NO_STREAM;
    struct sim_op *behind = sim_window_op(window, *low + 1);
    behind->first_wait = window->wait_end;
    behind->first_use = window->use_end;
    uint64_t count = window->issued - window->base;
    if (count > window->peak) window->peak = count;
    return STATUS_OK;
}

void sim_window_finish(struct sim_window *window, uint32_t low)
{
    sim_window_op(window, low)->waiter = SIM_DONE;
    while (window->base < window->issued &&
           sim_window_op(window, (uint32_t)window->base)->waiter == SIM_DONE)
        window->base++;
}
