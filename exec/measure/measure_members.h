/*
 * Collectives between threads of this process, each of which stands for a device. Sums, copies and meetings are those
 * of the executor; an all-reduce is as in tensor groups.
 */
#ifndef SPILLWAY_EXEC_MEASURE_MEASURE_MEMBERS_H
#define SPILLWAY_EXEC_MEASURE_MEASURE_MEMBERS_H

#include <stdint.h>

#include "base/error.h"
#include "models/hardware/collective_kind.h"

enum { MEASURE_MEMBERS_MAX = 8 };

/* `bytes` are as in models/cost/collective.h, a multiple of 64 per member; memory[i] has as many. Shares are in
 * place. */
struct measure_members {
    enum collective_kind kind; /* not all-to-all */
    uint32_t members;          /* of a send 2: from the first to the second */
    uint64_t bytes;
    uint32_t repetitions;
    char *memory[MEASURE_MEMBERS_MAX];
};

/* Carries the collective out, `repetitions` times. *seconds is the mean from the moment when the last member has come
 * to the end of a member. Errors: STATUS_NO_MEMORY, STATUS_DEVICE without threads. */
MUST_CHECK enum status measure_members_run(const struct measure_members *about, double *seconds, struct error *err);

#endif
