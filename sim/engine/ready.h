/*
 * Jobs that are ready, by rank: the highest first, among equal ranks the lower job.
 *
 * A decision takes the first job out, and what ends next puts one in. So the first one's place stays open: the
 * job that comes sinks from there, past those that go before it, and every job but a few moves once. Where
 * nobody comes before the next decision the last one takes the place, as in any heap.
 *
 *     take job 4        ( )            job 6 comes, rank 3     (9)        5 above 3, 4 above 3: up they go
 *                   (9)     (7)                            (5)     (7)
 *                 (5) (2) (6) (1)                        (4) (2) (6) (1) ...
 *
 * Source: Williams, "Algorithm 232: Heapsort", CACM 7(6), 1964; sinking to the bottom first, then up: Floyd 1964
 * (Knuth, The Art of Computer Programming, vol. 3, sec. 5.2.3, exercise 18). What comes has just been at its turn
 * and is among the last of all, so it hardly ever goes up again.
 */
#ifndef SPILLWAY_SIM_READY_H
#define SPILLWAY_SIM_READY_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

struct sim_ready_entry {
    uint64_t key; /* falls with the rank */
    uint64_t job;
};

struct sim_ready {
    struct sim_ready_entry *entries; /* a heap in [1, count]; where a job lies is searched for, as noting it took a
                                        write to another line for each entry that moves */
    uint32_t count;                  /* that of the open place included */
    bool open;                       /* [1] is: the first has been taken */
};

/* Room for jobs [0, job_count). Lives as long as `arena`; allocates nothing afterwards. Errors:
 * STATUS_NO_MEMORY. */
MUST_CHECK enum status sim_ready_create(struct arena *arena, uint32_t job_count, struct sim_ready *out,
                                        struct error *err);

/* The job is not ready yet; `rank` is a number, which may be infinite. O(log jobs). */
void sim_ready_add(struct sim_ready *ready, uint32_t job, double rank);

/* The job is ready. O(1) for the first one, else O(jobs). */
void sim_ready_remove(struct sim_ready *ready, uint32_t job);

/* There is one. O(1), or O(log jobs) after the first was removed. */
uint32_t sim_ready_first(struct sim_ready *ready);

/* The first, if no better one comes: at any time, in O(1). There is one. */
uint32_t sim_ready_next(const struct sim_ready *ready);

#endif
