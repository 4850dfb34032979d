/*
 * A unit, or a minibatch of a parallel job, ends when its operations on its devices' streams have ended or, without
 * these, all of them. Later updates, and the host processor's work for the previous unit, have other numbers or
 * streams.
 */
#include "sim/dispatch.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/try.h"

struct dispatch_running {
    uint64_t first, end; /* numbers of its operations */
    uint32_t left;       /* counted operations that have not ended */
    bool on_host;        /* all operations count */
    bool more;           /* further tasks of a minibatch follow, which holds it open */
};

struct sim_dispatch {
    const struct plan *plan;
    struct plan_dispatch *dispatch;
    struct dispatch_running *running; /* (job count) */
    bool changed;                     /* since no unit could be chosen */
};

enum status sim_dispatch_create(const struct plan *plan, const struct plan_dispatch_options *options,
                                struct sim_dispatch **out, struct error *err)
{
    struct sim_dispatch *d = alloc_zeroed(1, sizeof *d);
    if (!d) return error_memory(err, "live dispatch", sizeof *d);
    d->plan = plan;
    d->changed = true;
    d->running = alloc_zeroed(plan->jobs.count, sizeof *d->running);
    enum status status = d->running ? plan_dispatch_create(plan, options, &d->dispatch, err)
                                    : error_memory(err, "live dispatch", plan->jobs.count * sizeof *d->running);
    if (status == STATUS_OK) *out = d;
    else sim_dispatch_destroy(d);
    return status;
}

void sim_dispatch_destroy(struct sim_dispatch *dispatch)
{
    if (!dispatch) return;
    plan_dispatch_destroy(dispatch->dispatch);
    free(dispatch->running);
    free(dispatch);
}

/* Adds a decided task's operations, the first of which is `number`. */
static void count_task(struct sim_dispatch *dispatch, const struct plan_dispatched *next, uint64_t number)
{
    const struct plan_unit *unit = &dispatch->plan->units[next->task->unit];
    struct dispatch_running *running = &dispatch->running[unit->job];
    const uint32_t members = plan_task_members(dispatch->plan, next->task);
    if (!running->more) *running = (struct dispatch_running){.first = number};
    running->end = number + (uint64_t)unit->op_count * members;
    for (uint32_t o = 0; o < unit->op_count; o++)
        if (!plan_stream_is_host(dispatch->plan->ops[unit->first_op + o].stream)) running->left += members;
    running->more = next->more;
    running->on_host = running->left == 0 && !running->more;
    if (running->on_host) running->left = unit->op_count * members;
}

enum status sim_dispatch_push(struct sim_dispatch *dispatch, struct plan_walk *walk, uint64_t number,
                              double now_s, bool *found, struct error *err)
{
    struct plan_dispatched next;
    *found = false;
    if (!dispatch->changed) return STATUS_OK;
    TRY(plan_dispatch_next(dispatch->dispatch, now_s, &next, found, err));
    dispatch->changed = *found;
    if (!*found) return STATUS_OK;
    plan_walk_push(walk, next.task);
    if (next.decided) count_task(dispatch, &next, number);
    return STATUS_OK;
}

void sim_dispatch_ended(struct sim_dispatch *dispatch, const struct plan_unit *unit, uint64_t number,
                        uint32_t stream_kind, double now_s)
{
    struct dispatch_running *running = &dispatch->running[unit->job];
    if (number < running->first || number >= running->end) return;
    if (plan_stream_is_host(stream_kind) && !running->on_host) return;
    if (--running->left > 0 || running->more) return;
    plan_dispatch_over(dispatch->dispatch, unit->job, now_s);
    dispatch->changed = true;
}
