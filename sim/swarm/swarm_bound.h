/*
 * How many microbatches a second no routing can exceed, given when peers were there and when they averaged;
 * presence(p) below is p's share of the run in which it was there and no averaging went on.
 *
 * What microbatches flow through is stages, one behind the other, each as wide as what its peers can do
 * (swarm_rate()): a maximum flow, which is the narrowest stage's where peers keep their stages:
 *
 *     min over s of  sum over peers p of stage s of  rate(p, s) presence(p)
 *
 * Where they may move, even all the time and at no cost, it is a linear programme: x(p, s) of p's presence in s,
 * max l with sum over p of rate(p, s) x(p, s) >= l for each s. By duality any prices y of stages that add up to 1
 * prove that
 *
 *     l <= sum over p of presence(p) max over s of y(s) rate(p, s)
 *
 * and a simplex method finds the best prices; the bound is what they prove, computed anew, however the method went.
 *
 * Beside it, by Little's law: microbatches under way / the least time that one takes where nothing is in its way.
 * Neither knows of filling and draining the stages around each averaging, nor of fetching state.
 */
#ifndef SPILLWAY_SWARM_SWARM_BOUND_H
#define SPILLWAY_SWARM_SWARM_BOUND_H

#include "sim/swarm/swarm_run.h"

enum swarm_bound_kind { SWARM_BOUND_STAGE, SWARM_BOUND_PEERS, SWARM_BOUND_LATENCY };

struct swarm_bound {
    double per_s;   /* microbatches whose gradients are used */
    uint32_t kind;  /* enum swarm_bound_kind: one stage's peers, all peers wherever they are, the way there and back */
    uint32_t stage; /* SWARM_BOUND_STAGE: which */
};

/* Of any run in which peers were there, and averaged, as in `result`; `moving`: they may change their stages.
 * Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status swarm_bound(const struct swarm *in, const struct swarm_result *result, bool moving,
                                   struct swarm_bound *out, struct error *err);

#endif
