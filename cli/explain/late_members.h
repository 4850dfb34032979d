/*
 * Who came last to the collectives of a run, and how long the other members waited for it.
 */
#ifndef SPILLWAY_CLI_EXPLAIN_LATE_MEMBERS_H
#define SPILLWAY_CLI_EXPLAIN_LATE_MEMBERS_H

#include "planner/plan.h"
#include "traces/trace.h"

/* A device that came last to some collectives. */
struct explain_late_member {
    uint32_t device;
    uint64_t times;
    double seconds; /* in which other members waited for it */
};

struct explain_late_members {
    struct explain_late_member *items; /* the longest awaited first */
    uint32_t count;
    uint64_t collectives; /* for which members waited */
};

/*
 * Finds the late members of a complete trace of the plan. Traces without waits have none. The array lives as long as
 * `arena`. Cost: a walk over the plan.
 */
MUST_CHECK enum status explain_late_members_find(const struct plan *plan, const struct trace *trace,
                                                 struct arena *arena,
                                                 struct explain_late_members *out, struct error *err);

#endif
