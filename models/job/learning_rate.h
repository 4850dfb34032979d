/*
 * The learning rate of a step: a function of the job and the step's number, and of nothing else, so
 * that an update is the same wherever and whenever it is carried out.
 *
 *     warm-up    steps 1 .. W          lr k / W
 *     constant   behind it             lr
 *     linear     steps W + 1 .. N      lr (floor + (1 - floor) (1 - x))
 *     cosine     steps W + 1 .. N      lr (floor + (1 - floor) (1 + cos(pi x)) / 2)
 *
 * with x = (k - 1 - W) / (N - W) of N steps, those of earlier runs included, or of as many as the schedule names: the first step behind
 * the warm-up has the full rate, and no step has a rate of zero, not even with a floor of zero.
 * torch.optim.lr_scheduler's LinearLR and CosineAnnealingLR, chained, give the same rates, and so do
 * llm.c's schedulers.
 */
#ifndef SPILLWAY_MODELS_LEARNING_RATE_H
#define SPILLWAY_MODELS_LEARNING_RATE_H

#include "models/job/job.h"

/* Returns N: the steps that the schedule names, or else all of the job up to its end. */
uint64_t learning_rate_steps(const struct job *job);

/* `step` from 1 on, counted since the training began. */
double learning_rate_at(const struct job *job, uint64_t step);

/* The job's optimizer as the update of this minibatch (from 0, counted likewise) needs it: with that
 * step's rate. */
struct optimizer optimizer_at(const struct job *job, uint64_t minibatch);

#endif
