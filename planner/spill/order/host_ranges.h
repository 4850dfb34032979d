/*
 * Ranges of host memory that jobs have in turn, for schedule_builder.h.
 *
 * Each host's memory is cut into segments, free since some time or owned by a job. A job gets the neighbouring free
 * segments that are free first, and gives them back as one.
 */
#ifndef SPILLWAY_PLANNER_SPILL_ORDER_HOST_RANGES_H
#define SPILLWAY_PLANNER_SPILL_ORDER_HOST_RANGES_H

#include "planner/plan.h"

struct host_segment {
    uint64_t first, end; /* of the memory of all hosts, one after the other */
    double free_s;       /* start of the free time, also in the future */
    uint32_t job;        /* PLAN_NONE: free */
};

struct host_ranges {
    struct host_segment *segments; /* ascending; the owner of the struct allocates host_ranges_most() entries */
    uint32_t count;
    uint64_t room;                 /* bytes of each host */
};

/* Returns the most segments: each range is allocated once and cuts one free segment in two. */
static inline uint32_t host_ranges_most(uint32_t hosts, uint32_t jobs) { return hosts + 2 * jobs; }

/* Frees all memory from 0 s on. */
void host_ranges_begin(struct host_ranges *ranges, uint32_t hosts, uint64_t room);

/* Finds when `bytes` contiguous bytes are free on a host, in *ready_s. Returns false when a job must end first. */
bool host_ranges_find(const struct host_ranges *ranges, uint32_t host, uint64_t bytes, double *ready_s);

/* Allocates the bytes that host_ranges_find() finds. Returns the offset in the host's memory; *ready_s as there. */
uint64_t host_ranges_allocate(struct host_ranges *ranges, uint32_t host, uint64_t bytes, uint32_t job, double *ready_s);

/* Frees the job's range from free_s on. Later requests are for horizon_s or later, so older free segments merge. */
void host_ranges_give_back(struct host_ranges *ranges, uint32_t job, double free_s, double horizon_s);

#endif
