/* FIFO: the job that has been ready for longest; ties to the lowest index. With more jobs than
 * devices this is round robin over the units. */
#include "planner/policy.h"

static uint32_t choose(const struct policy_view *view, uint32_t device)
{
    uint32_t best = PLAN_NONE;
    for (uint32_t j = 0; j < view->job_count; j++)
        if (policy_may_run(view, j, device) &&
            (best == PLAN_NONE || view->jobs[j].ready_s < view->jobs[best].ready_s))
            best = j;
    return best;
}

const struct policy policy_fifo = {
    .name = "fifo",
    .summary = "the job that has waited longest",
    .choose = choose,
};
