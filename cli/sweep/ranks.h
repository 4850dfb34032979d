/*
 * The ranks of a sweep that mpirun started; without it there is one.
 *
 * Only a sweep that was started by mpirun loads the module that is linked with MPI (cli/sweep/mpi/ranks_mpi.c), so that nothing
 * else needs MPI or waits for its start. Rank 0 hands in what all have to know, hears results and writes them.
 */
#ifndef SPILLWAY_SWEEP_RANKS_H
#define SPILLWAY_SWEEP_RANKS_H

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
 * Find out who this is. Errors: STATUS_DEVICE when mpirun started several and the module is missing or fails. Without
 * an error sweep_ranks_end() must follow; no rank returns from it before all are there.
 */
MUST_CHECK enum status sweep_ranks_begin(struct sweep_ranks *out, struct error *err);
void sweep_ranks_end(struct sweep_ranks *ranks);

/* Everybody gets rank 0's bytes. All ranks call it. */
void sweep_ranks_share(const struct sweep_ranks *ranks, void *data, size_t bytes);

/* To rank 0, from another. */
void sweep_ranks_tell(const struct sweep_ranks *ranks, const void *data, size_t bytes);

/* Rank 0: is there a message of `bytes`? Returns at once; false: none now. */
bool sweep_ranks_hear(const struct sweep_ranks *ranks, void *data, size_t bytes);

#endif
