/* Machines, jobs and plans made up for tests of the simulator; closeness of numbers. */
#ifndef SPILLWAY_TESTS_SUPPORT_SIM_SUPPORT_SIM_H
#define SPILLWAY_TESTS_SUPPORT_SIM_SUPPORT_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/walk/plan_build.h"
#include "sim/network/share.h"
#include "sim/sim.h"

/* --- numbers -------------------------------------------------------------------------------- */

/* Random numbers in order from one stream of base/random.h. */
struct sim_test_random {
    uint64_t key;
    uint64_t drawn;
};
uint32_t sim_test_below(struct sim_test_random *random, uint32_t bound);
double sim_test_between(struct sim_test_random *random, double low, double high);

/* Fails the test, with both numbers, unless they agree to a relative 1e-9. */
#define SIM_ASSERT_CLOSE(a, b) sim_test_assert_close(a, b, 0, #a, __FILE__, __LINE__)
/* The same with a difference of 1e-9 * scale allowed. */
#define SIM_ASSERT_NEAR(a, b, scale) sim_test_assert_close(a, b, scale, #a, __FILE__, __LINE__)
void sim_test_assert_close(double a, double b, double scale, const char *what, const char *file,
                           int line);

/* --- the slow solver ------------------------------------------------------------------------ */

struct sim_test_flow {
    const struct sim_path *path;
    double cap; /* used instead of the path's cap */
    double rate;
    bool frozen;
};

bool sim_test_crosses(const struct sim_link *links, const struct sim_path *path, uint32_t link_dir);
double sim_test_weight(const struct sim_link *links, const struct sim_path *path, uint32_t link_dir);
double sim_test_load(const struct sim_link *links, const struct sim_test_flow *flows,
                     uint32_t count, uint32_t link_dir);

/* Textbook progressive filling, flow by flow: raises every rate that is not frozen by the largest step that breaks
 * no cap and no link; freezes the flows that cannot go on; repeats. The flows of a priority follow after all flows
 * of higher priorities are frozen. */
void sim_test_slow_share(const struct sim_link *links, uint32_t link_count,
                         struct sim_test_flow *flows, uint32_t count);

/* --- machines ------------------------------------------------------------------------------- */

enum { SIM_TEST_LINKS_MAX = 512, SIM_TEST_TYPES_MAX = 2 };

/* Makes `devices` devices of 1 TB without links; back end "cuda" (each a domain) or "host". */
void sim_test_machine(struct hardware *out, const char *backend, uint32_t devices);
uint32_t sim_test_link(struct hardware *hardware, double bytes_per_s, double latency_s,
                       bool duplex);
/* Adds the next link on the way from the host to the device. */
void sim_test_connect(struct hardware *hardware, uint32_t device, uint32_t link);

struct sim_test_law {
    double compute_by_compute, compute_by_copy, copy_by_compute, copy_by_copy, reference, compute_by_collective;
};
void sim_test_interfere(struct hardware *hardware, uint32_t type, struct sim_test_law law);

/* --- plans ---------------------------------------------------------------------------------- */

/* Takes the machine over. Makes `jobs` jobs of one opaque layer each, named job-0, job-1 ... */
struct plan_builder *sim_test_builder(struct hardware *hardware, uint32_t jobs);

uint32_t sim_test_work(struct plan_builder *builder, uint64_t ns);

/* One unit on buffers of its own: a copy in, a computation, a copy out; parts of size 0 are left out. */
struct sim_test_unit {
    uint32_t job, number;
    uint64_t in_bytes, compute_ns, out_bytes;
};
uint32_t sim_test_unit(struct plan_builder *builder, const struct sim_test_unit *unit);

/* Appends a task; its memory is the device's `slot`-th range of 1 GB. */
void sim_test_run_on(struct plan_builder *builder, uint32_t unit, uint32_t device, uint32_t slot);

/* Makes the plan and destroys the builder. */
void sim_test_finish(struct plan_builder *builder, struct plan *out);

/* Outcome of a sim_run() with spans that must succeed; the trace passes trace_check(). */
struct sim_test_outcome {
    struct sim_result result;
    struct trace trace;
    struct plan plan; /* by sim_test_run() only */
};
void sim_test_simulate(const struct plan *plan, struct sim_test_outcome *out);
/* Finishes the builder's plan, and simulates it. */
void sim_test_run(struct plan_builder *builder, struct sim_test_outcome *out);
void sim_test_release(struct sim_test_outcome *outcome);

/* Returns the makespan of the builder's plan. Releases everything. */
double sim_test_makespan(struct plan_builder *builder);

#endif
