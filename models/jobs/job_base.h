/*
 * Bases: frozen weights that jobs have in common.
 *
 * Jobs that train adapters of one network, or freeze the same tensors of it, differ only in the part that they train.
 * Where such jobs share their base, a plan has its frozen weights once, in buffers of the first of them
 * (BUFFER_BASE): in host memory, and on a device while the jobs go through a shard one after the other. Their states
 * have the rest.
 */
#ifndef SPILLWAY_MODELS_JOBS_JOB_BASE_H
#define SPILLWAY_MODELS_JOBS_JOB_BASE_H

#include "models/job/job.h"

enum { JOB_BASE_TEXT = 200 };

/* Returns true if something of the job's network is frozen. */
static inline bool job_has_base(const struct job *job)
{
    return job->network.trained != NULL;
}

/* Returns why the frozen weights of two jobs are not known to be equal, in `text`; NULL: they are equal. */
const char *job_base_differs(const struct job *a, const struct job *b, char text[JOB_BASE_TEXT]);

/* Returns a number that is equal for jobs with equal frozen weights, and else, in all likelihood, not; 0: nothing is
 * frozen. */
uint64_t job_base_fingerprint(const struct job *job);

/* Returns the bytes of these layers' frozen weights; 0 for a job that shares no base. */
uint64_t job_base_bytes(const struct job *job, uint64_t first_layer, uint64_t layer_count);

/* Returns the first of the jobs that shares the job's base, which may be the job; UINT32_MAX: it shares none. */
static inline uint32_t job_base_owner(const struct job_set *jobs, uint32_t job)
{
    return jobs->jobs[job].shares_base ? jobs->jobs[job].base_owner : UINT32_MAX;
}

/* Returns the seed of a job's frozen weights: with a base, and no file, one that follows from the base's name. */
uint64_t job_base_seed(const struct job *job);

#endif
