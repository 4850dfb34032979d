/* Options of planner_plan() (planner.h) and its strategies. */
#ifndef SPILLWAY_PLANNER_PLANNER_OPTIONS_H
#define SPILLWAY_PLANNER_PLANNER_OPTIONS_H

#include "planner/plan.h"

enum { PLANNER_AUTO = UINT32_MAX };

/* The place of spilled shards' optimizers: the device of their gradients; the host's processor, so that two thirds
 * of the state stay in host memory; or the device for each job's first shards and the host for the others, equally
 * busy. */
enum planner_place { PLANNER_PLACE_DEVICE, PLANNER_PLACE_CPU, PLANNER_PLACE_SPLIT, PLANNER_PLACE_COUNT };
extern const char *const planner_place_names[PLANNER_PLACE_COUNT]; /* "device", "cpu", "split" */

/* States that may live on storage: those without room in host memory, none, or all. */
enum planner_storage { PLANNER_STORAGE_AUTO, PLANNER_STORAGE_NONE, PLANNER_STORAGE_ALL };

/* Jobs in host memory: all at once if they fit, else in turns; always in turns (host_need.h). */
enum planner_host { PLANNER_HOST_AUTO, PLANNER_HOST_TURNS };

/* Boundaries of spilled shards: the largest shards that fit, or balanced (partition_job.h). */
enum planner_cuts { PLANNER_CUTS_GREEDY, PLANNER_CUTS_BALANCED };

/* Activations that the shard with the loss, which passes forward and back in one, holds. */
enum planner_last { PLANNER_LAST_AUTO, PLANNER_LAST_HOLDS_ALL, PLANNER_LAST_HOLDS_INPUTS };

/* Statistics of searches for orders, summed over all searches. */
struct planner_search {
    uint64_t iterations; /* schedules made */
    bool cut_short;      /* a time limit ended a search before its last iteration, without a proof */
};

static inline void planner_search_add(struct planner_search *to, const struct planner_search *more)
{
    to->iterations += more->iterations;
    to->cut_short |= more->cut_short;
}

/* The report of policy "milp" (planner/spill/order/order_milp.h). */
struct planner_milp {
    uint32_t tasks;      /* of the cut as an instance; 0: the policy was not asked */
    bool whole;          /* one program of all tasks, else windows of the order */
    bool proven;         /* GLPK reports that no order ends earlier, within its tolerances */
    bool cut_short;      /* the time limit ended it */
    uint32_t programs;
    uint64_t nodes;
    double gained_s;     /* by the planner's clock, against the search's order */
    double bound_s;      /* no order ends earlier by that clock, by GLPK; 0: no bound */
    char failure[160];   /* why GLPK was not asked, or failed; empty: it was */
};

struct instance;
struct order_claim;
struct swap_options;
struct swap_report;

struct planner_options {
    const char *policy;      /* NULL: "sharded-lrtf"; a file is loaded (policy_load.h): code is run */
    bool resident;           /* without a policy and without options for spilled states: jobs may stay on a device where
                                that ends earlier (resident.h) */
    double contention;       /* least factor by which copies of spilled states take longer because others copy too; 0:
                                none */
    uint64_t seed;           /* of the policy */
    bool no_double_buffer;   /* one weight buffer for spilled state, not two or more */
    uint32_t weight_buffers; /* weight buffers for spilled state per device: 1 to 8; 0: chosen */
    uint32_t activations;    /* enum plan_activations for all jobs, or PLANNER_AUTO */
    bool mixed;              /* with PLANNER_AUTO: some shards of a job may keep their activations when others do not
                                (partition_kept.h) */
    uint32_t optimizer;      /* enum planner_place, or PLANNER_AUTO */
    bool live;               /* the order is one of many: any, of parallel jobs (any_order, plan.h); for spilled states
                                one with choices, so no state stays on a device between units */
    bool no_persistence;     /* no state stays on a device beyond its unit; for spilled states */
    uint32_t storage;        /* enum planner_storage */
    uint32_t host;           /* enum planner_host */
    uint32_t iterations;     /* iterations of the search of policy "optimal"; 0: 400, or as time_limit_s allows.
                                Programs of policy "milp"; 0: 40, likewise */
    double time_limit_s;     /* time limit of the same search; 0: none; for proving a timetable's bound again; 0: 5 s */
    struct planner_search *search; /* statistics of policy "optimal"; NULL: not wanted */
    struct planner_milp *milp;     /* report of policy "milp"; NULL: not wanted */
    void (*on_progress)(void *context); /* called from time to time by the search of policy "optimal"; may be NULL */
    void *progress_context;
    struct instance *instance; /* zeroed: becomes the jobs, cut (instance_of_cut.h), even when later steps fail; release
                                  it. NULL: not wanted */
    const char *timetable;   /* this file has the order (order_of_instance.h), and `policy`, a spilled one, the cut;
                                NULL: none */
    struct order_claim *claim; /* claim of the timetable, out; never NULL with it */
    uint32_t cuts;           /* enum planner_cuts */
    uint32_t shards;         /* cut each job into at least this many shards; 0: as few as fit */
    uint32_t last;           /* enum planner_last */
    uint64_t *missing_bytes; /* memory that a device lacks, at best, where jobs that are not parallel do not fit; else
                                untouched. NULL: not wanted */
    const struct swap_options *swap;    /* layers are kept, swapped or recomputed, with states on the devices
                                         * (swap.h); of other options only seed counts, and policy must be NULL;
                                         * NULL: no swapping */
    struct swap_report *swap_report;    /* with `swap`: zeroed; the choices. Release it */
};

#endif
