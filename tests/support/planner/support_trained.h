/* What a test's job trains: frozen tensors and adapters, without a jobs file. */
#ifndef SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_TRAINED_H
#define SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_TRAINED_H

#include "base/arena.h"
#include "models/job/job.h"

/* Sets job->network.trained as job->freeze and job->adapter say. Aborts with the error's line if they cannot be. */
void support_train_only(struct job *job, struct arena *arena);

#endif
