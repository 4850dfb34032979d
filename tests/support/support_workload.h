/*
 * Workload W(G, M, S, B): shards of many models copied through host links that devices share.
 *
 *     devices  G, in groups of four; each has a link of 12e9 B/s for each direction, each group one of
 *              20e9 B/s that both directions cross; no latency; two slots per device
 *     models   M, of S shards, for B minibatches: shards 0 .. S-1 forward, then S-1 .. 0 backward
 *     shard s of model m
 *              200e6 + 200e3 ((7919 m + 104729 s) mod 1000) bytes, copied in and out by each task;
 *              80000 + 80 ((15485863 m + 32452843 s) mod 1000) us forward, twice that backward
 *
 * A task is over, and its slot free, when its copy out ends. Policy: whenever there is a free slot and
 * an idle model, the one with most compute left goes to the device with most free slots; ties to the
 * lowest index.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_SUPPORT_WORKLOAD_H
#define SPILLWAY_TESTS_SUPPORT_SUPPORT_WORKLOAD_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { WORKLOAD_GROUP = 4, WORKLOAD_SLOTS = 2 };

struct workload {
    uint32_t devices, models, shards, minibatches;
};

static inline uint64_t workload_bytes(uint32_t m, uint32_t s)
{
    return 200000000 + 200000 * ((UINT64_C(7919) * m + UINT64_C(104729) * s) % 1000);
}

static inline uint64_t workload_forward_us(uint32_t m, uint32_t s)
{
    return 80000 + 80 * ((UINT64_C(15485863) * m + UINT64_C(32452843) * s) % 1000);
}

/* Returns the shard of the pass-th task of a minibatch. */
static inline uint32_t workload_shard(const struct workload *w, uint32_t pass)
{
    return pass < w->shards ? pass : 2 * w->shards - 1 - pass;
}

/* Returns the number of activities, three per task. */
static inline uint64_t workload_activities(const struct workload *w)
{
    return UINT64_C(6) * w->models * w->shards * w->minibatches;
}

#ifdef __cplusplus
}
#else

#include "models/hardware/hardware.h"
#include "planner/solve/instance/instance.h"

/* Make W; release with hardware_release() and instance_release(). Ticks are microseconds. */
void workload_machine(uint32_t devices, struct hardware *out);
void workload_instance(const struct workload *w, struct instance *out);

#endif

#endif
