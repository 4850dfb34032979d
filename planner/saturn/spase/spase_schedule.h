/*
 * Schedules of SPASE instances: what runs where and when, how one is made from an order, and the
 * judge of both.
 *
 * An order lists jobs with their modes; each gang starts as early as it can behind those in front of
 * it in the list: no gang starts in a gap that was left. Where no gang spans, some optimal schedule
 * comes from the order of its own starts with its own nodes, so nothing is lost. Of the devices that
 * are free by then a gang takes those that became free last.
 */
#ifndef SPILLWAY_PLANNER_SPASE_SCHEDULE_H
#define SPILLWAY_PLANNER_SPASE_SCHEDULE_H

#include "planner/saturn/spase/spase.h"

enum { SPASE_ANY_NODE = UINT32_MAX };

struct spase_step {
    uint32_t job;
    uint32_t mode; /* index into spase.modes */
    uint32_t node; /* SPASE_ANY_NODE: where it can start first. Ignored when the mode spans */
};

/* --- lists ----------------------------------------------------------------------------------- */

struct spase_slot {
    int64_t free; /* from when on */
    uint32_t device;
};

/* The devices of each node, those that become free first in front. */
struct spase_list {
    const struct spase *in;
    struct spase_slot *slots; /* (device_count), node by node as devices are numbered */
    uint32_t *taken;          /* (node_count) scratch of gangs that span */
};

MUST_CHECK enum status spase_list_init(struct spase_list *list, const struct spase *in, struct error *err);
void spase_list_release(struct spase_list *list);

/* All devices free from the start; or from free_at[device] on, (device_count). */
void spase_list_clear(struct spase_list *list, const int64_t *free_at);

/* The earliest start of a mode; on `node`, or anywhere. */
int64_t spase_list_start(const struct spase_list *list, const struct spase_mode *mode, uint32_t node);

/* Let a gang run as early as it can; returns its start. `devices`: out, (mode->devices), unless NULL. */
int64_t spase_list_put(struct spase_list *list, const struct spase_mode *mode, uint32_t node,
                       uint32_t *devices);

/* --- schedules ------------------------------------------------------------------------------- */

struct spase_task {
    uint32_t config; /* index into spase.configs */
    int64_t start;
    int64_t ticks;   /* that its devices are held */
};

/* Open; zeroed it is empty. */
struct spase_schedule {
    struct spase_task *tasks; /* (job_count) */
    uint32_t *device_first;   /* (job_count + 1): job i has devices[device_first[i] .. [i + 1]) */
    uint32_t *devices;
    int64_t makespan;         /* as claimed; spase_check() recomputes it */
};

/* From an order of all jobs, free_at as in spase_list_clear(). Release it with
 * spase_schedule_release(). Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status spase_schedule_make(const struct spase *in, const struct spase_step *steps,
                                           const int64_t *free_at, struct spase_schedule *out,
                                           struct error *err);
void spase_schedule_release(struct spase_schedule *schedule);

/* An order that gives it, or a better one: jobs by their starts, in their nodes and modes. steps: out, (in->job_count).
 * Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status spase_schedule_steps(const struct spase *in, const struct spase_schedule *schedule,
                                            struct spase_step *steps, struct error *err);

/*
 * Is it a schedule of the instance: every job once, in one of its configurations, for that one's run
 * time on the class of its devices; as many devices as it says, all different, of one class, of one
 * node unless it spans; no device for two jobs at a time; and the makespan as claimed? Shares no code
 * with what makes schedules. Errors: STATUS_CHECK with the first broken rule; STATUS_NO_MEMORY.
 */
MUST_CHECK enum status spase_check(const struct spase *in, const struct spase_schedule *schedule,
                                   struct error *err);

#endif
