/* Random data of a minibatch, as a run would give it to passes. */
#ifndef SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_BATCH_H
#define SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_BATCH_H

#include "models/job/job.h"

/* Fills job_batch_bytes(). Bert's labels are of a third of the tokens. */
void support_batch_fill(const struct job *job, int32_t *batch, uint64_t minibatch);

#endif
