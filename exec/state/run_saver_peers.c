/*
 * Checkpoints of a run in several processes.
 *
 *     rank 0           takes a loss, and a checkpoint is due: with the loss it tells all where to cut, after the
 *                      last minibatch that any rank may have begun
 *     all ranks        cut there (run_saver_cut.c)
 *     rank 0           knows whether all losses before the cut have come, and tells all: copy, or drop the cut
 *     all ranks        copy the states of their own devices, and send them, or shares of them, to rank 0
 *     rank 0           writes one file, which does not depend on the number of processes
 *
 * All cut after each evaluation, too, and the copy is made if it is the best so far.
 *
 * One cut is under way at a time. A cut beyond the limit of its job is dropped by each rank: all have the same limit.
 * Last checkpoints are written by rank 0 alone, when all states have come to it.
 */
#include "exec/state/run_saver_state.h"

#include <stdatomic.h>

#include "base/process/clock.h"
#include "exec/state/run_faults.h"
#include "exec/state/run_peers.h"
#include "exec/state/run_shares.h"

enum { LOOK_S = 1 }; /* between looks at the other ranks, while it waits */

/* --- where ---------------------------------------------------------------------------------------- */

uint64_t run_saver_plan_cut(struct run_saver *saver, uint32_t job)
{
    if (!saver) return 0;
    struct run *const run = saver->run;
    const uint64_t minibatch = run->jobs[job].losses + run_minibatches_ahead(&run->plan->jobs.jobs[job]);
    struct saver_job *const saved = &saver->jobs[job];
    pthread_mutex_lock(&saver->lock);
    const bool cuts = !saver->planned && saver->phase < SAVER_COPIED && !saved->gave_up &&
                      atomic_load(&run->jobs[job].limit) == UINT64_MAX && run_saver_is_due(saver, job, minibatch);
    if (cuts) {
        saver->planned = true;
        saved->minibatch = minibatch;
        saved->at_s = clock_s();
    }
    pthread_mutex_unlock(&saver->lock);
    return cuts ? minibatch : 0;
}

static bool has_quit(struct run_saver *saver)
{
    pthread_mutex_lock(&saver->lock);
    const bool quit = saver->quit;
    pthread_mutex_unlock(&saver->lock);
    uint32_t rank;
    struct error ignored = {0};
    return quit || ranks_failed(saver->run->peers->ranks, &rank, &ignored) != STATUS_OK;
}

/* Waits until the copy before has been sent to rank 0. Returns false when it never will: a rank has failed. */
static bool await_idle(struct run_saver *saver)
{
    bool idle = false;
    while (!idle && !has_quit(saver)) {
        pthread_mutex_lock(&saver->lock);
        if (saver->phase != SAVER_IDLE) clock_wait_until(&saver->changed, &saver->lock, clock_s() + LOOK_S);
        idle = saver->phase == SAVER_IDLE;
        pthread_mutex_unlock(&saver->lock);
    }
    return idle;
}

bool saver_cuts_at(struct run_saver *saver, uint32_t job, uint64_t walked, bool *if_best)
{
    struct run *const run = saver->run;
    pthread_mutex_lock(&run->lock);
    *if_best = run->peers->cuts[job] != walked;
    pthread_mutex_unlock(&run->lock);
    const bool cuts = !*if_best || run_saver_is_evaluated(saver, job, walked);
    return cuts && await_idle(saver);
}

/* --- whether -------------------------------------------------------------------------------------- */

/* Returns true when it is known whether the cut is made; that is in *made. Under run.lock. */
static bool is_decided(const struct run_saver *saver, uint32_t job, uint64_t minibatch, bool *made)
{
    const struct run *const run = saver->run;
    const struct run_peers *const peers = run->peers;
    const struct run_progress *const progress = &run->jobs[job];
    if (atomic_load(&progress->limit) < minibatch) {
        *made = false;
        return true;
    }
    if (peers->own == 0) {
        *made = !progress->diverged && !progress->damaged && !saver->jobs[job].gave_up &&
                (!saver->cut_if_best || progress->improved == minibatch);
        return progress->damaged || (progress->losses >= minibatch && run_has_evaluation(run, job, minibatch));
    }
    *made = peers->verdicts[job][minibatch] == PEERS_MADE;
    return peers->verdicts[job][minibatch] != PEERS_UNDECIDED;
}

bool saver_agrees(struct run_saver *saver)
{
    struct run *const run = saver->run;
    const uint32_t job = saver->cut_job;
    const uint64_t minibatch = saver->cut_minibatch;
    bool made = false;
    while (!has_quit(saver)) {
        pthread_mutex_lock(&run->lock);
        const bool decided = is_decided(saver, job, minibatch, &made);
        if (!decided) run_peers_await_change(run);
        pthread_mutex_unlock(&run->lock);
        if (!decided) continue;
        const struct run_peers_message message = {.kind = PEERS_CUT, .job = job, .holds = made, .minibatch = minibatch};
        if (run->peers->own == 0) ranks_tell_all(run->peers->ranks, &message, sizeof message);
        return made;
    }
    return false;
}

/* --- what ----------------------------------------------------------------------------------------- */

/* Moves the copy of a state, or of a rank's share of it, from its home to rank 0. */
static bool bring(struct run_saver *saver, uint32_t shard, uint32_t rank)
{
    struct run *const run = saver->run;
    const bool split = run_is_split(run, shard), sends = run->peers->own > 0;
    const uint32_t home = run_peers_home(run, shard, rank), number = run->peers->first_home[shard] + rank;
    struct error ignored = {0}; /* the run ends with it */
    if (home == 0 || (sends && run->peers->own != home)) return true;
    char *const copy = (char *)saver->copies[shard];
    const struct run_peers_data data = {.what = PEERS_SAVED, .number = number, .other = sends ? 0 : home,
                                        .sends = sends,
                                        .at = split ? saver->share : copy,
                                        .bytes = split ? run->plan->buffers[run->state_buffers[shard]].bytes
                                                       : run->tables[shard].state.layout.bytes};
    if (split && sends) run_shares_cut(run, shard, rank, copy, saver->share);
    if (run_peers_move(run, &data, &saver->parts[number], &ignored) != STATUS_OK) return false;
    if (split && !sends) run_shares_join(run, shard, rank, saver->share, copy, UINT64_MAX);
    return true;
}

bool saver_brings_together(struct run_saver *saver, uint32_t job)
{
    const struct run *const run = saver->run;
    for (uint32_t s = run->plan->job_first_shard[job]; s < run->plan->job_first_shard[job + 1]; s++)
        for (uint32_t rank = 0; rank < (run_is_split(run, s) ? run_shares_ranks(run, s) : 1); rank++)
            if (!bring(saver, s, rank)) return false;
    return true;
}
