/* Spilling alone: one model after the other, each spilled through one device (the first row of
 * Hydra's ablation, Table 3). The job that has begun goes on until it is done. */
#include "planner/policy.h"

static uint32_t choose(const struct policy_view *view, uint32_t device)
{
    uint32_t fresh = PLAN_NONE;
    for (uint32_t j = 0; j < view->job_count; j++) {
        if (view->jobs[j].remaining_s <= 0) continue;
        if (view->jobs[j].last_device != PLAN_NONE) /* begun and not done */
            return policy_may_run(view, j, device) ? j : PLAN_NONE;
        if (fresh == PLAN_NONE && policy_may_run(view, j, device)) fresh = j;
    }
    return fresh;
}

const struct policy policy_spill_sequential = {
    .name = "spill-sequential",
    .summary = "one spilled job after the other, on one device",
    .choose = choose,
    .one_device = true,
};
