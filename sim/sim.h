/*
 * A plan in virtual time.
 *
 * This interpreter follows plan.h's rules, with durations from models/cost/cost.h. Copies are flows that share links
 * (sim/network/share.h); so are collectives, if options say so. Computations are slowed by concurrent operations
 * (struct hardware_interference). Virtual time is double seconds; equal times are ordered by (time, kind, operation
 * number), so equal inputs give equal bytes. Memory is proportional to the window of operations between the first
 * unfinished and the last issued one; memory is allocated only when it grows.
 */
#ifndef SPILLWAY_SIM_SIM_H
#define SPILLWAY_SIM_SIM_H

#include "planner/policy/plan_dispatch.h"
#include "sim/caching.h"
#include "sim/network/collective_flow.h"
#include "sim/network/flow.h"
#include "traces/trace.h"
#include "traces/trace_writer.h"

struct sim_options {
    const struct hardware *hardware; /* NULL: the plan's own; else one with the same number of devices */
    const struct plan_dispatch_options *live; /* for a plan with choices: the policy is asked as units end and devices
                                                 have slots; NULL: the plan's order */
    enum sim_collectives_by collectives;
    const double *slow;  /* factors of the computation times of each device; NULL: all 1 */
    bool demand_first;   /* copies that a device waits for precede other copies, which share the remaining bandwidth. A
                            copy is on demand if it comes from another device or from storage, or if it comes from the
                            host and the device computes nothing when it begins. Copies out, and copies in during a
                            computation, are not on demand */
    double noise;        /* each computation takes a random factor from 1 - noise to 1 + noise, uniform; in [0, 1);
                            above 0, every device is simulated */
    uint64_t seed;       /* of the noise, which is drawn by operation number */
    bool record_spans;   /* fill trace->spans and trace->levels; off in sweeps */
    struct trace_writer *writer; /* gets spans and levels as they come, in little memory; the caller commits it; may
                                    be NULL */
    bool caching;        /* device buffers come from a caching allocator (sim/caching.h); fills result->reserved */
    bool no_fold;        /* simulate every device, also those equal to another one (sim/symmetry/symmetry.h). Implied by
                            spans and by caching, because operations that begin at the same time have different orders
                            on each device, which changes an allocator's state */
    bool no_skip;        /* simulate every repetition, also those proven equal to earlier ones (sim/steady.h). Implied
                            by spans, caching, noise and live dispatch */
    void (*on_progress)(void *context, double done, double total); /* operations; may be NULL */
    void *context;
};

/* The use of a stream. */
struct sim_stream_use {
    double busy_s;       /* time with a running operation, waiting for a link included */
    uint64_t operations;
};

struct sim_result {
    double makespan_s;
    uint64_t operations;
    uint64_t skipped;             /* operations that were not simulated, because they repeat earlier ones
                                     (sim/steady.h) */
    uint64_t events;              /* of the simulated operations */
    uint64_t window_peak;         /* largest number of operations in memory */
    uint32_t collective_paths;    /* paths of collectives that are flows; 0: all use closed forms */
    uint32_t represented;         /* devices that another device stands for (sim/symmetry/symmetry.h). They are missing
                                     in `operations` and spans; all other results, and their links, are copied from the
                                     other device */
    uint64_t memory_bytes;        /* allocated by the simulation, without trace and plan walk */
    double wall_s;                /* real seconds in the event loop */
    struct sim_stream_use *streams; /* plan_stream_count() entries */
    struct sim_link_use *links;     /* hardware link_count entries; then one for storage, if any */
    struct sim_reserved *reserved;  /* by device; NULL without `caching` */
    const char *binds;            /* bottleneck: "compute of device 0", "link 'pcie0'", "H2D copies of device 1", "the
                                     chain of job-1" */
    struct arena arena;
};

/*
 * Simulates `plan` (already checked). `trace`, zeroed before, receives streams, places with peaks and jobs; with
 * record_spans also spans and memory levels. Memory in use is the bytes of live buffers; a place's peak_bytes is its
 * maximum, without gaps between slots. The caller releases both, also after an error. Errors: STATUS_BAD_INPUT when
 * options->hardware does not match, STATUS_LIMIT, STATUS_NO_MEMORY; with live dispatch also the errors of
 * plan_dispatch.h.
 */
MUST_CHECK enum status sim_run(const struct plan *plan, const struct sim_options *options,
                               struct sim_result *result, struct trace *trace, struct error *err);
void sim_result_release(struct sim_result *result);

/* Computes the simulated makespan of a plan on its own machine, without spans. Planners use it as their clock
 * (planner/saturn/saturn.h). `context` is not used. Errors: as sim_run(). */
MUST_CHECK enum status sim_seconds(void *context, const struct plan *plan, double *seconds, struct error *err);

#endif
