/* FIFO: the job that has been ready for longest; ties to the lowest index. With more jobs than
 * devices this is round robin over the units. */
#include "planner/policies.h"

static double waited(const struct policy_view *view, const struct policy_job *job)
{
    (void)view;
    return -job->ready;
}

static bool choose(void *state, const struct policy_view *view, struct policy_choice *out)
{
    (void)state;
    return policy_highest(view, waited, out);
}

const struct policy policy_fifo = {
    .version = SPILLWAY_POLICY_VERSION,
    .name = "fifo",
    .summary = "the job that has waited longest",
    .choose = choose,
};
