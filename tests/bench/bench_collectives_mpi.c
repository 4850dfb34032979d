/* Open MPI's all-reduces, measured as bench_collectives.c measures ours. Usage: mpirun -n MEMBERS
 * bench_collectives_mpi */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

enum { ROUNDS = 7, FIRST_BYTES = 1 << 10, LAST_BYTES = 1 << 28, ROUND_BYTES = 1 << 27 };

static double round_s(float *values, uint64_t bytes)
{
    uint64_t count = ROUND_BYTES / bytes;
    count = count < 1 ? 1 : count > 2000 ? 2000 : count;
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin_s = MPI_Wtime();
    for (uint64_t i = 0; i < count; i++)
        MPI_Allreduce(MPI_IN_PLACE, values, (int)(bytes / sizeof *values), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return (MPI_Wtime() - begin_s) / (double)count;
}

static int compare_seconds(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    float *values = calloc(LAST_BYTES / sizeof(float), sizeof(float));
    if (!values) MPI_Abort(MPI_COMM_WORLD, 3);
    for (uint64_t bytes = FIRST_BYTES; bytes <= LAST_BYTES; bytes *= 4) {
        double seconds[ROUNDS];
        (void)round_s(values, bytes);
        for (int r = 0; r < ROUNDS; r++) seconds[r] = round_s(values, bytes);
        if (rank > 0) continue;
        qsort(seconds, ROUNDS, sizeof *seconds, compare_seconds);
        printf("%" PRIu64 " %.9f %.4f\n", bytes, seconds[ROUNDS / 2],
               (seconds[ROUNDS - 1] - seconds[0]) / seconds[ROUNDS / 2]);
        fflush(stdout);
    }
    free(values);
    MPI_Finalize();
    return 0;
}
