/* A user's policy is asked in a child process, as in a run. */
#include "cli/ways/cli_predict_live.h"

#include "base/try.h"
#include "planner/policy/policy_process.h"

enum status cli_predict_live(const struct plan *plan, const struct hardware *hardware, const char *policy,
                             const struct cli_predict_options *how, struct cli_prediction *out, struct error *err)
{
    struct policy_process *process = NULL;
    struct error why = {0};
    TRY(policy_process_open(policy, 0, &process, err));
    const struct plan_dispatch_options live = policy_process_dispatch(process, how->seed);
    struct cli_predict_options asking = *how;
    asking.live = &live;
    enum status status = cli_predict(plan, hardware, &asking, out, &why);
    if (policy_process_failed(process, err) != STATUS_OK) status = err->status; /* the cause of `why` */
    else if (status != STATUS_OK) error_set(err, status, "%s", why.text);
    policy_process_close(process);
    return status;
}
