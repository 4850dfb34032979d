/* The strategies for a whole machine; the first one that applies makes the plan. */
#include "planner/strategy/planner.h"

#include "planner/strategy/direct.h"
#include "planner/strategy/reservation.h"
#include "planner/strategy/resident.h"

static const struct planner_strategy strategies[] = {
    {"reservations", reservation_applies, reservation_plan},
    {"resident placement", resident_applies, resident_plan},
    {"all jobs together", NULL, direct_plan},
};

enum status planner_plan(struct hardware *hardware, struct job_set *jobs, const struct planner_options *options,
                         struct plan *out, struct error *err)
{
    return planner_strategy_plan(strategies, hardware, jobs, options, out, err);
}
