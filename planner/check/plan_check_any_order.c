/*
 * Any order: the tasks of several parallel jobs may follow each other in any way.
 *
 * One condition is enough. In the plan's own order each job is within memory by itself. If the range of memory that a
 * job uses on a device, from its lowest slot to the end of its highest, meets no other job's range there, jobs cannot
 * overlap in any other order either. Staged buffers are in an arena of their own. Host buffers belong to one job, so
 * what a computation finds in them depends only on its job's order.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/try.h"
#include "planner/check/plan_checker.h"

enum { ARENA_DEVICE, ARENA_STAGED, ARENA_COUNT };

/* More are refused: the table of ranges would have 1.5 GiB. */
enum { PLAN_CHECK_ANY_ORDER_RANGES_MAX = 1 << 26 };

struct plan_check_any_order_range {
    uint64_t first, end; /* equal: none */
    uint32_t job;
};

static void widen(struct plan_check_any_order_range *range, const struct plan_slot *slot, uint32_t job)
{
    if (slot->bytes == 0) return;
    const bool some = range->end > range->first;
    range->job = job;
    if (!some || slot->offset_bytes < range->first) range->first = slot->offset_bytes;
    if (slot->offset_bytes + slot->bytes > range->end) range->end = slot->offset_bytes + slot->bytes;
}

/* Adds the task's slots to its job's ranges on all its devices; `ranges`: [arena][device][job]. */
static void add_task(const struct plan *plan, const struct plan_task *task, struct plan_check_any_order_range *ranges)
{
    const struct plan_unit *unit = &plan->units[task->unit];
    const uint32_t *layout = plan->layouts + task->layout;
    const size_t devices = plan->hardware.device_count, jobs = plan->jobs.count;
    for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++) {
        const struct plan_access *accesses = plan->accesses + plan->ops[o].first_access;
        for (uint32_t a = 0; a < plan->ops[o].access_count; a++) {
            if (!(accesses[a].flags & ACCESS_ACQUIRE)) continue;
            const struct plan_slot *slot = &plan->slots[*layout++];
            const size_t arena = plan->buffers[accesses[a].buffer].on_device ? ARENA_DEVICE : ARENA_STAGED;
            for (uint32_t m = 0; m < plan_task_members(plan, task); m++)
                widen(&ranges[(arena * devices + plan_task_device(plan, task, m)) * jobs + unit->job], slot, unit->job);
        }
    }
}

static int by_first(const void *a, const void *b)
{
    const struct plan_check_any_order_range *x = a, *y = b;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : x->end < y->end ? -1 : x->end > y->end;
}

/* Checks the ranges of all jobs in one arena of a device. Sorts them. */
static enum status check_apart(struct checker *c, struct plan_check_any_order_range *ranges, uint32_t device)
{
    const struct plan *plan = c->plan;
    const struct plan_check_any_order_range *last = NULL;
    qsort(ranges, plan->jobs.count, sizeof *ranges, by_first);
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        if (ranges[j].end == ranges[j].first) continue;
        if (last && ranges[j].first < last->end)
            return check_fail(c, CHECK_RULE_MEMORY,
                              "jobs may be in any order, and %s has bytes %" PRIu64 " to %" PRIu64
                              " of device %u, %s has %" PRIu64 " to %" PRIu64, plan->jobs.jobs[last->job].name,
                              last->first, last->end, device, plan->jobs.jobs[ranges[j].job].name, ranges[j].first,
                              ranges[j].end);
        last = &ranges[j];
    }
    return STATUS_OK;
}

static enum status check_form(struct checker *c)
{
    const struct plan *plan = c->plan;
    const char *has = plan->choice_count > 0 ? "choices" : plan->reservation_count > 0 ? "reservations"
                      : plan->host_ranges  ? "ranges of host memory"
                      : plan->after_count > 0 ? "operations that name others to wait for" : NULL;
    if (has) return check_fail(c, CHECK_RULE_FORM, "jobs may be in any order, and the plan has %s", has);
    for (uint32_t j = 0; j < plan->jobs.count; j++)
        if (!check_is_parallel(c, j))
            return check_fail(c, CHECK_RULE_FORM, "jobs may be in any order, and %s is not parallel",
                              plan->jobs.jobs[j].name);
    return STATUS_OK;
}

enum status check_any_order(struct checker *c)
{
    const struct plan *plan = c->plan;
    if (!plan->any_order) return STATUS_OK;
    TRY(check_form(c));
    const size_t rows = ARENA_COUNT * (size_t)plan->hardware.device_count, count = rows * plan->jobs.count;
    if (count > PLAN_CHECK_ANY_ORDER_RANGES_MAX)
        return error_set(c->err, STATUS_LIMIT, "too many jobs and devices for jobs in any order (limit is %d pairs)",
                         PLAN_CHECK_ANY_ORDER_RANGES_MAX / ARENA_COUNT);
    struct plan_check_any_order_range *ranges = alloc_zeroed(count, sizeof *ranges);
    if (!ranges) return error_memory(c->err, "checking a plan", count * sizeof *ranges);
    for (uint32_t i = 0; i < plan->task_count; i++) add_task(plan, &plan->tasks[i], ranges);
    enum status status = STATUS_OK;
    for (size_t row = 0; row < rows && status == STATUS_OK; row++)
        status = check_apart(c, ranges + row * plan->jobs.count, (uint32_t)(row % plan->hardware.device_count));
    free(ranges);
    return status;
}
