/* Bases are compared by fingerprints, so a thousand jobs take a thousand walks over a network. */
#include "planner/spill/shared/shared_base.h"

#include "base/try.h"
#include "models/jobs/job_base.h"

static enum status check_job(const struct job *job, struct error *err)
{
    if (parallel_is_set(&job->parallel))
        return error_set(err, STATUS_BAD_INPUT, "policy 'shared-base' for job '%s', which is a parallel job",
                         job->name);
    if (job->device_count > 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "policy 'shared-base' for job '%s', which has devices of its own (expected no 'devices')",
                         job->name);
    if (job_has_base(job)) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT,
                     "policy 'shared-base' for job '%s', which trains all of its network (expected 'adapter' or "
                     "'freeze')",
                     job->name);
}

/* Finds the first job with an equal fingerprint, for each job. */
static void find_first(const uint64_t *prints, uint32_t count, uint32_t *first)
{
    for (uint32_t j = 0; j < count; j++) {
        first[j] = j;
        for (uint32_t i = 0; i < j && first[j] == j; i++)
            if (first[i] == i && prints[i] == prints[j]) first[j] = i;
    }
}

enum status shared_base_mark(struct job_set *jobs, struct error *err)
{
    struct arena scratch = {0};
    uint64_t *prints = NULL;
    uint32_t *first = NULL;
    enum status status = ARENA_NEW(&scratch, jobs->count, prints, err);
    if (!status) status = ARENA_NEW(&scratch, jobs->count, first, err);
    for (uint32_t j = 0; j < jobs->count && !status; j++) {
        status = check_job(&jobs->jobs[j], err);
        if (!status) prints[j] = job_base_fingerprint(&jobs->jobs[j]);
    }
    if (!status) find_first(prints, jobs->count, first);
    for (uint32_t j = 0; j < jobs->count && !status; j++) {
        jobs->jobs[j].shares_base = true;
        jobs->jobs[j].base_owner = first[j];
    }
    arena_release(&scratch);
    return status;
}

enum status shared_base_owners(const struct job_set *jobs, struct arena *arena, uint32_t **out, struct error *err)
{
    TRY(ARENA_NEW(arena, jobs->count, *out, err));
    for (uint32_t j = 0; j < jobs->count; j++) (*out)[j] = job_base_owner(jobs, j);
    return STATUS_OK;
}
