/*
 * Minibatches of a schedule that are proven to repeat, and placed once.
 *
 * When the clocks of schedule_builder.h stand as some minibatches before, all later by the same time, every later
 * decision repeats. The scheduler looks each time the same job ends a minibatch. In an earlier look's state, it skips
 * the cycles in which no job ends. The schedule stores the cycle once, with the number of cycles.
 */
#ifndef SPILLWAY_PLANNER_SPILL_ORDER_SCHEDULE_STEADY_H
#define SPILLWAY_PLANNER_SPILL_ORDER_SCHEDULE_STEADY_H

#include "planner/policy/policy.h"
#include "planner/spill/order/schedule_builder.h"

typedef double schedule_rank(void *state, const struct policy_view *view, uint32_t job);

struct schedule_steady {
    struct schedule_builder *builder;
    struct schedule_builder *reference;  /* at an earlier look; NULL: nothing is looked for */
    schedule_rank *rank;                 /* by which the policy decides; NULL: by the order of jobs */
    const struct policy_view *view;
    void *policy_state;
    uint32_t marker;            /* the job whose minibatches end at looks; PLAN_NONE: no reference yet */
    uint32_t reference_count;   /* units placed by then */
    uint32_t last_count;        /* ... and at the last look */
    uint32_t looks, patience;   /* since the reference was taken, and how many there may be */
    double *ranks;              /* per job, at the reference ... */
    double *lowest;             /* ... and the lowest that it was chosen with since; HUGE_VAL: it was not */
    double gap;                 /* since: the least distance of a chosen rank to the next rank ... */
    double *gaps;               /* ... or, for few jobs, of each (chosen, other) pair; NULL: many jobs */
};

/* Returns true for a built-in policy that decides by ranks, or only the order of jobs: its orders repeat with its
 * clocks. */
bool schedule_policy_repeats(const struct policy *policy);

/* Begins to look where there are enough units, in states that repeat, for such a policy. Release it with
 * schedule_steady_release(). */
MUST_CHECK enum status schedule_steady_begin(struct schedule_steady *steady, struct schedule_builder *builder,
                                             bool one_device, const struct policy *policy, void *policy_state,
                                             const struct policy_view *view, uint64_t units, struct error *err);
void schedule_steady_release(struct schedule_steady *steady);

/* Notes a decision at `now_s`: the rank of the chosen job, and the best other rank (-HUGE_VAL: none). For few jobs
 * (steady->gaps), each other job that could have been chosen is noted with its rank instead. */
void schedule_steady_decided(struct schedule_steady *steady, double now_s, uint32_t job, double rank, double next_rank);
void schedule_steady_compared(struct schedule_steady *steady, uint32_t job, double rank, uint32_t other,
                              double other_rank);

/* The cycles left out: units [first, end) are placed `times` times more, which takes later_s. Times up to old_s have no
 * effect any more. */
struct schedule_cycle {
    uint32_t first, end;
    uint64_t times;
    double later_s, old_s;
};

/* Moves all clocks of unfinished jobs that are later than cycle->old_s by cycle->later_s. */
void schedule_steady_move(struct schedule_builder *builder, const struct schedule_cycle *cycle);

/* Looks for a cycle after `count` placed units. Returns true if *out moved the placing on. schedule_steady_go_on()
 * follows when the policy's view shows the new time. */
bool schedule_steady_look(struct schedule_steady *steady, const struct schedule_unit *unit, uint32_t count,
                          struct schedule_cycle *out);
void schedule_steady_go_on(struct schedule_steady *steady, uint32_t count);

#endif
