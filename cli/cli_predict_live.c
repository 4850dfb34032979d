/* See cli_predict_live.h: a policy of the user's is tried where it may crash, then asked here. */
#include "cli/cli_predict_live.h"

#include "cli/cli_apart.h"
#include "planner/policy_load.h"

struct attempt {
    const struct plan *plan;
    const struct hardware *hardware; /* NULL: the plan's own */
    const char *policy;
    const struct cli_predict_options *how;
};

/* Simulates with the policy. */
static enum status simulate_with(void *context, struct error *err)
{
    const struct attempt *attempt = context;
    struct policy_handle handle = {0};
    struct sim_result result = {0};
    struct trace trace = {0};
    if (policy_open(attempt->policy, &handle, err) == STATUS_OK) {
        const struct cli_predict_options *how = attempt->how;
        struct plan_dispatch_options live = {.policy = handle.policy, .seed = how->seed};
        struct sim_options options = {.hardware = attempt->hardware, .live = &live, .slow = how->slow,
                                      .noise = how->noise, .seed = how->seed, .demand_first = how->demand_first};
        (void)!sim_run(attempt->plan, &options, &result, &trace, err);
    }
    sim_result_release(&result);
    trace_release(&trace);
    policy_close(&handle);
    return err->status;
}

enum status cli_predict_live(const struct plan *plan, const struct hardware *hardware, const char *policy,
                             const struct cli_predict_options *how, struct cli_prediction *out, struct error *err)
{
    struct attempt attempt = {plan, hardware, policy, how};
    struct policy_handle handle = {0};
    enum status status = cli_try_apart(policy, simulate_with, &attempt, err);
    if (status == STATUS_OK) status = policy_open(policy, &handle, err);
    if (status == STATUS_OK) {
        struct plan_dispatch_options live = {.policy = handle.policy, .seed = how->seed};
        struct cli_predict_options asking = *how;
        asking.live = &live;
        status = cli_predict(plan, hardware, &asking, out, err);
    }
    policy_close(&handle);
    return status;
}
