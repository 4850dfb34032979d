/*
 * Keeps the results of jobs that ended: fingerprints of their weights, and the weights themselves in files.
 */
#include "exec/state/run_state.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/try.h"
#include "exec/files/weights.h"
#include "exec/run/run_moves.h"
#include "exec/run/run_result.h"
#include "exec/state/run_faults.h"
#include "exec/state/run_storage.h"
#include "models/jobs/job_files.h"

/* Returns true if the job has the training's last weights. */
static bool is_complete(const struct run *run, uint32_t j)
{
    const struct job *const job = &run->plan->jobs.jobs[j];
    return run->result->jobs[j].minibatches == job->first_minibatch + job->minibatches && !run->jobs[j].diverged;
}

/* Writes to `path`, or to its partial path if the training ended early; *out is the path used. */
static enum status keep_values(struct run *run, struct weights_walk values, bool complete, const char *path,
                               const char **out, struct error *err)
{
    char partial[JOB_PATH_BYTES];
    const char *const target = complete ? path : job_partial_path(path, partial);
    TRY(weights_write_walk(values, target, err));
    if (complete) job_partial_remove(path);
    pthread_mutex_lock(&run->lock); /* the arena is used by one thread at a time */
    const enum status status = arena_string(&run->result->arena, target, out, err);
    pthread_mutex_unlock(&run->lock);
    return status;
}

/* Writes the best evaluation's weights. */
static enum status write_best(struct run *run, uint32_t j, struct weights_walk best, struct error *err)
{
    const struct job *const job = best.job;
    struct run_job_result *const result = &run->result->jobs[j];
    result->kept_fingerprint = weights_fingerprint_walk(best);
    if (!run->options->save_weights || !job->weights_best) return STATUS_OK;
    return keep_values(run, best, is_complete(run, j), job->weights_best, &result->kept_path, err);
}

/* Keeps the best evaluation's weights, if the job does so. Frozen ones stay in its state. */
static enum status keep_best(struct run *run, uint32_t j, struct error *err)
{
    const struct plan *const plan = run->plan;
    const uint32_t first = plan->job_first_shard[j];
    struct weights_walk best = {.job = &plan->jobs.jobs[j],
                                .tables = &run->value_tables[first],
                                .shard_count = plan_job_shards(plan, j),
                                .states = &run->kept[first],
                                .frozen_tables = &run->whole_tables[first]};
    struct run_states lent;
    struct error ignored = {0};
    if (!run->jobs[j].kept) return STATUS_OK;
    if (!best.job->network.trained) return write_best(run, j, best, err);
    enum status status = run_states_borrow(run, first, best.shard_count, RUN_STATES_PARAMETERS, &lent, err);
    best.frozen_states = lent.states;
    if (status == STATUS_OK) status = write_best(run, j, best, err);
    (void)!run_states_give_back(run, &lent, false, &ignored);
    return status;
}

/* Fails a job whose weights are not finite: they must not replace a file's. */
static void fail_not_finite(struct run *run, uint32_t j)
{
    struct error *const failure = &run->jobs[j].failure;
    if (failure->status == STATUS_OK)
        error_set(failure, STATUS_CHECK, "the last step left weights that are not finite");
    const size_t used = strlen(failure->text);
    snprintf(failure->text + used, sizeof failure->text - used, "; no weights are written: %s",
             run->result->jobs[j].checkpoint > 0 ? "the last checkpoint has earlier ones" : "they are not finite");
}

/* Reports the results of a job that ended because a value was not finite, while its weights are finite. */
static void say_what_is_left(struct run *run, uint32_t j)
{
    struct error *const failure = &run->jobs[j].failure;
    const uint64_t last = run->result->jobs[j].minibatches;
    const struct job *const job = &run->plan->jobs.jobs[j];
    const bool by_loss = atomic_load(&run->jobs[j].guard.state) == UNIT_GUARD_LOSS;
    const bool whole = (job_clips(job) || by_loss) && !parallel_is_stale(&job->parallel);
    const size_t used = strlen(failure->text), room = sizeof failure->text - used;
    if (whole && last > 1)
        snprintf(failure->text + used, room, "; it keeps its weights after minibatch %" PRIu64, last - 1);
    else if (whole)
        snprintf(failure->text + used, room, "; it keeps its initial weights");
    else
        snprintf(failure->text + used, room, "; its weights are finite, in some layers after minibatch %" PRIu64, last);
}

