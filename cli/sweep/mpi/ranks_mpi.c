/* A module of its own, loaded by cli/sweep/ranks.c under mpirun. An error of MPI ends the job, as is MPI's default. */
#include <mpi.h>

#include "cli/sweep/ranks_module.h"

enum { TAG_RESULT = 1 };

static bool begin(int *rank, int *count)
{
    return MPI_Init(NULL, NULL) == MPI_SUCCESS && MPI_Comm_rank(MPI_COMM_WORLD, rank) == MPI_SUCCESS &&
           MPI_Comm_size(MPI_COMM_WORLD, count) == MPI_SUCCESS;
}

static void end(void) { MPI_Finalize(); }

static void share(void *data, int bytes) { MPI_Bcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD); }

static void tell(const void *data, int bytes) { MPI_Send(data, bytes, MPI_BYTE, 0, TAG_RESULT, MPI_COMM_WORLD); }

static bool hear(void *data, int bytes)
{
    int there = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, TAG_RESULT, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    if (there) MPI_Recv(data, bytes, MPI_BYTE, MPI_ANY_SOURCE, TAG_RESULT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return there != 0;
}

const struct sweep_ranks_module spillway_ranks_module = {begin, end, share, tell, hear};
