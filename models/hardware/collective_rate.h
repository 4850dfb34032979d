/*
 * Measured seconds of collectives, by kind, number of members and size.
 *
 *     "collectives": [{"kind": "all-reduce", "members": 2, "points": [[1024, 2e-6, 0.1], ...]},
 *                     {"kind": "all-reduce", "members": 2, "computing": 1, "points": [...]}, ...]
 */
#ifndef SPILLWAY_MODELS_HARDWARE_COLLECTIVE_RATE_H
#define SPILLWAY_MODELS_HARDWARE_COLLECTIVE_RATE_H

#include "models/hardware/collective_kind.h"
#include "models/hardware/hardware.h"

enum { COLLECTIVE_RATES_MAX = 1024 };

/* The members are devices of one type on one host. Sizes are as in models/cost/collective.h. */
struct collective_rate {
    uint32_t kind;      /* enum collective_kind */
    uint32_t members;   /* at least 2 */
    uint32_t computing; /* other devices that compute at the same time */
    uint32_t processes; /* a device in each; 0: the devices of one process */
    const struct copy_point *points; /* from the moment when the last member has come; sorted by bytes */
    uint32_t point_count;            /* at least 1 */
};

/* Returns true if both are of the same kind under the same conditions. */
bool collective_rate_alike(const struct collective_rate *a, const struct collective_rate *b);

/*
 * Finds the rates of groups of `members` devices of a process without other computations: both[0] has at most that many
 * members, both[1] at least. They are equal where that number was measured. Returns false for a number outside of the
 * measured ones.
 */
bool collective_rate_around(const struct device_type *type, uint32_t kind, uint32_t members,
                            const struct collective_rate *both[2]);

#endif
