/*
 * Which device decides next, and between which jobs: the queues of a list scheduler whose policy ranks jobs.
 *
 * Devices and jobs are in groups: a job may run on every device of its group, and on no other. Streamed jobs are all
 * in one group, or in one for each node; a resident job is in the group of the one device that has its next shard.
 *
 * A job waits until it is ready, then it is ranked, then it is taken. A group can decide at
 *
 *     max(earliest time at which one of its devices is free, earliest time at which one of its jobs is ready)
 *
 * and the device that decides is the lowest one that is free by then.
 *
 * Cost: O(log devices + log jobs) for each call, amortized.
 *
 * Source: Fredman, Sedgewick, Sleator and Tarjan, "The pairing heap", Algorithmica 1, 1986.
 */
#ifndef SPILLWAY_PLANNER_AGENDA_H
#define SPILLWAY_PLANNER_AGENDA_H

#include "base/tournament.h"

#define AGENDA_NONE UINT32_MAX

struct agenda_job {
    double key; /* when it is ready; its rank, negative, when it is ranked */
    uint32_t child, sibling;
};

struct agenda_group {
    struct tournament free_s; /* by device of the group, in ascending order */
    uint32_t *devices;         /* of the group, ascending */
    uint32_t device_count;
    uint32_t waiting, ranked;  /* roots of heaps of jobs; AGENDA_NONE: empty */
    double woken_s;            /* until when jobs have been ranked */
    uint32_t next;             /* the device that decides; AGENDA_NONE: no job is there */
};

struct agenda {
    struct agenda_job *jobs;
    struct agenda_group *groups;
    uint32_t *group_of, *place_in_group; /* by device */
    struct tournament next_s; /* by device: when it decides; HUGE_VAL where another of its group does */
};

/*
 * All devices are free at 0, no job is there. `group_of`: (device_count) the group of each device, each below
 * group_count; borrowed. Lives as long as `arena`, and allocates nothing after this. Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status agenda_create(struct arena *arena, uint32_t job_count, uint32_t device_count,
                                     uint32_t *group_of, uint32_t group_count, struct agenda *out, struct error *err);

/* A job that is not there becomes ready at ready_s. */
void agenda_add(struct agenda *agenda, uint32_t job, uint32_t group, double ready_s);

void agenda_set_free(struct agenda *agenda, uint32_t device, double free_s);
double agenda_free(const struct agenda *agenda, uint32_t device);

/* The device that decides next, and when. AGENDA_NONE: no job is there. */
uint32_t agenda_next(const struct agenda *agenda, double *at);

/* A job of the group that is ready at `at` and has no rank yet; it must be given one. AGENDA_NONE: each has one. */
uint32_t agenda_wake(struct agenda *agenda, uint32_t group, double at);
void agenda_rank(struct agenda *agenda, uint32_t job, uint32_t group, double rank);

/* The job of highest rank leaves the agenda; the lowest one among equals. There is one. */
uint32_t agenda_pop(struct agenda *agenda, uint32_t group);

#endif
