/*
 * The ranks of a sweep that mpirun started, else one. Only then the module that links MPI (cli/sweep/mpi/ranks_mpi.c)
 * is loaded. Rank 0 distributes inputs, receives results and writes them.
 */
#ifndef SPILLWAY_CLI_SWEEP_RANKS_H
#define SPILLWAY_CLI_SWEEP_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "cli/sweep/ranks_module.h"

struct sweep_ranks {
    uint32_t rank, count;
    void *library; /* NULL: one rank */
    const struct sweep_ranks_module *module;
};

/*
 * Finds the rank of this process. Errors: STATUS_DEVICE when mpirun started several ranks and the module is missing or
 * fails. After success the caller must call sweep_ranks_end(), which waits for all ranks.
 */
MUST_CHECK enum status sweep_ranks_begin(struct sweep_ranks *out, struct error *err);
void sweep_ranks_end(struct sweep_ranks *ranks);

/* Copies rank 0's bytes to all ranks, which all call it. */
void sweep_ranks_share(const struct sweep_ranks *ranks, void *data, size_t bytes);

/* Sends a message to rank 0 from another rank. */
void sweep_ranks_tell(const struct sweep_ranks *ranks, const void *data, size_t bytes);

/* Receives `bytes` on rank 0; returns false at once if there is no message. */
bool sweep_ranks_hear(const struct sweep_ranks *ranks, void *data, size_t bytes);

#endif
