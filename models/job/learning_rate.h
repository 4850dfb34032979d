/*
 * The learning rate of a step. It depends only on the job and the step's number, so an update is the same wherever
 * and whenever it is carried out.
 *
 *     warm-up    steps 1 .. W          lr k / W
 *     constant   after the warm-up     lr
 *     linear     steps W + 1 .. N      lr (floor + (1 - floor) (1 - x))
 *     cosine     steps W + 1 .. N      lr (floor + (1 - floor) (1 + cos(pi x)) / 2)
 *
 * with x = (k - 1 - W) / (N - W). N is the number of steps in the schedule, by default all steps of the job including
 * earlier runs. The first step after the warm-up has the full rate. No step has rate zero, even if the floor is zero.
 * torch.optim.lr_scheduler's LinearLR and CosineAnnealingLR, chained, give the same rates, and so do llm.c's
 * schedulers.
 */
#ifndef SPILLWAY_MODELS_JOB_LEARNING_RATE_H
#define SPILLWAY_MODELS_JOB_LEARNING_RATE_H

#include "models/job/job.h"

/* Returns N: the steps of the schedule, or by default all steps of the job. */
uint64_t learning_rate_steps(const struct job *job);

/* Returns the rate of a step, which counts from 1 since the training began. */
double learning_rate_at(const struct job *job, uint64_t step);

/* Returns the job's optimizer with the learning rate of this minibatch's step. `minibatch` counts from 0 since the
 * training began. */
struct job_optimizer optimizer_at(const struct job *job, uint64_t minibatch);

#endif
