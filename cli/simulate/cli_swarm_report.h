/* The report of `swarm`: wirings, and one's stages, peers and shares of time. */
#ifndef SPILLWAY_CLI_SIMULATE_CLI_SWARM_REPORT_H
#define SPILLWAY_CLI_SIMULATE_CLI_SWARM_REPORT_H

#include "cli/common/cli.h"
#include "sim/swarm/swarm_bound.h"

/* One wiring, with or without rebalancing. */
struct swarm_trial {
    uint32_t wiring;
    bool rebalanced;
    struct swarm_result result;
    struct swarm_bound bound;
};

enum { SWARM_TRIALS_MAX = 2 * SWARM_WIRING_COUNT };

struct swarm_report {
    const char *path, *timeline; /* timeline: written; may be NULL */
    const struct swarm *in;
    const struct swarm_trial *trials; /* the requested one first */
    uint32_t trial_count;
    uint64_t seed;
};

MUST_CHECK enum status swarm_report_text(struct cli *cli, const struct swarm_report *report, struct error *err);
MUST_CHECK enum status swarm_report_json(struct cli *cli, const struct swarm_report *report, struct error *err);

#endif
