/* Spilling without interleaving: one model after the other, through one device (the first row of Hydra's ablation,
 * Table 3). */
#include "planner/policy/policies.h"

static bool choose(void *state, const struct policy_view *view, struct policy_choice *out)
{
    (void)state;
    uint32_t next = POLICY_NONE;
    for (uint32_t j = 0; j < view->job_count; j++) {
        if (view->jobs[j].remaining <= 0) continue;
        bool begun = view->jobs[j].last_device != POLICY_NONE;
        if (begun || (next == POLICY_NONE && policy_place(view, j) != POLICY_NONE)) next = j;
        if (begun) break;
    }
    if (next == POLICY_NONE) return false;
    *out = (struct policy_choice){next, policy_place(view, next)};
    return out->device != POLICY_NONE;
}

const struct policy policy_spill_sequential = {
    .version = SPILLWAY_POLICY_VERSION,
    .name = "spill-sequential",
    .summary = "one spilled job after the other, on one device",
    .choose = choose,
    .one_device = true,
};
