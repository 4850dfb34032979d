/*
 * A run that several processes share (exec/ranks/rank_mesh.h). Each walks the whole plan, so that numbers of operations
 * and waits are equal everywhere, and carries out the operations of its own devices. Other ranks' devices have
 * stand-ins without memory, whose streams keep the order of what happens elsewhere.
 *
 * Losses go to rank 0, which logs them and tells all. A minibatch begins only when a loss a few minibatches before it
 * is known (run_minibatches_ahead()): so rank 0 can end a job with a minibatch that no rank has passed. On all ranks
 * the limit of a job is the same.
 *
 * The squares of gradients of a job that clips go from each stage to all ranks of the job, which decide alike about a
 * step. A loss that is not finite is told to them before.
 *
 * Losses of evaluations go to rank 0, too. It tells all whether an evaluation is the best so far, and a rank that keeps
 * the best weights waits for that.
 *
 * A job that fails at a rank, while others go on, has begun elsewhere. So its minibatches up to the limit are computed
 * with arbitrary data, and the job keeps only the losses that had come: the rank waits until rank 0 knows.
 *
 * In a live order rank 0 asks the policy, and tells all each task before it walks it itself. All walk the same tasks in
 * the same order. A unit or minibatch is over when every rank has told that its streams have passed it.
 */
#ifndef SPILLWAY_EXEC_STATE_RUN_PEERS_H
#define SPILLWAY_EXEC_STATE_RUN_PEERS_H

#include "exec/ranks/rank_mesh.h"
#include "exec/state/run_loop.h"

struct run_peers_message;

struct run_peers {
    struct ranks *ranks;
    uint32_t own, count;
    uint32_t *rank_of;        /* per device */
    double *p2p_rates;        /* per device: paced rate of copies from other devices; 0: not paced */
    bool *job_at;             /* [rank][job]: the rank has some of its devices */
    bool *shard_at;           /* [rank][shard]: the rank has a device that trains it */
    uint32_t *home;           /* per shard and place in its stage (run_peers_home()): the rank */
    uint32_t *first_home;     /* per shard: of those; one more is their number */
    pthread_cond_t changed;   /* with run.lock: a loss or a limit has come */
    bool stopping;            /* rank 0 has ended all jobs */
    bool stop_asked;          /* rank 0: another rank was stopped by its user; others: rank 0 knows */
    struct ranks_request *moved; /* of the main thread */
    struct trace_room *traced;   /* of exec/run/run_ranks_trace.c */
    uint64_t *cuts;           /* per job: the minibatches after which all cut next, for a checkpoint; 0: none. Under
                                 run.lock */
    uint8_t **verdicts;       /* with checkpoints, per job and minibatches before a cut: enum run_peers_verdict. Under
                                 run.lock */
    void (*hear_live)(void *live, const struct run_peers_message *message); /* TASK and OVER; NULL: the plan's order */
    void *live;               /* its first argument */
    bool *has_earlier_best;   /* per shard, at rank 0: a file's best weights are kept, until there are better ones.
                                 Under run.lock */
};

/* Rank 0's word on a cut. */
enum run_peers_verdict { PEERS_UNDECIDED, PEERS_MADE, PEERS_DROPPED };

/* What a live order's next task is: none, one that follows, one of a unit or minibatch that was decided, its last. */
enum run_peers_task { PEERS_TASK_NONE, PEERS_TASK_FOLLOWS, PEERS_TASK_DECIDED, PEERS_TASK_LAST };

/* Messages between ranks. */
enum run_peers_kind { PEERS_PART, PEERS_LOSS, PEERS_NOT_FINITE, PEERS_NORM, PEERS_LIMIT, PEERS_STOP, PEERS_CUT,
                     PEERS_HELD_OUT, PEERS_EVALUATED, PEERS_TASK, PEERS_OVER,
                     PEERS_FAILED };
