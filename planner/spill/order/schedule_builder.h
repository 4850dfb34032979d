/*
 * Places units one after the other, with clocks for each device. Its state is a partial schedule.
 *
 * Each device has a clock per stream of the plan: copies in, computation, copies out (and one more where devices copy
 * directly), and the weight buffers that spilled state uses in turn; the host's processor has a clock shared by all. A
 * placed unit starts its copy in when stream and weight buffer are free (it is known ahead, so it can be fetched
 * ahead), computes when the device, the copy and the job are ready, and frees its weight buffer after its copy out. The
 * only decision is the order of placing.
 *
 * A state can be copied for a search to continue from it in several ways.
 */
#ifndef SPILLWAY_PLANNER_SPILL_ORDER_SCHEDULE_BUILDER_H
#define SPILLWAY_PLANNER_SPILL_ORDER_SCHEDULE_BUILDER_H

#include "planner/spill/order/host_ranges.h"
#include "planner/spill/order/cost_table.h"

struct schedule_builder_device {
    double h2d_free_s, compute_free_s, d2h_free_s, p2p_free_s;
    double weight_buffer_free_s[PARTITION_WEIGHT_BUFFERS_MAX]; /* for incoming data ... */
    double weight_buffer_left_s[PARTITION_WEIGHT_BUFFERS_MAX]; /* ... and for outgoing data with memory of their own */
    uint32_t turn;
    uint32_t edge_turn; /* units placed here: each uses the next edge */
    uint32_t last_job; /* job of the last unit placed here; PLAN_NONE: none so far */
    uint32_t ahead;    /* the job that was chosen for it ahead; PLAN_NONE: none */
};

struct schedule_builder_host {
    double cpu_free_s, host_free_s, read_free_s, write_free_s, file_free_s;
};

struct schedule_builder_view { /* the view of a job for decisions */
    double ready_s;       /* when its last unit ended */
    double remaining_s;   /* computation of its units that have not started */
    uint32_t last_device; /* PLAN_NONE before its first unit */
    uint32_t next_device; /* given by residence; PLAN_NONE: any */
    bool admitted;        /* resident: it has a seat; jobs that take turns in host memory: it has a range there, or
                           * could have one now */
    bool reserved;        /* chosen ahead by a device */
};

struct schedule_builder_job {
    double edge_ready_s; /* when its last output is in host memory */
    uint64_t minibatch;  /* completed ones ... */
    uint32_t position;   /* ... and the position of the next unit */
    uint32_t seat;
    uint32_t edge_turn;  /* edge of its last output on its device; PLAN_NONE: only the host has it */
    bool has_range;      /* it has a range of host memory from range_offset on, since its first unit was chosen */
    uint64_t range_offset;
};

/* Open structure: schedulers read it, only schedule_builder_put() changes it (except view_jobs[].reserved and
 * devices[].ahead). */
struct schedule_builder {
    const struct cost_table *times;
    uint32_t device_count;
    struct schedule_builder_device *devices;     /* (device_count) */
    struct schedule_builder_host *hosts;     /* (hardware_host_count()) */
    struct schedule_builder_view *view_jobs; /* (job count) */
    struct schedule_builder_job *jobs;       /* (job count) */
    double *state_ready_s;                   /* (shard count): when the state is in host memory, updated */
    uint32_t *seats_free;                    /* a stack */
    uint32_t seats_free_count, next_admitted;
    struct host_ranges ranges;     /* for jobs that take turns in host memory */
    const uint32_t *nodes;         /* per job: its host; borrowed; NULL: the first host */
    double makespan_s;             /* of the units placed so far */
    double earliest_s;             /* the earliest time that a unit waited for since the caller set this; older times
                                      have no effect any more (planner/spill/order/schedule_steady.h) */
    void *memory;                  /* memory of all arrays */
    size_t bytes;
};

/* Creates a builder without units. `one_device`: only device 0 is used. */
MUST_CHECK enum status schedule_builder_create(const struct cost_table *times, bool one_device,
                                               struct schedule_builder **out, struct error *err);
void schedule_builder_destroy(struct schedule_builder *builder); /* NULL is fine */

/* Copies a builder to another one with the same times and devices. */
void schedule_builder_copy(struct schedule_builder *to, const struct schedule_builder *from);

/* Gives the job its range of host memory, if jobs take turns and it has none. schedule_builder_put() does so for a
 * job's first unit. The job must be admitted. */
void schedule_builder_allocate_range(struct schedule_builder *builder, uint32_t job);

/* Sets the jobs' nodes, before any unit is placed. */
void schedule_builder_set_nodes(struct schedule_builder *builder, const uint32_t *nodes);

/* Places the next unit of a job that is admitted, has one left and may run there. Returns the start of its computation;
 * *unit: the placed unit, without its neighbour. */
double schedule_builder_put(struct schedule_builder *builder, uint32_t job, uint32_t device,
                            struct schedule_unit *unit);

/* Makes a joint (struct schedule): outputs on devices are in host memory too, and the turns of buffers begin anew. */
void schedule_builder_join(struct schedule_builder *builder);

/* How long the streams of the device would wait for the next unit of a job if it were placed there. */
struct schedule_builder_wait {
    double compute_s, h2d_s;
};
struct schedule_builder_wait schedule_builder_wait(const struct schedule_builder *builder, uint32_t job,
                                                   uint32_t device);

#endif
