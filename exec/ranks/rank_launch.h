/* Finds the number of this process among the processes of a run. */
#ifndef SPILLWAY_EXEC_RANKS_RANK_LAUNCH_H
#define SPILLWAY_EXEC_RANKS_RANK_LAUNCH_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum { RANK_LAUNCH_NONE = UINT32_MAX };

struct rank_launch {
    uint32_t rank, count;      /* count 1: there is no other process */
    const char *meet;          /* HOST:PORT; NULL: meet_file */
    char meet_file[PATH_MAX];
};

/*
 * Finds what options tell (RANK_LAUNCH_NONE and NULL: nothing), else what mpirun tells in the environment. Without an
 * address, ranks that mpirun has started on one machine meet by a file in $TMPDIR or /tmp. Errors: STATUS_BAD_INPUT for
 * options that lack each other, or ranks on several machines without an address.
 */
MUST_CHECK enum status rank_launch_find(uint64_t rank, uint64_t count, const char *meet, struct rank_launch *out,
                                        struct error *err);

#endif