struct run_peers_message {
    uint32_t kind, job;
    uint32_t replica;   /* PART, HELD_OUT: of the loss; TASK: the plan's task that is next */
    uint32_t holds;     /* LIMIT: all jobs end; LOSS: a cut comes; NORM: the step is skipped; CUT: it is made;
                           EVALUATED: it is the best so far; TASK: enum run_peers_task */
    uint64_t minibatch; /* of the loss, or before the evaluation; LIMIT: the limit; CUT: of the cut */
    uint64_t held_out;  /* HELD_OUT: number of the held-out minibatch */
    double loss;        /* NORM: the norm */
};

/* FAILED: a job ends, or to rank 0: it has to. */
struct run_peers_failure {
    uint32_t kind, job, damages; /* damages: its states are lost on all ranks */
    char text[236];
};

/* Numbers of data that are no operation of the plan: their subject, and a number in it. */
enum { PEERS_STATES = 1, PEERS_FINAL, PEERS_SAVED, PEERS_REPORT, PEERS_EXCHANGES, PEERS_CLOCKS, PEERS_ENDED,
       PEERS_BEST, PEERS_STORED, PEERS_EARLY };
static inline uint64_t run_peers_number(uint32_t what, uint64_t number)
{
    return UINT64_C(1) << 63 | (uint64_t)what << 56 | number;
}

/* Counts the devices of a shard's stage; 1 for a job that is not parallel. */
uint32_t run_shard_places(const struct plan *plan, uint32_t shard);

/* Returns true if this process has the device. */
static inline bool run_has_device(const struct run *run, uint32_t device)
{
    return !run->peers || run->peers->rank_of[device] == run->peers->own;
}

/* Returns true if the rank has some of the job's devices. */
static inline bool run_job_is_at(const struct run *run, uint32_t rank, uint32_t job)
{
    return run->peers->job_at[(size_t)rank * run->plan->jobs.count + job];
}

/* Returns the rank of the device with a shard's replica or share. */
static inline uint32_t run_peers_home(const struct run *run, uint32_t shard, uint32_t place)
{
    return run->peers->home[run->peers->first_home[shard] + place];
}

/* Returns true if rank 0 gets values of the shard from this rank, for files: of equal replicas only the first one's. */
bool run_peers_has_values(const struct run *run, uint32_t rank, uint32_t shard);

/* Returns true if this process carries out the operation. Batches are read by every rank of a job. */
bool run_is_here(const struct run *run, const struct plan_walk_op *op);

/* Returns the minibatches with which a job ends that is ended now. Under run.lock. */
uint64_t run_job_end(const struct run *run, uint32_t job);
/* Lowers a job's limit to that, and tells the other ranks. Under run.lock. */
void run_end_job(struct run *run, uint32_t job, bool all);

/* Tells rank 0 that a job failed here, or from rank 0 all others. Under run.lock. */
void run_peers_tell_failure(struct run *run, uint32_t job, bool damages, const struct error *why);

/* Asks rank 0, once, to stop the run. Under run.lock. */
void run_peers_ask_stop(struct run *run);

/* Data that move between this rank and another one, from or to memory that outlives the run's messages. */
struct run_peers_data {
    uint32_t what, number, other; /* other: the rank */
    bool sends;
    void *at;
    uint64_t bytes;
};

/* Moves data, and waits for their end. The request must outlive the run's messages. Errors: as ranks_failed(). */
MUST_CHECK enum status run_peers_move(struct run *run, const struct run_peers_data *data, struct ranks_request *request,
                                      struct error *err);

/* Waits for a loss, a limit or a cut, or a moment. Under run.lock. */
void run_peers_await_change(struct run *run);

/* Returns true if rank 0 has the evaluation that follows a job's first minibatches, or there is none. Under
 * run.lock. */
bool run_has_evaluation(const struct run *run, uint32_t job, uint64_t minibatches);

/* Waits until all losses of minibatches that were enqueued have come, and evaluations to rank 0. */
MUST_CHECK enum status run_peers_await_losses(struct run_loop *loop, struct error *err);

/* Waits until the operation's minibatch may begin. */
MUST_CHECK enum status run_peers_await_turn(struct run_loop *loop, const struct plan_walk_op *op, struct error *err);

/* Returns STATUS_OK, or STATUS_DEVICE with the rank that failed and an operation that it has not reached. */
MUST_CHECK enum status run_peers_check(struct run_loop *loop, struct error *err);

#endif
