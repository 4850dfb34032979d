/*
 * Live dispatch: an instance (planner/solve/instance/instance.h) on a machine, a policy being asked as slots of devices
 * become free.
 *
 * The rules of time:
 *
 *   A unit takes a slot of its device, and its memory, when the policy has chosen it, and gives both
 *   back when it is over. It is copied in, unless its shard is that of the unit which its device took
 *   before it, of the same job; then it computes; then, if it writes, it is copied out.
 *   Copies share the machine's links (sim/network/share.h); all those of a device may be under way at a time.
 *   A device computes one unit at a time, in the order in which copies in ended, and is slowed by what
 *   sim/network/interference.h says.
 *   A job is ready again when its unit is over: what it hands on is in host memory then.
 *   The policy is asked at the start and whenever a unit is over, until it waits, no device has a slot
 *   or no job is ready. It sees ticks; what is remaining and free are estimates of what is undisturbed.
 *
 * What happens at the same time: ends first (kind 0), then latencies that are over (kind 1); of one
 * kind, by number: three times the number of the unit in the order of choices, plus 0 for its copy in,
 * 1 for computing, 2 for its copy out. Every end takes effect, decisions included, before the next.
 *
 * Memory does not depend on how often units are repeated, unless spans are recorded.
 */
#ifndef SPILLWAY_SIM_LIVE_H
#define SPILLWAY_SIM_LIVE_H

#include "planner/policy/policy.h"
#include "planner/solve/instance/instance.h"
#include "sim/sim.h"

struct sim_live_options {
    const struct hardware *hardware; /* as many devices as the instance has */
    const struct policy *policy;
    void *state; /* for its functions, in place of what create() makes, which is not called then */
    uint64_t seed;
    const double *compute_s; /* (unit_count, class_count): what units compute for in truth; NULL: as the
                                instance says, which is also what policies see */
    bool timed_copies; /* on an idle machine copies last `in` and `out`; else what their bytes cost */
    bool scan;         /* a policy's rank() is asked for all jobs in every decision, none is kept */
    bool record_spans; /* see struct sim_options */
    void (*on_progress)(void *context, double done, double total); /* units; may be NULL */
    void *context;
};

/* The machine that an instance without another one is simulated on: every device has a duplex link of
 * its own. Zeroed struct in; release with hardware_release(), also after an error. */
MUST_CHECK enum status sim_live_machine(const struct instance *in, struct hardware *out,
                                        struct error *err);

/*
 * As sim_run() (sim/sim.h): `trace` (zeroed) receives streams (one of copies for each slot), places with
 * peaks (of the instance's memory, whatever its unit), jobs, and spans numbered as they began. Release
 * both, also after an error. result->operations are copies and computations.
 * Errors: STATUS_BAD_INPUT for another number of devices, copies without bytes, a choice that breaks
 * a rule, a rank that is no number; STATUS_INFEASIBLE for a policy that cannot be asked; STATUS_LIMIT,
 * STATUS_NO_MEMORY.
 */
MUST_CHECK enum status sim_live_run(const struct instance *in, const struct sim_live_options *options,
                                    struct sim_result *result, struct trace *trace, struct error *err);

#endif
