/*
 * All-reduces between devices of this process: seconds by bytes. bench_collectives.py puts them beside Open MPI's.
 *
 * Usage: bench_collectives MEMBERS. Prints "BYTES MEDIAN_S SPREAD" for 1 KiB to 256 MiB: the median of ROUNDS means,
 * and the difference of the slowest and fastest mean over the median.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/order.h"
#include "base/process/clock.h"
#include "exec/network/unit_group.h"

enum { MEMBERS_MAX = 64, ROUNDS = 7, FIRST_BYTES = 1 << 10, LAST_BYTES = 1 << 28 };
static const uint64_t BYTES_OF_A_ROUND = UINT64_C(1) << 27;

struct member {
    struct unit_group *group;
    uint32_t rank;
    float *values;
};

/* Small ones are repeated until a round takes long enough to time. */
static uint64_t repetitions(uint64_t bytes)
{
    const uint64_t count = BYTES_OF_A_ROUND / bytes;
    return count < 1 ? 1 : count > 2000 ? 2000 : count;
}

static double round_s(const struct member *member, uint64_t bytes)
{
    const uint64_t count = repetitions(bytes);
    const double begin_s = clock_s();
    for (uint64_t i = 0; i < count; i++)
        unit_group_sum(member->group, member->rank, member->values, bytes / sizeof(float));
    return (clock_s() - begin_s) / (double)count;
}

static void *run_member(void *argument)
{
    const struct member *member = argument;
    for (uint64_t bytes = FIRST_BYTES; bytes <= LAST_BYTES; bytes *= 4) {
        double seconds[ROUNDS];
        (void)round_s(member, bytes); /* touches the memory */
        for (uint32_t r = 0; r < ROUNDS; r++) seconds[r] = round_s(member, bytes);
        if (member->rank > 0) continue;
        qsort(seconds, ROUNDS, sizeof *seconds, order_double);
        printf("%" PRIu64 " %.9f %.4f\n", bytes, seconds[ROUNDS / 2],
               (seconds[ROUNDS - 1] - seconds[0]) / seconds[ROUNDS / 2]);
        fflush(stdout);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const unsigned long count = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
    struct member members[MEMBERS_MAX];
    pthread_t threads[MEMBERS_MAX];
    struct unit_group *group;
    struct error err = {0};
    if (count < 2 || count > MEMBERS_MAX) {
        fprintf(stderr, "usage: bench_collectives MEMBERS (2 to %d)\n", MEMBERS_MAX);
        return 2;
    }
    if (unit_group_create((uint32_t)count, true, false, &group, &err) != STATUS_OK) {
        fprintf(stderr, "bench_collectives: %s\n", err.text);
        return 3;
    }
    for (uint32_t m = 0; m < count; m++) {
        members[m] = (struct member){.group = group, .rank = m,
                                     .values = calloc(LAST_BYTES / sizeof(float), sizeof(float))};
        if (!members[m].values || pthread_create(&threads[m], NULL, run_member, &members[m]) != 0) return 3;
    }
    for (uint32_t m = 0; m < count; m++) pthread_join(threads[m], NULL);
    for (uint32_t m = 0; m < count; m++) free(members[m].values);
    unit_group_destroy(group);
    return 0;
}
