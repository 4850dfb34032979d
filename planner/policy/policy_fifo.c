/* FIFO: the job that has been ready for longest; ties to the lowest index. With more jobs than
 * devices this is round robin over the units. */
#include "planner/policy/policies.h"

static double waited(void *state, const struct policy_view *view, uint32_t job)
{
    (void)state;
    return -view->jobs[job].ready;
}

const struct policy policy_fifo = {
    .version = SPILLWAY_POLICY_VERSION,
    .name = "fifo",
    .summary = "the job that has waited longest",
    .rank = waited,
};
