/*
 * The learning rate depends only on the job and the step's number.
 *
 *     warm-up    steps 1 .. W          lr k / W
 *     constant   after the warm-up     lr
 *     linear     steps W + 1 .. N      lr (floor + (1 - floor) (1 - x))
 *     cosine     steps W + 1 .. N      lr (floor + (1 - floor) (1 + cos(pi x)) / 2)
 *
 * with x = (k - 1 - W) / (N - W). N is by default all steps of the job including earlier runs. The first step after
 * the warm-up has the full rate; no step has rate zero. torch.optim.lr_scheduler's LinearLR and CosineAnnealingLR,
 * chained, and llm.c's schedulers give the same.
 */
#ifndef SPILLWAY_MODELS_JOB_LEARNING_RATE_H
#define SPILLWAY_MODELS_JOB_LEARNING_RATE_H

#include "models/job/job.h"

/* Returns N. */
uint64_t learning_rate_steps(const struct job *job);

/* Steps count from 1 since the training began. */
double learning_rate_at(const struct job *job, uint64_t step);

/* Returns the optimizer with this minibatch's rate; `minibatch` counts from 0 since the training began. */
struct job_optimizer optimizer_at(const struct job *job, uint64_t minibatch);

#endif
