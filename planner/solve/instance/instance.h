/*
 * A shard-scheduling instance: Hydra's planning problem in whole numbers.
 *
 * Jobs are chains of *tasks*. One task of a job runs at a time, on any device whose memory holds it. A job's chain is
 * one minibatch's list of *units*, repeated `repeat` times: task t is unit t mod unit_count. A unit computes on its
 * job's shard `shard`, whose parameters are copied in before and, when the unit writes them, out after it. Time is in
 * whole ticks, so that "equal to the bound" means equal.
 *
 * The rules of time ("model B"; s: start, p: compute on the device, a: copy in, b: copy out, m: memory, C: end of a
 * job). When task k directly follows task j on a device, s_k >= s_j + d_jk:
 *
 *     d_jk = p_j                  same job and shard: the parameters are on the device (affinity)
 *          = max(p_j, a_k)        m_j + m_k <= device memory, and the device has two slots or more: k is
 *                                 copied in while j computes (double buffer)
 *          = p_j + b_j + a_k      otherwise: j must leave before k can come
 *
 * The first task of a device has s_k >= a_k. Along a chain s_{k+1} >= s_k + p_k. When k writes the shard that k+1 reads
 * and k+1 does not directly follow on its device, the chain adds b_k + a_{k+1}: the new parameters go through the host.
 * C >= s_k + p_k + b_k for every task of the job. Parameters may be copied in before the chain's previous task has
 * ended; only activations depend on it.
 *
 * Where devices share a host bridge of `bridge_bytes_per_tick`, no schedule ends before its bytes divided by that rate.
 * A copy in counts unless the task follows one of its job and shard on the device; a copy out counts for tasks that
 * write. The bridge bounds the makespan only.
 *
 * A device holds at most `slots` tasks at a time, whatever its memory. Here a third slot changes nothing; in live
 * dispatch (sim/live/live.h) each slot lets one more copy run ahead.
 *
 * With `streams` other rules hold, those of plans (dispatch_streams.h): copies in, computation and copies out each have
 * a stream of their own per device, a task's parameters are in one of the device's `slots` buffers, which tasks use in
 * turn, boundaries between tasks are copied too, and the host's one processor updates what was written.
 *
 * Not modelled: other contention on the bridge; moving activations between devices; more than one copy ahead; a shard
 * read again two or more tasks after its write (the tasks between give the copies time in all but contrived chains).
 */
#ifndef SPILLWAY_PLANNER_SOLVE_INSTANCE_INSTANCE_H
#define SPILLWAY_PLANNER_SOLVE_INSTANCE_INSTANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

/* An instance's durations add up to less than INSTANCE_HORIZON_MAX, so neither a sum of two times nor a time multiplied
 * by the number of devices overflows an int64_t. */
enum {
    INSTANCE_CLASSES_MAX = 16,
    INSTANCE_DEVICES_MAX = 4096,
    INSTANCE_JOBS_MAX = 65536,
    INSTANCE_UNITS_MAX = 1 << 20,
    INSTANCE_JOB_UNITS_MAX = 4096,
    INSTANCE_TASKS_MAX = 1 << 24,
    INSTANCE_WEIGHT_MAX = 1000000,
    INSTANCE_SLOTS_MAX = 64,
    INSTANCE_STREAM_SLOTS_MAX = 8, /* with streams */
    INSTANCE_STREAM_EDGES_MAX = 16,
    INSTANCE_SLOTS = 2 /* default */
};
#define INSTANCE_TICK_S 1e-6 /* default */
#define INSTANCE_BYTES_MAX (UINT64_C(1) << 38)
#define INSTANCE_TICKS_MAX INT64_C(1000000000000)
#define INSTANCE_HORIZON_MAX (INT64_C(1) << 48)

enum instance_objective {
    OBJECTIVE_MAKESPAN,  /* end of the last job */
    OBJECTIVE_MEAN,      /* sum of the ends of the jobs; the mean is this sum divided by the number of jobs */
    OBJECTIVE_WEIGHTED,  /* sum over jobs of weight times end */
    OBJECTIVE_TARDINESS, /* latest end after a deadline; 0: every deadline is met */
    OBJECTIVE_COUNT
};
extern const char *const instance_objective_names[OBJECTIVE_COUNT];

struct instance_class { /* equal devices */
    const char *name;
    uint32_t device_count; /* at least 1 */
    uint64_t memory;       /* of each device, in the same unit as the units' memory */
    uint32_t slots;        /* most tasks on a device at a time; 0 becomes INSTANCE_SLOTS */
    uint32_t edges;        /* with streams: places for boundaries on each device, used in turn; 0: enough */
};

