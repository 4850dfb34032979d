/* The last minibatch is always evaluated: the loss of the final weights matters most. */
#include "models/job/evaluation.h"

#include <assert.h>
#include <math.h>

bool evaluation_follows(const struct job *job, uint64_t minibatch)
{
    assert(minibatch < job->minibatches);
    if (job->evaluation.every == 0 || job_makes_outputs(job)) return false;
    return (job->first_minibatch + minibatch + 1) % job->evaluation.every == 0 ||
           minibatch + 1 == job->minibatches;
}

uint64_t evaluation_count(const struct job *job)
{
    uint64_t every = job->evaluation.every, first = job->first_minibatch;
    uint64_t end = first + job->minibatches;
    if (every == 0 || job_makes_outputs(job)) return 0;
    return end / every - first / every + (end % every != 0);
}

uint64_t evaluation_best(const struct evaluation_progress *all, uint64_t count)
{
    uint64_t best = EVALUATION_NONE;
    for (uint64_t i = 0; i < count; i++)
        if (isfinite(all[i].loss) && (best == EVALUATION_NONE || all[i].loss < all[best].loss)) best = i;
    return best;
}
