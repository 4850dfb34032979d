/* SRTF: the ready job with the shortest remaining time. Good for the mean completion time, bad for
 * the makespan: the longest job is left alone at the end. Ties to the lowest index. */
#include "planner/policy.h"

static uint32_t choose(const struct policy_view *view, uint32_t device)
{
    uint32_t best = PLAN_NONE;
    for (uint32_t j = 0; j < view->job_count; j++)
        if (policy_may_run(view, j, device) &&
            (best == PLAN_NONE || view->jobs[j].remaining_s < view->jobs[best].remaining_s))
            best = j;
    return best;
}

const struct policy policy_srtf = {
    .name = "srtf",
    .summary = "shortest remaining job first",
    .choose = choose,
};