struct instance_unit {
    int64_t in, out; /* ticks; out is 0 for a unit that writes nothing */
    uint64_t memory;
    uint64_t in_bytes, out_bytes; /* counted on the bridge only */
    uint32_t job, shard;
    bool writes;
    /* With streams only. Ticks: copies of the boundary in and out, the first left out where the job's previous task
     * was the device's, too; the host's processor before the task, after its boundary is out, and, for the state that
     * it writes, after its copy out. */
    int64_t edge_in, edge_out, host_before, host_after, update;
    int64_t table; /* copied in after `in`, to the only place of its kind on a device */
    bool after_host; /* its table, or all of it without one, is copied in after the host's last `host_after` */
    bool in_apart, out_apart; /* data in, or out, have a place of their own next to the buffer */
};

struct instance_job {
    const char *name;
    uint32_t first_unit, unit_count; /* in instance.units; at least 1 */
    uint32_t repeat;                 /* at least 1 */
    uint32_t weight;                 /* at least 1 */
    int64_t deadline;                /* INSTANCE_HORIZON_MAX: none */
    int64_t load, store;             /* with streams: ticks of copies before its first task and after its last */
};

/* Open structure; zeroed it is empty. Devices are numbered class by class. */
struct instance {
    const char *name;
    enum instance_objective objective;
    struct instance_class *classes;
    struct instance_job *jobs;
    struct instance_unit *units;
    int64_t *compute;       /* (unit_count, class_count) ticks, at least 1 */
    uint32_t *device_class; /* (device_count) */
    uint32_t class_count, device_count, job_count, unit_count, task_count;
    uint64_t bridge_bytes_per_tick; /* 0: no shared bridge */
    bool streams;                   /* the rules of dispatch_streams.h hold */
    double tick_s;                  /* seconds of a tick; 0 becomes INSTANCE_TICK_S */
    int64_t horizon;                /* no schedule without needless waiting ends later */
    struct arena arena;
};

/*
 * Allocates an instance, zeroed. The caller fills it in and calls instance_finish(). Errors: STATUS_LIMIT. Release it
 * with instance_release(), also after an error.
 */
MUST_CHECK enum status instance_init(struct instance *in, uint32_t class_count, uint32_t job_count,
                                     uint32_t unit_count, struct error *err);

/*
 * Derives counts, device classes and the horizon, and checks. Errors: STATUS_INFEASIBLE for a unit that no device
 * holds; STATUS_BAD_INPUT for an empty chain, a duration or slots out of range; STATUS_LIMIT for too many tasks or too
 * large a sum of durations.
 */
MUST_CHECK enum status instance_finish(struct instance *in, struct error *err);
void instance_release(struct instance *in);

static inline uint32_t instance_length(const struct instance_job *job)
{
    return job->unit_count * job->repeat;
}

/* Returns the unit of task `position` of a job. */
static inline uint32_t instance_unit_at(const struct instance_job *job, uint32_t position)
{
    return job->first_unit + position % job->unit_count;
}

static inline int64_t instance_compute(const struct instance *in, uint32_t unit, uint32_t class)
{
    return in->compute[(size_t)unit * in->class_count + class];
}

static inline bool instance_fits(const struct instance *in, uint32_t unit, uint32_t class)
{
    return in->units[unit].memory <= in->classes[class].memory;
}

static inline bool instance_resident(const struct instance_unit *j, const struct instance_unit *k)
{
    return j->job == k->job && j->shard == k->shard;
}

/* Returns d_jk on a device of this class, in ticks, between the starts of neighbours of units j and k. */
static inline int64_t instance_setup(const struct instance *in, uint32_t j, uint32_t k,
                                     uint32_t class)
{
    const struct instance_unit *a = &in->units[j], *b = &in->units[k];
    int64_t p = instance_compute(in, j, class);
    if (instance_resident(a, b)) return p;
    if (in->classes[class].slots > 1 && a->memory + b->memory <= in->classes[class].memory)
        return p > b->in ? p : b->in;
    return p + a->out + b->in;
}

/* Returns the ticks that the chain adds between k and the next unit when they are not neighbours on a device. */
static inline int64_t instance_through_host(const struct instance *in, uint32_t k, uint32_t next)
{
    const struct instance_unit *a = &in->units[k], *b = &in->units[next];
    return a->writes && instance_resident(a, b) ? a->out + b->in : 0;
}

/* ends[i]: end of job i, copies out included, in ticks. bytes: moved across the bridge. */
int64_t instance_value(const struct instance *in, const int64_t *ends, uint64_t bytes);

/* Returns the least compute of a unit over the classes that hold it, in ticks. */
int64_t instance_compute_min(const struct instance *in, uint32_t unit);

#endif
