/* Options of planner_plan() (planner.h) and its strategies. */
#ifndef SPILLWAY_PLANNER_PLANNER_OPTIONS_H
#define SPILLWAY_PLANNER_PLANNER_OPTIONS_H

#include "planner/plan.h"

enum { PLANNER_AUTO = UINT32_MAX };

/* Where the optimizers of spilled shards run: where their gradients are made; on the host's
 * processor, which leaves two thirds of the state in host memory; or those of each job's first
 * shards on the device and the others on the host, so that both are as busy as they can be. */
enum planner_place { PLACE_DEVICE, PLACE_CPU, PLACE_SPLIT, PLACE_COUNT };
extern const char *const planner_place_names[PLACE_COUNT]; /* "device", "cpu", "split" */

/* Which states may live on storage: those that host memory has no room for, none, or all. */
enum planner_storage { STORAGE_AUTO, STORAGE_NONE, STORAGE_ALL, STORAGE_COUNT };

/* Host memory: for all jobs if they fit, else in turns; in turns (host_need.h). */
enum planner_host { HOST_AUTO, HOST_TURNS };

/* Boundaries of spilled shards: each as large as fits, or balanced (partition_job.h). */
enum planner_cuts { CUTS_GREEDY, CUTS_BALANCED, CUTS_COUNT };

/* What the shard with the loss, which passes forward and back in one, holds of its activations. */
enum planner_last { LAST_AUTO, LAST_HOLDS_ALL, LAST_HOLDS_INPUTS };

/* The work of searches for orders, which they add up here. */
struct planner_search {
    uint64_t iterations; /* schedules made */
    bool cut_short;      /* a limit of time ended one before its last iteration, without a proof */
};

static inline void planner_search_add(struct planner_search *to, const struct planner_search *more)
{
    to->iterations += more->iterations;
    to->cut_short |= more->cut_short;
}

struct instance;
struct order_claim;
struct swap_options;
struct swap_report;

struct planner_options {
    const char *policy;      /* NULL: "sharded-lrtf"; a file is loaded (policy_load.h): code is run */
    bool resident;           /* without a policy, and where nothing is asked for that is of spilled states: jobs may
                                stay on a device where that ends earlier (resident.h) */
    double contention;       /* copies of spilled states take at least so much longer, for others copy as well;
                                0: as they are */
    uint64_t seed;           /* of the policy */
    bool no_double_buffer;   /* one weight buffer for spilled state instead of two or more */
    uint32_t weight_buffers; /* weight buffers for spilled state per device: 1 to 8; 0: chosen */
    uint32_t activations;    /* enum plan_activations for all jobs, or PLANNER_AUTO */
    bool mixed;              /* with PLANNER_AUTO: some shards of a job may keep theirs when others do
                                not (partition_kept.h) */
    uint32_t optimizer;      /* enum planner_place, or PLANNER_AUTO */
    bool live;               /* for spilled states: the order is one of many (choices, plan.h), so nothing stays
                                on a device between units */
    bool no_persistence;     /* no state stays on a device beyond its unit; for spilled states */
    uint32_t storage;        /* enum planner_storage */
    uint32_t host;           /* enum planner_host */
    uint32_t iterations;     /* of the search of policy "optimal"; 0: 400, or what time_limit_s allows */
    double time_limit_s;     /* of the same; 0: none; of proving a timetable's bound again; 0: 5 s */
    struct planner_search *search; /* of policy "optimal"; NULL: not wanted */
    void (*on_progress)(void *context); /* called from time to time by the search of policy "optimal"; may be NULL */
    void *progress_context;
    struct instance *instance; /* zeroed: becomes the jobs, cut (instance_of_cut.h), even if what follows
                                  fails; release it. NULL: not wanted */
    const char *timetable;   /* the order is this file's (order_of_instance.h), and no policy's, whose cut
                                `policy` must then be: a spilled one; NULL: none */
    struct order_claim *claim; /* of the timetable, out; never NULL with it */
    uint32_t cuts;           /* enum planner_cuts */
    uint32_t shards;         /* cut each job into at least this many shards; 0: as few as fit */
    uint32_t last;           /* enum planner_last */
    uint64_t *missing_bytes; /* what a device lacks, at best, where jobs that are not parallel fit none; else left
                                alone. NULL: not wanted */
    const struct swap_options *swap;    /* layers are kept, swapped or recomputed, with states on the devices
                                           (swap.h): nothing else of these options is looked at then but
                                           seed, and policy, which must be NULL; NULL: they are not */
    struct swap_report *swap_report;    /* with `swap`: zeroed; what was chosen. Release it */
};

#endif
