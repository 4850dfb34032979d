/* SRTF: the ready job with the shortest remaining time. Good for the mean completion time, bad for
 * the makespan: the longest job is left alone at the end. Ties to the lowest index. */
#include "planner/policies.h"

static double shortness(const struct policy_view *view, const struct policy_job *job)
{
    (void)view;
    return -job->remaining;
}

static bool choose(void *state, const struct policy_view *view, struct policy_choice *out)
{
    (void)state;
    return policy_highest(view, shortness, out);
}

const struct policy policy_srtf = {
    .version = SPILLWAY_POLICY_VERSION,
    .name = "srtf",
    .summary = "shortest remaining job first",
    .choose = choose,
};
