/*
 * A plan in virtual time.
 *
 * The interpreter of plan.h's rules with durations from models/cost/cost.h: copies are flows that share
 * links (sim/network/share.h), and collectives are too where that is asked for; computations are slowed by what runs beside them (struct interference).
 * Virtual time is double seconds; equal times are ordered by (time, kind, operation number), so
 * equal input gives equal bytes out. Memory is in proportion to the window of operations between
 * the first unfinished and the last issued one; nothing is allocated while that does not grow.
 */
#ifndef SPILLWAY_SIM_SIM_H
#define SPILLWAY_SIM_SIM_H

#include "planner/policy/plan_dispatch.h"
#include "sim/caching.h"
#include "sim/network/collective_flow.h"
#include "sim/network/flow.h"
#include "traces/trace.h"

struct sim_options {
    const struct hardware *hardware; /* NULL: the plan's own; else one with as many devices */
    const struct plan_dispatch_options *live; /* of a plan with choices: the policy is asked as units end and
                                                 devices have slots; NULL: the plan's order */
    enum sim_collectives_by collectives;
    const double *slow;  /* per device: its computations take so many times as long; NULL: 1 each */
    bool demand_first;   /* copies that a device waits for go before others, which share what these leave: on demand
                            is what comes from another device or from storage, and what comes from the host while
                            the device computes nothing as the copy begins; not what goes out, nor what comes in
                            beside a computation */
    double noise;        /* each computation takes 1 - noise to 1 + noise times as long by chance, equally likely; at
                            least 0, below 1; more than 0: every device is simulated */
    uint64_t seed;       /* of that chance, which is drawn by operation number */
    bool record_spans;   /* fill trace->spans and levels; off for sweeps */
    bool caching;        /* buffers on devices come from a caching allocator (sim/caching.h): fill result->reserved */
    bool no_fold;        /* simulate every device, also those that do what another does (sim/symmetry/symmetry.h); so it
                            is with spans, and with caching, for what begins at one time does so in an order of its
                            own on each device, which allocators feel */
    bool no_skip;        /* simulate every repetition, also those that are proven to be as the ones before
                            (sim/steady.h); so it is with spans, caching and noise, and with live dispatch */
    void (*on_progress)(void *context, double done, double total); /* operations; may be NULL */
    void *context;
};

/* What limits the run. */
struct sim_stream_use {
    double busy_s;       /* an operation runs, waiting for a link included */
    uint64_t operations;
};

struct sim_result {
    double makespan_s;
    uint64_t operations;
    uint64_t skipped;             /* of these not simulated, since they repeat what was (sim/steady.h) */
    uint64_t events;              /* of those simulated */
    uint64_t window_peak;         /* most operations in memory at once */
    uint32_t collective_paths;    /* of collectives that are flows; 0: all take their closed form */
    uint32_t represented;         /* devices that others stand for (sim/symmetry/symmetry.h): in `operations` and spans
                                     they are not, all else of them, and of their links, is the others' */
    uint64_t memory_bytes;        /* allocated by the simulation; trace and plan walk not included */
    double wall_s;                /* real seconds in the event loop */
    struct sim_stream_use *streams; /* plan_stream_count() entries */
    struct sim_link_use *links;     /* hardware link_count entries; then one for storage, if any */
    struct sim_reserved *reserved;  /* by device; NULL unless asked for */
    const char *binds;            /* "compute of device 0", "link 'pcie0'", "H2D copies of device 1",
                                     "the chain of job-1" */
    struct arena arena;
};

/*
 * Run `plan` (already checked). `trace` (zeroed) receives streams, places with peaks, jobs, and
 * with record_spans the spans and memory levels. Memory in use is the bytes of live buffers; a
 * place's peak_bytes is the most of it, without the gaps between slots. Release both, also after an
 * error.
 * Errors: STATUS_BAD_INPUT when options->hardware does not match, STATUS_LIMIT, STATUS_NO_MEMORY; of live
 * dispatch those of plan_dispatch.h.
 */
MUST_CHECK enum status sim_run(const struct plan *plan, const struct sim_options *options,
                               struct sim_result *result, struct trace *trace, struct error *err);
void sim_result_release(struct sim_result *result);

/* The simulated makespan of a plan on its own machine, without spans; the clock of those who choose plans by it
 * (planner/saturn/saturn.h). `context` is not used. Errors: those of sim_run(). */
MUST_CHECK enum status sim_seconds(void *context, const struct plan *plan, double *seconds, struct error *err);

#endif
