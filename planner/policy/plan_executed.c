/* Repetitions are folded as they are in a plan that was made beforehand, so equal orders are equal plans. */
#include "planner/policy/plan_executed.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "planner/walk/plan_fold.h"

enum status plan_executed_make(const struct plan *plan, const struct plan_task *order, uint32_t count,
                               struct plan_executed *out, struct error *err)
{
    struct plan_folded folded;
    struct plan_task *tasks = alloc_zeroed(count, sizeof *tasks);
    *out = (struct plan_executed){.tasks = tasks};
    if (!tasks) return error_memory(err, "a plan's order", count * sizeof *tasks);
    if (count > 0) memcpy(tasks, order, count * sizeof *tasks);
    enum status status = plan_fold(tasks, count, &folded, err);
    if (status != STATUS_OK) {
        plan_executed_release(out);
        return status;
    }
    out->segments = folded.segments;
    out->plan = *plan;
    out->plan.tasks = tasks;
    out->plan.task_count = folded.task_count;
    out->plan.choice_count = 0;
    out->plan.any_order = false;
    out->plan.segments = folded.segments;
    out->plan.segment_count = folded.segment_count;
    out->plan.order = (struct plan_order){.kind = PLAN_ORDER_NONE};
    return STATUS_OK;
}

void plan_executed_release(struct plan_executed *executed)
{
    free(executed->tasks);
    free(executed->segments);
    *executed = (struct plan_executed){.tasks = NULL};
}
