/* Evaluations of a job on held-out data: when, how many, the best. */
#ifndef SPILLWAY_MODELS_JOB_EVALUATION_H
#define SPILLWAY_MODELS_JOB_EVALUATION_H

#include "models/job/job.h"

/* Returns true if an evaluation follows `minibatch`, counted from 0 among the remaining ones. Evaluations follow
 * every `every`-th minibatch since the training began, and the last one. */
bool evaluation_follows(const struct job *job, uint64_t minibatch);

/* Counts evaluations of the remaining minibatches; 0 without. */
uint64_t evaluation_count(const struct job *job);

/* The mean loss of held-out minibatches. */
struct evaluation_progress {
    uint64_t step; /* since the training began, from 1 */
    double loss;   /* may be NaN or infinite */
};

/* Returns the first with the lowest finite loss, or EVALUATION_NONE. */
#define EVALUATION_NONE UINT64_MAX
uint64_t evaluation_best(const struct evaluation_progress *all, uint64_t count);

#endif
