/*
 * A list scheduler's queues for policies that rank jobs: which device decides next, and between which jobs.
 *
 * A job may run on the devices of its group only. Spilled jobs are in one group, or one per node; a resident job is in
 * the group of the device with its next shard.
 *
 * A job waits until it is ready, then it is ranked, then it is popped. A group can decide at
 *
 *     max(earliest time at which one of its devices is free, earliest time at which one of its jobs is ready)
 *
 * and the lowest device that is free by then decides.
 *
 * Cost: O(log devices + log jobs) per call, amortized.
 *
 * Source: Fredman, Sedgewick, Sleator and Tarjan, "The pairing heap", Algorithmica 1, 1986.
 */
#ifndef SPILLWAY_PLANNER_SPILL_ORDER_AGENDA_H
#define SPILLWAY_PLANNER_SPILL_ORDER_AGENDA_H

#include "base/tournament.h"

#define AGENDA_NONE UINT32_MAX

struct agenda_job {
    double key; /* waiting: when it is ready; ranked: its rank, negative */
    uint32_t child, sibling;
};

struct agenda_group {
    struct tournament free_s; /* by device of the group, in ascending order */
    uint32_t *devices;         /* of the group, ascending */
    uint32_t device_count;
    uint32_t waiting, ranked;  /* roots of heaps of jobs; AGENDA_NONE: empty */
    double woken_s;            /* jobs ready until then have been ranked */
    uint32_t next;             /* the device that decides; AGENDA_NONE: no job */
};

struct agenda {
    struct agenda_job *jobs;
    struct agenda_group *groups;
    uint32_t group_count;
    uint32_t *group_of, *place_in_group; /* by device */
    struct tournament next_s; /* by device: when it decides; HUGE_VAL where another device of its group does */
};

/*
 * All devices are free at 0, without jobs. `group_of`: (device_count) each device's group, below group_count; borrowed.
 * It lives as long as `arena`, and allocates nothing after this.
 */
MUST_CHECK enum status agenda_create(struct arena *arena, uint32_t job_count, uint32_t device_count,
                                     uint32_t *group_of, uint32_t group_count, struct agenda *out, struct error *err);

/* Removes all jobs. */
void agenda_clear(struct agenda *agenda);

/* Adds a job, which becomes ready at ready_s. */
void agenda_add(struct agenda *agenda, uint32_t job, uint32_t group, double ready_s);

void agenda_set_free(struct agenda *agenda, uint32_t device, double free_s);
double agenda_free(const struct agenda *agenda, uint32_t device);

/* Returns the device that decides next, and when. AGENDA_NONE: no job. */
uint32_t agenda_next(const struct agenda *agenda, double *at);

/* Returns a job of the group that is ready at `at` and needs a rank, or AGENDA_NONE. */
uint32_t agenda_wake(struct agenda *agenda, uint32_t group, double at);
void agenda_rank(struct agenda *agenda, uint32_t job, uint32_t group, double rank);

/* Removes and returns the group's job of highest rank; the lowest one of equal ones. The group must have one. */
uint32_t agenda_pop(struct agenda *agenda, uint32_t group);

/* Returns the highest rank of the group; -HUGE_VAL: no job of it has a rank. */
double agenda_highest(const struct agenda *agenda, uint32_t group);

#endif
