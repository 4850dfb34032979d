/*
 * Second opinions about live dispatch (sim/live/live.h): slow or special programs that share nothing with sim/
 * but the tables of machines and instances.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_SIM_SUPPORT_LIVE_REFERENCE_H
#define SPILLWAY_TESTS_SUPPORT_SIM_SUPPORT_LIVE_REFERENCE_H

#include "planner/policy/policy.h"
#include "planner/solve/instance/instance.h"
#include "tests/support/sim/support_sim.h"
#include "tests/support/support_workload.h"

/* --- any instance on any machine, small ------------------------------------------------------ */

enum { LIVE_REF_LINKS_MAX = 32, LIVE_REF_DEVICES_MAX = 16 };

enum live_ref_rule { LIVE_REF_LRTF, LIVE_REF_LRTF_EMPTIEST, LIVE_REF_SRTF, LIVE_REF_FIFO };

struct live_ref {
    double makespan_s;
    double link_busy_s[LIVE_REF_LINKS_MAX], link_dir_full_s[2 * LIVE_REF_LINKS_MAX];
    double link_bytes[LIVE_REF_LINKS_MAX][2];
    double compute_busy_s[LIVE_REF_DEVICES_MAX];
    uint64_t units;
    bool unclear; /* at some event, rounding decided which of two came first; another program may choose the other */
};

/* Runs live dispatch with rates computed flow by flow (sim_test_slow_share()), scanning everything at every event.
 * Copies cost the latencies of their links and their bytes. */
void live_reference_run(const struct instance *in, const struct hardware *hardware, enum live_ref_rule rule,
                        struct live_ref *out);

/* --- workload W, any size ---------------------------------------------------------------------- */

struct live_ref_rounding {
    bool twice; /* a forward pass takes 0.080 + 0.00008 k seconds, added in double; else the double nearest to the
                   sum */
    bool sums;  /* the remaining work of a model is made of sums and differences of such doubles; else exact */
};

/* Returns the makespan, with an event list and water-filling in each group: the arithmetic of the published figures. */
double live_reference_workload(const struct workload *w, struct live_ref_rounding rounding);

/* The same arithmetic for sim/live/live.h: computation times, rounded twice, as options->compute_s (the caller frees
 * it), and a policy that ranks by such sums. One workload at a time. */
double *live_reference_compute_s(const struct workload *w);
const struct policy *live_reference_policy(const struct workload *w);

#endif
