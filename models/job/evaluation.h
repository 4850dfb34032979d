/* When a job is evaluated on held-out data: functions of the job alone, like its learning rate. */
#ifndef SPILLWAY_MODELS_EVALUATION_H
#define SPILLWAY_MODELS_EVALUATION_H

#include "models/job/job.h"

/* Is the job evaluated behind this minibatch (from 0, of those that are left)? Behind every `every`-th
 * since the training began and behind the last. */
bool evaluation_follows(const struct job *job, uint64_t minibatch);

/* How many evaluations the minibatches that are left have; 0: none is asked for. */
uint64_t evaluation_count(const struct job *job);

/* The mean loss of a job's held-out minibatches. */
struct evaluated {
    uint64_t step; /* since the training began, from 1 */
    double loss;   /* may be NaN or infinite */
};

/* Which of them is the best: the first with the lowest finite loss; or EVALUATION_NONE. */
#define EVALUATION_NONE UINT64_MAX
uint64_t evaluation_best(const struct evaluated *all, uint64_t count);

#endif
