/*
 * Schedules of SPASE instances: devices and times, how an order becomes a schedule, and the judge of both.
 *
 * An order lists jobs with their modes. Each gang starts as early as it can after earlier ones in the list, and never
 * in a gap. Where no gang spans, some optimal schedule comes from the order of its own starts with its own nodes. A
 * gang takes the devices that became free last.
 */
#ifndef SPILLWAY_PLANNER_SATURN_SPASE_SPASE_SCHEDULE_H
#define SPILLWAY_PLANNER_SATURN_SPASE_SPASE_SCHEDULE_H

#include "planner/saturn/spase/spase.h"

enum { SPASE_ANY_NODE = UINT32_MAX };

struct spase_step {
    uint32_t job;
    uint32_t mode; /* index into spase.modes */
    uint32_t node; /* SPASE_ANY_NODE: the node with the earliest start. Ignored when the mode spans */
};

/* --- lists ----------------------------------------------------------------------------------- */

struct spase_slot {
    int64_t free; /* start of the free time */
    uint32_t device;
};

/* The devices of each node, sorted by the time at which they become free. */
struct spase_list {
    const struct spase *in;
    struct spase_slot *slots; /* (device_count), node by node as devices are numbered */
    uint32_t *taken;          /* (node_count) scratch for gangs that span */
};

MUST_CHECK enum status spase_list_init(struct spase_list *list, const struct spase *in, struct error *err);
void spase_list_release(struct spase_list *list);

/* Frees all devices from the start, or from free_at[device] on, (device_count). */
void spase_list_clear(struct spase_list *list, const int64_t *free_at);

/* Returns the earliest start of a mode, on `node` or anywhere. */
int64_t spase_list_start(const struct spase_list *list, const struct spase_mode *mode, uint32_t node);

/* Runs a gang as early as it can; returns its start. `devices`: out, (mode->devices), or NULL. */
int64_t spase_list_put(struct spase_list *list, const struct spase_mode *mode, uint32_t node,
                       uint32_t *devices);

/* --- schedules ------------------------------------------------------------------------------- */

struct spase_task {
    uint32_t config; /* index into spase.configs */
    int64_t start;
    int64_t ticks;   /* ticks for which its devices are held */
};

/* Open structure; zeroed it is empty. */
struct spase_schedule {
    struct spase_task *tasks; /* (job_count) */
    uint32_t *device_first;   /* (job_count + 1): job i has devices[device_first[i] .. [i + 1]) */
    uint32_t *devices;
    int64_t makespan;         /* as claimed; spase_check() recomputes it */
};

/* Makes a schedule from an order of all jobs; free_at as in spase_list_clear(). Release it with
 * spase_schedule_release(). */
MUST_CHECK enum status spase_schedule_make(const struct spase *in, const struct spase_step *steps,
                                           const int64_t *free_at, struct spase_schedule *out,
                                           struct error *err);
void spase_schedule_release(struct spase_schedule *schedule);

/* Finds an order that gives this schedule, or a better one: jobs by their starts, in their nodes and modes. steps:
 * out, (in->job_count). */
MUST_CHECK enum status spase_schedule_steps(const struct spase *in, const struct spase_schedule *schedule,
                                            struct spase_step *steps, struct error *err);

/*
 * Checks a schedule of the instance: every job once, in one of its configurations, for its run time on the class of its
 * devices; the right number of different devices, of one class, of one node unless it spans; no device for two jobs at
 * a time; the claimed makespan. Shares no code with the makers of schedules. Errors: STATUS_CHECK with the first broken
 * rule.
 */
MUST_CHECK enum status spase_check(const struct spase *in, const struct spase_schedule *schedule,
                                   struct error *err);

#endif
