/*
 * A unit ends when its operations on its device's streams have ended or, without these, all of them. Later updates, and
 * the host processor's work for the previous unit, have other numbers or streams.
 */
#include "sim/dispatch.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/try.h"

struct dispatch_running {
    uint64_t first, end; /* numbers of its operations */
    uint32_t left;       /* counted operations that have not ended */
    bool on_host;        /* all operations count */
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
    if (!next.decided) return STATUS_OK;
    const struct plan_unit *unit = &dispatch->plan->units[next.task->unit];
    struct dispatch_running *running = &dispatch->running[unit->job];
    *running = (struct dispatch_running){.first = number, .end = number + unit->op_count};
    for (uint32_t o = 0; o < unit->op_count; o++)
        running->left += !plan_stream_is_host(dispatch->plan->ops[unit->first_op + o].stream);
    running->on_host = running->left == 0;
    if (running->on_host) running->left = unit->op_count;
    return STATUS_OK;
}

void sim_dispatch_ended(struct sim_dispatch *dispatch, const struct plan_unit *unit, uint64_t number,
                        uint32_t stream_kind, double now_s)
{
    struct dispatch_running *running = &dispatch->running[unit->job];
    if (number < running->first || number >= running->end) return;
    if (plan_stream_is_host(stream_kind) && !running->on_host) return;
    if (--running->left > 0) return;
    plan_dispatch_over(dispatch->dispatch, unit->job, now_s);
    dispatch->changed = true;
}
