/*
 * The ranks of a sweep that mpirun started; without mpirun there is one.
 *
 * Only a sweep started by mpirun loads the module that links MPI (cli/sweep/mpi/ranks_mpi.c), so nothing else needs MPI
 * or waits for its start. Rank 0 distributes the inputs, receives results and writes them.
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
    void *library; /* NULL: one rank, no MPI */
    const struct sweep_ranks_module *module;
};

/*
 * Finds the rank of this process. Errors: STATUS_DEVICE when mpirun started several ranks and the module is missing or
 * fails. After success the caller must call sweep_ranks_end(), which returns when all ranks have called it.
 */
MUST_CHECK enum status sweep_ranks_begin(struct sweep_ranks *out, struct error *err);
void sweep_ranks_end(struct sweep_ranks *ranks);

/* Copies rank 0's bytes to all ranks. All ranks call it. */
void sweep_ranks_share(const struct sweep_ranks *ranks, void *data, size_t bytes);

/* Sends a message to rank 0 from another rank. */
void sweep_ranks_tell(const struct sweep_ranks *ranks, const void *data, size_t bytes);

/* Receives a message of `bytes` on rank 0. Returns at once; false: there is none now. */
bool sweep_ranks_hear(const struct sweep_ranks *ranks, void *data, size_t bytes);

#endif
