/*
 * Ready jobs: the highest rank first, then the lower number.
 *
 * A decision removes the first job, and the next event usually adds one. So the first place stays open: the new job
 * sinks from there, and most jobs move only once. If none comes before the next decision, the last job takes the place.
 *
 *     take job 4        ( )            job 6 comes, rank 3     (9)        5 above 3, 4 above 3: both move up
 *                   (9)     (7)                            (5)     (7)
 *                 (5) (2) (6) (1)                        (4) (2) (6) (1) ...
 *
 * Source: Williams, "Algorithm 232: Heapsort", CACM 7(6), 1964; sinking to the bottom first, then up: Floyd 1964
 * (Knuth, The Art of Computer Programming, vol. 3, sec. 5.2.3, exercise 18). A new job has just run and ranks among the
 * last, so it rarely moves up again.
 */
#ifndef SPILLWAY_SIM_ENGINE_READY_H
#define SPILLWAY_SIM_ENGINE_READY_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

struct sim_ready_entry {
    uint64_t key; /* decreases as the rank increases */
    uint64_t job;
};

struct sim_ready {
    struct sim_ready_entry *entries; /* a heap in [1, count]. A job's place is searched for: storing it would cost a
                                      * write to another cache line per move */
    uint32_t count;                  /* includes the open place */
    bool open;                       /* [1] is open, because the first job was taken */
};

/* Jobs are [0, job_count). The heap lives as long as `arena` and allocates nothing later. */
MUST_CHECK enum status sim_ready_create(struct arena *arena, uint32_t job_count, struct sim_ready *out,
                                        struct error *err);

/* The job is not in the heap; `rank` may be infinite, not NaN. O(log jobs). */
void sim_ready_add(struct sim_ready *ready, uint32_t job, double rank);

/* Removes a job that is in the heap. O(1) for the first one, else O(jobs). */
void sim_ready_remove(struct sim_ready *ready, uint32_t job);

/* The heap must not be empty. O(1), or O(log jobs) after the first was removed. */
uint32_t sim_ready_first(struct sim_ready *ready);

/* Returns the first job unless a better one comes, in O(1). The heap must not be empty. */
uint32_t sim_ready_next(const struct sim_ready *ready);

#endif
