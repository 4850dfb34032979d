/*
 * Ranges of host memory that jobs have one after the other: part of schedule_builder.h.
 *
 * The memory of each host is cut into segments, each free since some time or a job's. A job takes the neighbouring free
 * segments that are free first, and gives its range back as a free segment.
 */
#ifndef SPILLWAY_PLANNER_HOST_RANGES_H
#define SPILLWAY_PLANNER_HOST_RANGES_H

#include "planner/plan.h"

struct host_segment {
    uint64_t first, end; /* of the memory of all hosts, one behind the other */
    double free_s;       /* since when it is free, or will be */
    uint32_t job;        /* PLAN_NONE: it is free */
};

struct host_ranges {
    struct host_segment *segments; /* ascending; whoever has the struct has this, host_ranges_most() entries */
    uint32_t count;
    uint64_t room;                 /* bytes of each host */
};

/* Segments that there can be: each range is taken once and cuts one free segment in two. */
static inline uint32_t host_ranges_most(uint32_t hosts, uint32_t jobs) { return hosts + 2 * jobs; }

/* All is free from 0 s on. */
void host_ranges_begin(struct host_ranges *ranges, uint32_t hosts, uint64_t room);

/* When `bytes` in a row could be had on a host, in *ready_s. False: not before a job ends of those that have some. */
bool host_ranges_find(const struct host_ranges *ranges, uint32_t host, uint64_t bytes, double *ready_s);

/* Takes them, which host_ranges_find() has found. Returns the offset in the host's memory; *ready_s as there. */
uint64_t host_ranges_allocate(struct host_ranges *ranges, uint32_t host, uint64_t bytes, uint32_t job, double *ready_s);

/* The job's range is free from free_s on. Nothing will be asked for before horizon_s, so that free segments older than that
 * are one with their neighbours. */
void host_ranges_give_back(struct host_ranges *ranges, uint32_t job, double free_s, double horizon_s);

#endif
