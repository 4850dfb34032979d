/* Parallel jobs of which a policy decides, for tests that dispatch them live: ways to carry them out, and plans. */
#ifndef SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_LIVE_JOBS_H
#define SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_LIVE_JOBS_H

#include "planner/plan.h"

enum { LIVE_JOBS = 3, LIVE_JOBS_STEPS = 12, LIVE_JOBS_DEVICES = 6 }; /* at most, but for the devices */

/* The first LIVE_JOBS_SYNCHRONOUS are; the first LIVE_JOBS_WITH_CHECKPOINTS can have checkpoints. */
enum { LIVE_JOBS_WAYS = 15, LIVE_JOBS_SYNCHRONOUS = 10, LIVE_JOBS_WITH_CHECKPOINTS = 13 };
extern const struct parallel live_jobs_ways[LIVE_JOBS_WAYS];

struct live_job {
    uint32_t way, first_device;
    bool evaluated; /* its best weights are kept */
    double clip, rate; /* rate 0: 0.01 */
};

struct live_jobs {
    uint32_t count;
    struct live_job jobs[LIVE_JOBS];
    bool fixed; /* only one order */
};

/* Draws jobs on devices that they share in part. */
struct live_jobs live_jobs_draw(uint64_t key);

/* Plans the jobs. `done`: the minibatches of each that are over; NULL: none. */
void live_jobs_plan(const struct live_jobs *s, const uint64_t *done, struct plan *plan);

#endif
