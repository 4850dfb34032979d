/*
 * Where a served network is cut into stages: neighbouring layers together, the slowest stage as fast as
 * possible, for it is what a group's throughput depends on.
 *
 *     F(1, k) = t(0, k)        F(s, k) = min over i < k of max(F(s - 1, i), t(i, k))
 *
 * t(i, k): seconds of layers [i, k) with what they hand on behind the last. O(stages layers^2). Of cuts with
 * the same slowest stage, the one whose first stages are the shortest.
 *
 * Source: the programme of AlpaServe, section 4.1.
 */
#ifndef SPILLWAY_SERVING_STAGE_CUT_H
#define SPILLWAY_SERVING_STAGE_CUT_H

#include "sim/serving/serving.h"

struct stage_cut {
    double *stage_s;       /* (pipeline): seconds that a request alone keeps it busy */
    const double *growth;  /* (batch_max): of a batch, so many times; borrowed from the kind's degree */
    uint64_t *stage_bytes; /* (pipeline): weights on each of its devices */
    double latency_s;      /* of all stages, nothing in front */
    double slowest_s;
};

/*
 * A kind in a shape. Lives as long as `arena`. *out has no stages (NULL) where the kind does not have the
 * shape: not that degree, or fewer layers than stages. Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status stage_cut_make(struct arena *arena, const struct serving_kind *kind,
                                      struct serving_shape shape, struct stage_cut *out, struct error *err);

#endif
