/*
 * Minibatches of a schedule that nearly repeat, and are placed once.
 *
 * Jobs of different lengths next to each other seldom meet again as they did, so schedule_steady.h finds no cycle.
 * Their rates hardly change all the same, until a job ends or another becomes more urgent. So a stretch of the schedule
 * becomes a *round*: each job makes a whole number of minibatches in it, in the proportions of the stretch.
 *
 *     stretch   a1 b1 a2 a1 b2 a2 a1 b1 a2 a1     by the policy; jobs of two units a1 a2, b1 b2
 *     closing                                 b2 a2     jobs within a minibatch go on to its end
 *
 * The schedule stores the round once, with the number of its repetitions (struct schedule_loop). Repetitions keep the
 * policy's rates, not its every decision.
 */
#ifndef SPILLWAY_PLANNER_SPILL_ORDER_SCHEDULE_NEAR_H
#define SPILLWAY_PLANNER_SPILL_ORDER_SCHEDULE_NEAR_H

#include "planner/policy/policy.h"
#include "planner/spill/order/schedule_steady.h"

enum schedule_near_state { NEAR_OFF, NEAR_IDLE, NEAR_OPEN, NEAR_CLOSING };

struct schedule_near_job {
    uint64_t minibatch;  /* at the stretch's beginning ... */
    uint32_t position;   /* ... and the position */
    uint64_t quota;      /* minibatches of a round */
    double placed_s;     /* computation since the beginning */
    double minibatch_s;  /* computation of a minibatch, with its share of evaluations */
    uint32_t step;       /* rounds have a multiple of it in minibatches: evaluations follow alike */
    double drop_s;       /* by which a round shortens remaining_s */
};

struct schedule_near {
    enum schedule_near_state state;
    struct schedule_builder *builder;
    struct schedule_builder *scratch;
    struct schedule_near_job *jobs;
    double rank_sign;        /* 1: the longest remaining job is first, -1: the shortest; 0: neither */
    uint32_t first;          /* the first unit of the stretch */
    uint32_t idle_until;     /* units placed when a stretch may begin */
    uint32_t size, attempts; /* units of the shortest stretch now; attempts without success */
    uint32_t next_check;
    uint32_t phase_first;    /* units placed when jobs ended or rounds were repeated last */
    double phase_free_s;     /* when the last device was free then ... */
    double phase_placed_s;   /* ... and computation since */
    double pace;             /* computation per second, since then, by the policy's decisions */
    double round_s;          /* how long a round takes */
};

/* Begins to look, for a policy that ranks and numbers of units for which this pays; else nothing is ever found. Release
 * it with schedule_near_release(). */
MUST_CHECK enum status schedule_near_begin(struct schedule_near *near, struct schedule_builder *builder,
                                           bool one_device, const struct policy *policy, uint64_t units,
                                           struct error *err);
void schedule_near_release(struct schedule_near *near);

/* Forgets the current stretch after `count` units: an exact cycle was found. */
void schedule_near_restart(struct schedule_near *near, uint32_t count);

enum schedule_near_step { NEAR_GOES_ON, NEAR_OPENS, NEAR_CLOSES, NEAR_CLOSED };

/* Notes a placed unit, the last of `count`; `left` more are to be placed. Returns NEAR_OPENS when a stretch begins,
 * with a joint; NEAR_CLOSES when its closing begins: then jobs of schedule_near_holds() must not be placed; and
 * NEAR_CLOSED after it. */
enum schedule_near_step schedule_near_look(struct schedule_near *near, const struct schedule_unit *unit,
                                           uint32_t count, uint64_t left);

/* Returns true for a job that has its whole minibatches while a stretch closes. */
bool schedule_near_holds(const struct schedule_near *near, uint32_t job);

/* Returns the computation that a job has before it while a stretch closes: its rank. */
double schedule_near_rank(const struct schedule_near *near, uint32_t job);

/* Chooses how often the closed round [near->first, count) of `units` is repeated; 0: writing all out is better. */
uint64_t schedule_near_choose(struct schedule_near *near, const struct schedule_unit *units, uint32_t count);

/* Skips the rounds of *cycle after the first, and fills in the times moved. A joint follows the last. */
void schedule_near_skip(struct schedule_near *near, struct schedule_cycle *cycle);

#endif
