/* Shared by run_saver.c, which copies and writes on its thread, and run_saver_cut.c, which works while operations are
 * enqueued. */
#ifndef SPILLWAY_EXEC_STATE_RUN_SAVER_STATE_H
#define SPILLWAY_EXEC_STATE_RUN_SAVER_STATE_H

#include "exec/ranks/rank_mesh.h"
#include "exec/state/run_saver.h"

enum saver_phase {
    SAVER_IDLE,
    SAVER_ENQUEUED, /* a cut is on its way through the streams */
    SAVER_REACHED,  /* our thread is to copy */
    SAVER_COPIED,   /* newer state on devices may still be copied over it */
    SAVER_WRITING
};

/* Per job. */
struct saver_job {
    uint64_t minibatch;  /* of this run, in the newest checkpoint or cut */
    double at_s;         /* when that was */
    uint64_t due_since;  /* a counter; 0: it is not due */
    bool final_asked, final_reached, final_over;
    bool gave_up;
};

struct run_saver {
    struct run *run;
    const struct run_checkpoints *options;
    const struct run_device_state *states;
    struct checkpoint_folder *folder; /* NULL: rank 0's */
    char libraries[128];
    float **copies;          /* per shard: its place in the copy */
    uint64_t *wrote;         /* [job][stream]: event after the last write of state or loss */
    uint64_t *brought;       /* [device]: event after the last cut's copies of newer state */
    bool *covered;           /* per shard: completely newer on a device at the last cut */
    struct saver_job *jobs;
    uint64_t due_counter;

    pthread_t thread;
    bool started;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum saver_phase phase;
    uint32_t cut_job;
    uint64_t cut_minibatch;
    bool cut_if_best;        /* for the best evaluation only */
    uint64_t cut_number, copied_number; /* the last cut; the last that was copied */
    uint32_t to_bring;       /* devices whose newer state is still awaited */
    bool dropped;            /* the cut's minibatch was left out */
    uint32_t finals;         /* asked for and not yet done */
    bool quit;
    bool planned;            /* rank 0: all ranks were told of a cut that is not over, but for best evaluations */
    struct ranks_request *parts; /* per shard and share (run_peers.home): its way to rank 0 */
    char *share;             /* room for a share on that way */
};

/* Returns true if a checkpoint of the job is due after a minibatch. */
bool run_saver_is_due(const struct run_saver *saver, uint32_t job, uint64_t minibatch);

/* Returns true when this minibatch, not the last one, may be the best so far. */
bool run_saver_is_evaluated(const struct run_saver *saver, uint32_t job, uint64_t minibatch);

/* --- several processes (run_saver_peers.c) ------------------------------------------------------------ */

/* Returns true if all ranks cut here, after the copy before is over. *if_best: for the best evaluation only. On the
 * enqueueing thread. */
bool saver_cuts_at(struct run_saver *saver, uint32_t job, uint64_t walked, bool *if_best);

/* The others are called on the saver's thread, without its lock. */

/* Returns true if the cut is made, as on all ranks. */
bool saver_agrees(struct run_saver *saver);

/* Sends copies to rank 0, or receives them. Returns false when a rank has failed. */
bool saver_brings_together(struct run_saver *saver, uint32_t job);

#endif
