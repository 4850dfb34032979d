/* The strategies for a whole machine; the first that applies plans. */
#include "planner/strategy/planner.h"

#include "planner/strategy/direct.h"
#include "planner/strategy/leased.h"
#include "planner/strategy/settle.h"

static const struct planner_strategy strategies[] = {
    {"reservations", leased_applies, leased_plan},
    {"resident placement", settle_applies, settle_plan},
    {"all jobs together", planner_strategy_always, direct_plan},
};

enum status planner_plan(struct hardware *hardware, struct job_set *jobs, const struct planner_options *options,
                         struct plan *out, struct error *err)
{
    const struct planner_strategy *strategy = strategies;
    while (!strategy->applies(hardware, jobs, options)) strategy++;
    return strategy->plan(hardware, jobs, options, out, err);
}
