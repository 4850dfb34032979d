/*
 * Cuts a served network into stages of consecutive layers with the slowest as fast as possible, on which a group's
 * throughput depends.
 *
 *     F(1, k) = t(0, k)        F(s, k) = min over i < k of max(F(s - 1, i), t(i, k))
 *
 * t(i, k): seconds of layers [i, k), with the transfer of their output. O(stages layers^2). Of equal cuts, the one with
 * the shortest first stages is chosen.
 *
 * Source: the dynamic program of AlpaServe, section 4.1.
 */
#ifndef SPILLWAY_SIM_SERVING_STAGE_CUT_H
#define SPILLWAY_SIM_SERVING_STAGE_CUT_H

#include "sim/serving/serving.h"

struct stage_cut {
    double *stage_s;       /* (pipeline): busy seconds of each stage for a single request */
    const double *growth;  /* (batch_max): factors for a batch; borrowed from the kind's degree */
    uint64_t *stage_bytes; /* (pipeline): weights on each of its devices */
    double latency_s;      /* sum over all stages, without waiting */
    double slowest_s;
};

/*
 * Cuts a kind for a shape; *out lives as long as `arena`. It has no stages (NULL) if the kind lacks the shape: not its
 * degree, or fewer layers than stages.
 */
MUST_CHECK enum status stage_cut_make(struct arena *arena, const struct serving_kind *kind,
                                      struct serving_shape shape, struct stage_cut *out, struct error *err);

#endif
