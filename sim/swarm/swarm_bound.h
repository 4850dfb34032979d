/*
 * An upper bound on microbatches per second for any routing, given when peers were present and averaged. presence(p) is
 * p's share of the run, present and without averaging.
 *
 * Microbatches flow through a line of stages, each with its peers' capacity (swarm_rate()). If peers keep their stages,
 * the maximum flow is the narrowest stage's capacity:
 *
 *     min over s of  sum over peers p of stage s of  rate(p, s) presence(p)
 *
 * If peers may move at no cost, it is a linear program: with x(p, s) of p's presence in s, max l with sum over p of
 * rate(p, s) x(p, s) >= l for each s. By duality, any prices y of stages that add up to 1 prove that
 *
 *     l <= sum over p of presence(p) max over s of y(s) rate(p, s)
 *
 * A simplex method finds the best prices. The bound is computed from them, and is valid for any prices.
 *
 * A second bound follows from Little's law: microbatches under way / the least time of one without waiting. Neither
 * bound includes filling and draining around each averaging, or fetching state.
 */
#ifndef SPILLWAY_SIM_SWARM_SWARM_BOUND_H
#define SPILLWAY_SIM_SWARM_SWARM_BOUND_H

#include "sim/swarm/swarm_run.h"

enum swarm_bound_kind { SWARM_BOUND_STAGE, SWARM_BOUND_PEERS, SWARM_BOUND_LATENCY };

struct swarm_bound {
    double per_s;   /* microbatches per second whose gradients are used */
    uint32_t kind;  /* enum swarm_bound_kind: capacity of one stage, capacity of all peers, latency there and back */
    uint32_t stage; /* SWARM_BOUND_STAGE: the stage */
};

/* Computes a bound for all runs with `result`'s presence and averaging times; `moving`: peers may change stages. */
MUST_CHECK enum status swarm_bound(const struct swarm *in, const struct swarm_result *result, bool moving,
                                   struct swarm_bound *out, struct error *err);

#endif
