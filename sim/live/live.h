/*
 * Live dispatch: an instance (planner/solve/instance/instance.h) on a machine, with a policy asked as slots become
 * free.
 *
 * The rules:
 *
 *   A unit takes a slot of its device and its memory when the policy chooses it, and releases both when
 *   it ends. It is copied in, unless the previous unit of the device has the same job and shard; then it
 *   computes; then, if it writes, it is copied out.
 *   Copies share the machine's links (sim/network/share.h); all copies of a device may run at the same time.
 *   A device computes one unit at a time, in the order in which copies in ended, with the slowdowns of
 *   sim/network/interference.h.
 *   A job is ready again when its unit ends: its output is in host memory then.
 *   The policy is asked at the start and whenever a unit ends, until it waits, no device has a free slot
 *   or no job is ready. It sees ticks; its remaining and free times are estimates without contention.
 *
 * Events at equal times: first ends (kind 0), then ends of latencies (kind 1). Within a kind, events are ordered by
 * number: three times the unit's number in the order of choices, plus 0 for its copy in, 1 for computing, 2 for its
 * copy out. Every end, with its decisions, takes effect before the next event.
 *
 * Memory does not grow with repetitions, unless spans are recorded.
 */
#ifndef SPILLWAY_SIM_LIVE_LIVE_H
#define SPILLWAY_SIM_LIVE_LIVE_H

#include "planner/policy/policy.h"
#include "planner/solve/instance/instance.h"
#include "sim/sim.h"

struct sim_live_options {
    const struct hardware *hardware; /* with the instance's number of devices */
    const struct policy *policy;
    void *state; /* state for its functions, instead of calling create() */
    uint64_t seed;
    const double *compute_s; /* (unit_count, class_count): actual computation times; NULL: the instance's, which
                                policies see */
    bool timed_copies; /* on an idle machine copies take `in` and `out`; else the time of their bytes */
    bool scan;         /* ask a policy's rank() for all jobs in every decision, and keep no ranks */
    bool record_spans; /* see struct sim_options */
    void (*on_progress)(void *context, double done, double total); /* units; may be NULL */
    void *context;
};

/* Makes the machine for an instance without one: every device has its own duplex link. */
MUST_CHECK enum status sim_live_machine(const struct instance *in, struct hardware *out,
                                        struct error *err);

/*
 * Simulates an instance as sim_run() (sim/sim.h) does a plan. `trace`, zeroed before, receives streams (one of copies
 * per slot), places with peaks (in the instance's unit of memory), jobs, and spans numbered by begin. The caller
 * releases both, also after an error. result->operations counts copies and computations. Errors: STATUS_BAD_INPUT for
 * another number of devices, copies without bytes, a choice that breaks a rule, a rank that is NaN; STATUS_INFEASIBLE
 * for a policy that cannot be asked; STATUS_LIMIT.
 */
MUST_CHECK enum status sim_live_run(const struct instance *in, const struct sim_live_options *options,
                                    struct sim_result *result, struct trace *trace, struct error *err);

#endif