/* Keeps a job's results, unless its state is damaged. */
static enum status keep_job(struct run *run, uint32_t j, struct error *err)
{
    const struct plan *const plan = run->plan;
    const struct job *const job = &plan->jobs.jobs[j];
    struct run_job_result *const result = &run->result->jobs[j];
    const uint32_t first = plan->job_first_shard[j];
    const uint32_t count = plan_job_shards(plan, j);
    bool partial;
    const char *const path = run_moves_weights(run, j, &partial);
    const bool wanted = run->options->save_weights && path && result->minibatches > 0;
    struct run_states lent;
    struct error ignored = {0};
    if (run->jobs[j].damaged) return STATUS_OK;
    enum status status =
        run_states_borrow(run, first, count, RUN_STATES_PARAMETERS, &lent, err);
    if (status == STATUS_OK)
        result->weights_fingerprint =
            weights_fingerprint(job, &run->whole_tables[first], count, lent.states);
    const bool finite = status == STATUS_OK && (run->options->on_nan == RUN_NAN_CONTINUE ||
                                                weights_are_finite(job, &run->whole_tables[first], count, lent.states));
    if (status == STATUS_OK && !finite) fail_not_finite(run, j);
    const bool write = wanted && finite;
    if (status == STATUS_OK && write)
        status = keep_values(run, (struct weights_walk){.job = job, .tables = &run->whole_tables[first],
                                                        .shard_count = count,
                                                        .states = lent.states},
                             !partial && is_complete(run, j), path, &result->weights_path, err);
    if (status == STATUS_OK && finite && run->jobs[j].diverged) say_what_is_left(run, j);
    const enum status given_back = run_states_give_back(run, &lent, false, &ignored);
    if (status == STATUS_OK && given_back != STATUS_OK)
        status = error_set(err, given_back, "%s", ignored.text);
    return status;
}

static void note_unwritten(struct run *run, const struct error *why)
{
    pthread_mutex_lock(&run->lock);
    run_result_unwritten(run->result, why);
    pthread_mutex_unlock(&run->lock);
}

void run_count_minibatches(struct run *run, uint32_t job)
{
    pthread_mutex_lock(&run->lock);
    run->result->jobs[job].minibatches = run->plan->jobs.jobs[job].first_minibatch + run->jobs[job].losses;
    pthread_mutex_unlock(&run->lock);
}

void run_keep_job(struct run *run, uint32_t job)
{
    struct error unwritten[2] = {{0}, {0}};
    if (keep_job(run, job, &unwritten[0]) != STATUS_OK) note_unwritten(run, &unwritten[0]);
    if (!run->jobs[job].damaged && keep_best(run, job, &unwritten[1]) != STATUS_OK) note_unwritten(run, &unwritten[1]);
}

/* Keeps what waits in files for jobs that did not begin. Comes after all others, whose memory it may take. */
static void keep_waiting(struct run *run)
{
    for (uint32_t j = 0; j < run->plan->jobs.count; j++) {
        struct error unread = {0};
        if (run_moves_return(run, j, &unread)) run_keep_job(run, j);
        else if (unread.status != STATUS_OK) note_unwritten(run, &unread);
    }
}

void run_keep_weights(struct run *run)
{
    for (uint32_t j = 0; j < run->plan->jobs.count; j++)
        if (run_job_is_open(run, j)) run_keep_job(run, j);
    keep_waiting(run);
    for (uint32_t j = 0; j < run->plan->jobs.count && run->result->stopped; j++)
        run_log_kept(run->log, j, run->result->jobs[j].minibatches, run->result->jobs[j].weights_path);
}
