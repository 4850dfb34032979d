/* Random: any ready job with equal probability, drawn from the seed and the number of the decision. */
#include "planner/policy/policies.h"

#include "base/random.h"

static bool choose(void *state, const struct policy_view *view, struct policy_choice *out)
{
    (void)state;
    uint32_t ready = 0;
    for (uint32_t j = 0; j < view->job_count; j++) ready += policy_place(view, j) != POLICY_NONE;
    if (ready == 0) return false;
    uint64_t pick = random_below(view->seed, view->decision, ready);
    for (uint32_t j = 0; j < view->job_count; j++) {
        uint32_t device = policy_place(view, j);
        if (device == POLICY_NONE || pick-- > 0) continue;
        *out = (struct policy_choice){j, device};
        return true;
    }
    return false;
}

const struct policy policy_random = {
    .version = SPILLWAY_POLICY_VERSION,
    .name = "random",
    .summary = "any ready job (--seed)",
    .choose = choose,
};
