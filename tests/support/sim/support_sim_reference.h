/*
 * A second simulator: slow, naive, and independent of sim/. It shares only the plan's tables and models/cost/cost.h.
 *
 * It expands all operations and compares each with every earlier one to find the operations that it waits for (rule 2
 * of plan.h as it is written). It advances all running operations from one change to the next with rates computed flow
 * by flow.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_SIM_SUPPORT_SIM_REFERENCE_H
#define SPILLWAY_TESTS_SUPPORT_SIM_SUPPORT_SIM_REFERENCE_H

#include "tests/support/sim/support_sim.h"

enum { REF_OPS_MAX = 700, REF_DEVICES_MAX = 6, REF_LINK_DIRS_MAX = 64, REF_ACCESSES_MAX = 16 };

enum { REF_P2P = REF_DEVICES_MAX * 2 + 2, REF_PATHS_MAX = REF_P2P + REF_DEVICES_MAX * REF_DEVICES_MAX };

enum ref_state { REF_WAITING, REF_LATENCY, REF_ACTIVE, REF_DONE };

struct ref_op {
    const struct plan_op *op;
    uint32_t device, stream, task; /* task: in the whole plan */
    uint32_t peer; /* source of a P2P copy */
    uint32_t lifetime[REF_ACCESSES_MAX]; /* of each access; 0: host */
    enum ref_state state;
    double left;  /* seconds of latency, then volume or seconds of computation */
    double rate;
    double volume;
    double alone_s, latency_s;
    double start_s, end_s;
};

struct ref_lifetime {
    uint32_t device, buffer;
    uint64_t first, end; /* range in the device's memory */
    uint32_t acquired_by;
};

struct reference {
    const struct plan *plan;
    struct ref_op ops[REF_OPS_MAX];
    bool waits[REF_OPS_MAX][REF_OPS_MAX];
    uint32_t count;
    struct ref_lifetime lifetimes[REF_OPS_MAX]; /* [0] is none */
    uint32_t lifetime_count;
    struct sim_link links[SIM_TEST_LINKS_MAX];
    struct sim_path paths[REF_PATHS_MAX]; /* of the host and storage; from REF_P2P on by device and peer */
    double now_s;
    double link_dir_full_s[REF_LINK_DIRS_MAX], link_busy_s[REF_LINK_DIRS_MAX], link_bytes[REF_LINK_DIRS_MAX];
    double stream_busy_s[REF_DEVICES_MAX * STREAM_HOST + 4];
};

/* Fails the test if an operation is left over. */
void sim_reference_run(const struct plan *plan, struct reference *reference);

/* Returns the path of a copy, as an index into paths. */
uint32_t sim_reference_path(const struct ref_op *op);

#endif
