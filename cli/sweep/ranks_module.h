/* Functions of the MPI module for cli/sweep/ranks.c. */
#ifndef SPILLWAY_CLI_SWEEP_RANKS_MODULE_H
#define SPILLWAY_CLI_SWEEP_RANKS_MODULE_H

#include <stdbool.h>
#include <stddef.h>

#define SWEEP_RANKS_MODULE "spillway-mpi.so"
#define SWEEP_RANKS_SYMBOL "spillway_ranks_module"

struct sweep_ranks_module {
    bool (*begin)(int *rank, int *count);
    void (*end)(void);
    void (*share)(void *data, int bytes);
    void (*tell)(const void *data, int bytes);
    bool (*hear)(void *data, int bytes);
};

#endif
