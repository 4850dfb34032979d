/* See cli_predict_live.h: a policy of the user's is tried where it may crash, then asked here. */
#include "cli/cli_predict_live.h"

#include <stdlib.h>
#include <string.h>

#include "base/contain.h"
#include "planner/policy_load.h"

static const struct contain_limits limits = {.seconds = 60};

struct attempt {
    const struct plan *plan;
    const struct hardware *hardware; /* NULL: the plan's own */
    const char *policy;
    const struct cli_predict_options *how;
};

/* Simulates with the policy; what came of it is all that is told. */
static void try_policy(void *context, struct contain_sink *sink)
{
    const struct attempt *attempt = context;
    struct policy_handle handle = {0};
    struct sim_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    if (policy_open(attempt->policy, &handle, &err) == STATUS_OK) {
        const struct cli_predict_options *how = attempt->how;
        struct plan_dispatch_options live = {.policy = handle.policy, .seed = how->seed};
        struct sim_options options = {.hardware = attempt->hardware, .live = &live, .slow = how->slow,
                                      .noise = how->noise, .seed = how->seed, .demand_first = how->demand_first};
        if (sim_run(attempt->plan, &options, &result, &trace, &err)) {}
    }
    contain_write(sink, &err, sizeof err);
}

static enum status try_apart(const struct attempt *attempt, struct error *err)
{
    struct attempt copy = *attempt;
    struct error found;
    struct contain_end end;
    char why[CONTAIN_TEXT_BYTES];
    void *result;
    size_t length;
    if (contain_run(try_policy, &copy, &limits, sizeof found, &result, &length, &end, err)) return err->status;
    if (!result)
        return error_set(err, STATUS_BAD_INPUT, "%s: the process of the policy %s", attempt->policy,
                         contain_text(&end, &limits, why));
    bool sound = length == sizeof found;
    if (sound) memcpy(&found, result, sizeof found);
    free(result);
    sound = sound && (unsigned)found.status < STATUS_COUNT && memchr(found.text, '\0', sizeof found.text);
    if (!sound)
        return error_set(err, STATUS_BAD_INPUT, "%s: the process of the policy left a result that makes no sense",
                         attempt->policy);
    return found.status == STATUS_OK ? STATUS_OK : error_set(err, found.status, "%s", found.text);
}

enum status cli_predict_live(const struct plan *plan, const struct hardware *hardware, const char *policy,
                             const struct cli_predict_options *how, struct cli_prediction *out, struct error *err)
{
    struct attempt attempt = {plan, hardware, policy, how};
    struct policy_handle handle = {0};
    enum status status = policy_is_file(policy) ? try_apart(&attempt, err) : STATUS_OK;
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
