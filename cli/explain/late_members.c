#include "cli/explain/late_members.h"

#include <stdlib.h>

#include "base/try.h"
#include "planner/walk/plan_walk.h"

/* The collective whose members the walk is at. */
struct late_group {
    uint32_t device; /* the member that waited least so far ... */
    double least_s;  /* ... and its wait */
    double sum_s;
};

static int by_seconds(const void *a, const void *b)
{
    const struct explain_late_member *x = a, *y = b;
    if (x->seconds > y->seconds || x->seconds < y->seconds) return x->seconds > y->seconds ? -1 : 1;
    return (x->device > y->device) - (x->device < y->device);
}

static void add_member(struct late_group *group, const struct plan_walk_op *op, double waited_s)
{
    if (op->join_at == 0) *group = (struct late_group){.device = op->device, .least_s = waited_s};
    if (waited_s < group->least_s) *group = (struct late_group){op->device, waited_s, group->sum_s};
    group->sum_s += waited_s;
}

/* Counts a collective after its last member. */
static void add_group(const struct late_group *group, uint32_t members, struct explain_late_members *out)
{
    const double others_s = group->sum_s - group->least_s * members;
    if (!(others_s > 0)) return;
    out->items[group->device].times++;
    out->items[group->device].seconds += others_s;
    out->collectives++;
}

static void sort(struct explain_late_members *out, uint32_t device_count)
{
    qsort(out->items, device_count, sizeof *out->items, by_seconds);
    while (out->count < device_count && out->items[out->count].times > 0) out->count++;
}

enum status explain_late_members_find(const struct plan *plan, const struct trace *trace, struct arena *arena,
                                      struct explain_late_members *out, struct error *err)
{
    const uint32_t device_count = plan->hardware.device_count;
    struct plan_walk *walk = NULL;
    struct plan_walk_op op;
    struct late_group group = {0};
    *out = (struct explain_late_members){0};
    if (!trace->has_waits) return STATUS_OK;
    TRY(ARENA_NEW(arena, device_count, out->items, err));
    for (uint32_t d = 0; d < device_count; d++) out->items[d].device = d;
    TRY(plan_walk_create(plan, NULL, &walk, err));
    while (plan_walk_next(walk, &op)) {
        if (op.op->kind != OP_COLLECTIVE || op.number >= trace->span_count) continue;
        add_member(&group, &op, trace->spans[op.number].waited_s);
        if (op.join_at + 1 == op.join_count) add_group(&group, op.join_count, out);
    }
    const bool failed = plan_walk_failed(walk);
    plan_walk_destroy(walk);
    if (failed) return error_memory(err, "a walk over the plan", 0);
    sort(out, device_count);
    return STATUS_OK;
}
