/* Kinds of collectives; names in collective_rate.c. */
#ifndef SPILLWAY_MODELS_HARDWARE_COLLECTIVE_KIND_H
#define SPILLWAY_MODELS_HARDWARE_COLLECTIVE_KIND_H

enum collective_kind {
    COLLECTIVE_ALL_REDUCE,
    COLLECTIVE_REDUCE_SCATTER,
    COLLECTIVE_ALL_GATHER,
    COLLECTIVE_BROADCAST,
    COLLECTIVE_ALL_TO_ALL,
    COLLECTIVE_SEND, /* from one member to another */
    COLLECTIVE_KIND_COUNT
};
extern const char *const collective_kind_names[COLLECTIVE_KIND_COUNT]; /* "all-reduce", ... */

#endif
