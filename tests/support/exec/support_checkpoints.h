/* Compares checkpoints of a job. */
#ifndef SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_CHECKPOINTS_H
#define SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_CHECKPOINTS_H

#include "models/network/network.h"

/* Fails if a tensor of job-0's weights in two folders' checkpoints after `step` minibatches differs by more than
 * rounding: by 1e-5 of its norm. `what` begins the message. */
void support_checkpoints_compare(const struct network *network, const char *wanted, const char *found, uint64_t step,
                                 const char *what);

/* Compares the ways of all tensors from one step's checkpoint to another's: fails where they differ by more than
 * `share` of the wanted way, or by rounding. */
void support_checkpoints_compare_ways(const struct network *network, const char *wanted, const char *found,
                                      uint64_t first, uint64_t last, double share, const char *what);

#endif
