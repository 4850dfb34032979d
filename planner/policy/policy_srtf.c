/* SRTF: the ready job with the shortest remaining time; ties to the lowest index. Good for the mean completion time,
 * bad for the makespan: the longest job runs by itself at the end. */
#include "planner/policy/policies.h"

static double shortness(void *state, const struct policy_view *view, uint32_t job)
{
    (void)state;
    return -view->jobs[job].remaining;
}

const struct policy policy_srtf = {
    .version = SPILLWAY_POLICY_VERSION,
    .name = "srtf",
    .summary = "shortest remaining job first",
    .rank = shortness,
};
