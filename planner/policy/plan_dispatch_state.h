/* The state of live dispatch. Only for plan_dispatch*.c. */
#ifndef SPILLWAY_PLANNER_POLICY_PLAN_DISPATCH_STATE_H
#define SPILLWAY_PLANNER_POLICY_PLAN_DISPATCH_STATE_H

#include "planner/policy/plan_dispatch.h"

enum { PLAN_DISPATCH_HISTORY = 8 }; /* units of a device to look back at: the most weight buffers that it may have */

struct plan_dispatch_chain {
    uint32_t first, count; /* its entries of `entries` */
    uint32_t at;           /* from `first`; count: it is done */
    uint32_t segment, segment_at, repeat; /* that entry's segment, the first entry in it, its repetition */
    uint64_t minibatches;  /* dispatched, of a parallel job */
    uint32_t device;       /* of the unit that runs */
    bool holds_slot;
    bool under_way;        /* it has its range of host memory */
    bool closes;           /* it was dropped: only its CLOSEs are left */
};

struct plan_dispatch_device {
    const struct plan_task *history[PLAN_DISPATCH_HISTORY]; /* newest first; NULL: none */
    uint32_t slots, running; /* units that hold one */
    uint64_t slot_bytes;
};

struct plan_dispatch {
    const struct plan *plan;
    struct policy_session session;
    struct policy_view view;
    bool asks; /* the policy */
    uint32_t device_count;          /* that it may use */
    uint32_t running;
    uint32_t following;                 /* job whose unit was decided last; PLAN_NONE: nothing follows it */
    struct policy_choice opening;       /* decided, dispatched after the OPENs of its job; job PLAN_NONE: none */
    struct plan_dispatch_chain *chains; /* (job count) */
    uint32_t *entries;                  /* tasks of jobs, job by job, in plan order */
    struct plan_dispatch_device *devices;
    uint32_t *first_choice;         /* (unit count * device count + 1), into `choices` */
    uint32_t *choices;              /* tasks, by unit and device */
    uint32_t *first_acquire;        /* (unit count + 1), into `staged` */
    bool *staged;                   /* per ACQUIRE of a unit: of a staged buffer */
    double *compute_least_s;        /* (unit count), over all types */
    struct policy_cost *costs;      /* (unit count, type count) */
    struct policy_job *jobs;        /* shown */
    struct policy_device *shown;    /* (device count) */
    uint32_t *homes;                /* (job count): the node where the plan has it, and where it stays; or its seat */
    uint32_t *groups, group_count;  /* of devices that are shown together: nodes, or seats */
    bool by_minibatch;              /* parallel jobs */
    uint32_t minibatch_of;          /* job whose minibatch is being dispatched; PLAN_NONE: none */
    uint32_t *first_device;         /* parallel jobs: (job count + 1), into ... */
    uint32_t *job_devices;          /* ... the devices of each */
    struct policy_cost *minibatch_costs; /* parallel jobs: (job count, type count) of the next minibatch */
};

static inline bool plan_dispatch_is_done(const struct plan_dispatch_chain *chain) { return chain->at == chain->count; }

static inline const struct plan_unit *plan_dispatch_unit_at(const struct plan_dispatch *d,
                                                            const struct plan_dispatch_chain *chain)
{
    return &d->plan->units[d->plan->tasks[d->entries[chain->first + chain->at]].unit];
}

/* --- plan_dispatch_chain.c -------------------------------------------------------------------- */

/* Moves to the segment of the current entry. */
void plan_dispatch_enter_segment(const struct plan_dispatch *d, struct plan_dispatch_chain *chain);
void plan_dispatch_advance(const struct plan_dispatch *d, struct plan_dispatch_chain *chain);
void plan_dispatch_show_device(struct plan_dispatch *d, uint32_t device);

/* --- plan_dispatch.c -------------------------------------------------------------------------- */

/* Shows the job's current unit; none if it is done. */
void plan_dispatch_show_unit(struct plan_dispatch *d, uint32_t job);

/* --- plan_dispatch_minibatch.c: parallel jobs -------------------------------------------------- */

enum { PLAN_DISPATCH_MINIBATCH_SLOTS = 2 };

/* Returns true if all devices of a parallel job have a slot. */
bool plan_dispatch_has_slots(const struct plan_dispatch *d, uint32_t job);
/* Returns the seconds that a task keeps a parallel job's devices busy, if they share it equally. */
double plan_dispatch_share_of_task_s(const struct plan_dispatch *d, const struct plan_task *task);
/* Shows a parallel job's next minibatch; none if it is done. */
void plan_dispatch_show_minibatch(struct plan_dispatch *d, uint32_t job);
/* Dispatches the next task of the minibatch that was decided last; false: there is none. */
bool plan_dispatch_in_minibatch(struct plan_dispatch *d, struct plan_dispatched *out);
void plan_dispatch_begin_minibatch(struct plan_dispatch *d, struct policy_choice choice, struct plan_dispatched *out);

#endif
