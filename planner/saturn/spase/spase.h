/*
 * A SPASE instance (select a parallelism, allocate devices, schedule), as Saturn states it: jobs that train one model
 * each, in one of several *configurations* with known run times.
 *
 * A configuration is a parallelism on a number of devices. Its devices form a *gang*: they start and end together, all
 * of one class. A gang lies within one node, unless its configuration may span nodes. A node has devices of one class;
 * a configuration has one run time per class. Time is in whole ticks, so that "equal to the bound" means equal. The
 * objective is the makespan.
 *
 * For searching, configurations become *modes*: one per class with room. Modes that another mode of the job dominates
 * (same class, no more devices, no more time, spanning if it spans) are left out. Some optimal schedule uses only
 * modes.
 *
 * Not modelled: memory (the file's writer leaves out configurations that do not fit), and that concurrent jobs slow
 * each other down.
 *
 * Source: Nagrecha and Kumar, "Saturn: an optimized data system for multi-large-model deep learning workloads", PVLDB
 * 17(4), 2023.
 */
#ifndef SPILLWAY_PLANNER_SATURN_SPASE_SPASE_H
#define SPILLWAY_PLANNER_SATURN_SPASE_SPASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

/* The longest modes' run times add up to at most SPASE_HORIZON_MAX: devices by horizon, and products of two times, then
 * fit the types. */
enum {
    SPASE_CLASSES_MAX = 16,
    SPASE_NODES_MAX = 4096,
    SPASE_DEVICES_MAX = 4096,
    SPASE_JOBS_MAX = 4096,
    SPASE_CONFIGS_MAX = 1 << 18
};
#define SPASE_TICKS_MAX INT64_C(1000000000000)
#define SPASE_HORIZON_MAX (INT64_C(1) << 48)
#define SPASE_NOWHERE INT64_C(0) /* run time of a configuration on a class where it does not run */

struct spase_node {
    const char *name;
    uint32_t class;        /* index into class_names */
    uint32_t device_count; /* at least 1 */
    uint32_t first_device; /* devices are numbered node by node; set by spase_finish() */
};

struct spase_config {
    const char *parallelism;
    uint32_t devices; /* at least 1 */
    bool spans;       /* its gang may lie on several nodes */
};

struct spase_job {
    const char *name;
    uint32_t first_config, config_count; /* in spase.configs; at least 1 */
    uint32_t first_mode, mode_count;     /* in spase.modes; set by spase_finish(), at least 1 */
};

struct spase_mode {
    uint32_t config;  /* index into spase.configs */
    uint32_t class;
    uint32_t devices;
    bool spans; /* and there are several nodes to span */
    int64_t ticks;
};

/* Open structure; zeroed it is empty. */
struct spase {
    const char *name;
    const char **class_names;     /* (class_count) */
    struct spase_node *nodes;     /* (node_count) */
    struct spase_job *jobs;       /* (job_count) */
    struct spase_config *configs; /* (config_count), job by job */
    int64_t *ticks;               /* (config_count, class_count), or SPASE_NOWHERE */
    struct spase_mode *modes;     /* (mode_count), job by job, by class, devices, time */
    uint32_t *class_devices;      /* (class_count): number of devices of each class */
    uint32_t *class_widest;       /* (class_count): devices of the largest node of each class */
    uint32_t class_count, node_count, job_count, config_count, mode_count, device_count;
    int64_t horizon; /* sum of the longest modes: no sensible schedule ends later */
    struct arena arena;
};

/*
 * Allocates an instance, zeroed; the caller fills it in and calls spase_finish(). Errors: STATUS_BAD_INPUT,
 * STATUS_LIMIT. Release it with spase_release(), also after an error.
 */
MUST_CHECK enum status spase_init(struct spase *in, uint32_t class_count, uint32_t node_count,
                                  uint32_t job_count, uint32_t config_count, struct error *err);

/*
 * Numbers the devices, makes the modes, and checks. Errors: STATUS_INFEASIBLE for a job that fits nowhere;
 * STATUS_BAD_INPUT for a job without configurations, equal names of jobs or nodes, or a run time out of range;
 * STATUS_LIMIT.
 */
MUST_CHECK enum status spase_finish(struct spase *in, struct error *err);
void spase_release(struct spase *in);

/* Returns the node of a device. */
uint32_t spase_node_of(const struct spase *in, uint32_t device);

static inline int64_t spase_ticks(const struct spase *in, uint32_t config, uint32_t class)
{
    return in->ticks[(size_t)config * in->class_count + class];
}

/* Returns devices times ticks. */
static inline int64_t spase_area(const struct spase_mode *mode)
{
    return mode->devices * mode->ticks;
}

#endif
