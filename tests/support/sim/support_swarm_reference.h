/*
 * The rules of sim/swarm/swarm.h again, as slowly and simply as possible: the next event is searched among all objects,
 * lines are sequence numbers, and only the description of swarms is shared with the simulator. Failures by a trace; no
 * chance, no rebalancing, no fixed pipelines.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_SIM_SUPPORT_SWARM_REFERENCE_H
#define SPILLWAY_TESTS_SUPPORT_SIM_SUPPORT_SWARM_REFERENCE_H

#include "sim/swarm/swarm.h"

enum { SLOW_PEERS_MAX = 16, SLOW_STAGES_MAX = 4, SLOW_SLOTS_MAX = 64, SLOW_TRAINERS_MAX = 4 };

struct slow_result {
    double elapsed_s, averaging_s, useful_s, lost_s;
    uint32_t steps;
    uint64_t failures, unanswered, repeated, given_up;
    uint64_t passes[SLOW_PEERS_MAX];
    double busy_s[SLOW_PEERS_MAX], present_s[SLOW_PEERS_MAX];
};

void slow_swarm(const struct swarm *in, uint32_t wiring, struct slow_result *out);

#endif
