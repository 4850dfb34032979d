/*
 * The interpreter follows plan.h's rules, with durations from models/cost/cost.h, in virtual time. Copies and, if
 * options say so, collectives are flows that share links (sim/network/share.h). Concurrent operations slow computations
 * (struct hardware_interference). Virtual time is double seconds; equal times are ordered by (time, kind, operation
 * number): equal inputs give equal bytes. Memory is proportional to the window between the first unfinished and the
 * last issued operation, and allocated only when it grows.
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
    const struct hardware *hardware; /* NULL: the plan's; else one with the same number of devices */
    const struct plan_dispatch_options *live; /* for a plan with choices: the policy asked as units end and devices have
                                               * slots; NULL: the plan's order */
    enum sim_collectives_by collectives;
    const double *slow;  /* factors of each device's computation times; NULL: all 1 */
    bool demand_first;   /* copies that a device waits for precede others, which share the remaining bandwidth: copies
                          * from another device or storage, or from the host if the device computes nothing when they
                          * begin */
    double noise;        /* each computation takes a uniform factor from 1 - noise to 1 + noise; in [0, 1); above 0,
                          * every device is simulated */
    uint64_t seed;       /* of the noise, which is drawn by operation number */
    bool record_spans;   /* fill trace->spans and trace->levels; off in sweeps */
    struct trace_writer *writer; /* gets spans and levels as they come; the caller commits it; may be NULL */
    void (*on_span)(void *spans, const struct trace_span *span); /* gets spans in the order of their numbers; may be
                                                                    NULL */
    void *spans;         /* context of on_span */
    bool caching;        /* device buffers come from a caching allocator (sim/caching.h); fills result->reserved */
    bool no_fold;        /* simulate every device, also equal ones (sim/symmetry/symmetry.h). Implied by spans and
                          * caching, because operations that begin at the same time have different orders on each
                          * device, which changes an allocator's state */
    bool no_skip;        /* simulate repetitions proven equal, too (sim/steady.h). Implied by spans, caching, noise and
                          * live dispatch */
    void (*on_progress)(void *context, double done, double total); /* operations; may be NULL */
    void *context;
};

/* The use of a stream. */
struct sim_stream_use {
    double busy_s;       /* with a running operation, waiting for a link included */
    uint64_t operations;
};

struct sim_result {
    double makespan_s;
    uint64_t operations;
    uint64_t skipped;             /* operations skipped as repetitions (sim/steady.h) */
    uint64_t events;              /* of the simulated operations */
    uint64_t window_peak;         /* largest number of operations in memory */
    uint32_t collective_paths;    /* of collectives that are flows; 0: all use closed forms */
    uint32_t represented;         /* devices that others stand for (sim/symmetry/symmetry.h). `operations` and spans
                                   * lack them; all other results, and their links, are copied */
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
 * record_spans also spans and memory levels. Memory in use is the bytes of live buffers, without gaps between slots; a
 * place's peak_bytes is its maximum. The caller releases both, also after an error. Errors: STATUS_BAD_INPUT when
 * options->hardware does not match, STATUS_LIMIT, STATUS_NO_MEMORY; with live dispatch also as in plan_dispatch.h.
 */
MUST_CHECK enum status sim_run(const struct plan *plan, const struct sim_options *options,
                               struct sim_result *result, struct trace *trace, struct error *err);
void sim_result_release(struct sim_result *result);

/* Computes a plan's makespan on its own machine, as planners' clock (planner/saturn/saturn.h). `context` is not used.
 * Errors: as sim_run(). */
MUST_CHECK enum status sim_seconds(void *context, const struct plan *plan, double *seconds, struct error *err);

#endif
