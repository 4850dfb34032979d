/*
 * Jobs whose passes lack updates of their weights: plans, runs, and a slow reference that keeps every version of the
 * weights.
 *
 * The reference computes one microbatch after the other over all chunks, without a plan. For update u each chunk computes
 * with its own weights after max(u - s, F) updates: s is the number of later stages with pipedream, 1 with 2bw and with
 * delayed updates, and F the updates before the last flush. With pipedream the last chunk's s is the first one's where both
 * ends have a table, and every chunk's where the job clips. Replicas' gradients are added in their order: after all
 * microbatches, or after each where replicas split gradients; the numbers of replicas of stages may be unequal.
 * Evaluations, which follow flushes, pass forward with the newest weights.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_STALE_JOB_H
#define SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_STALE_JOB_H

#include "exec/run/run.h"

enum { STALE_JOB_DEVICES = 12, STALE_JOB_CHUNKS_MAX = 8, STALE_JOB_REPLICAS_MAX = 4, STALE_JOB_UPDATES_MAX = 20 };

struct stale_job_outcome {
    double losses[STALE_JOB_UPDATES_MAX];
    double held_out[STALE_JOB_UPDATES_MAX + 1]; /* after 0, 1, 2, ... updates; NaN: not evaluated */
    uint64_t fingerprints[STALE_JOB_UPDATES_MAX + 1]; /* after 0, 1, 2, ... updates */
};

/* Plans the job, and checks the plan. Fails the test if that is not possible. */
void stale_job_plan(const struct job *job, const char *config, struct plan *plan);

/* Trains the job by the reference. */
void stale_job_reference(const struct job *job, struct stale_job_outcome *out);

/* Carries the job out, and fails the test unless losses, evaluations and weights have the reference's bits after the
 * minibatches that the run made. Returns the seconds that it took. */
double stale_job_run(const struct job *job, const char *config, const struct run_options *options, const char *what,
                     const struct stale_job_outcome *wanted);

/* Carries the job out twice, with pauses and without, and fails the test unless losses are the reference's to rounding and
 * the runs have the same bits. */
void stale_job_close(const struct job *job, const char *config, uint64_t delay_seed, const char *what,
                     const struct stale_job_outcome *wanted);

#endif
