/*
 * An upper bound on attainment: the requests that any placement within memory can answer within their objectives.
 *
 * serving_bound.h replaces all devices by one that holds every model. Here a linear program chooses, in fractions, each
 * shape's groups, how many of them have each model, and how many of its requests attain their objective, so that
 *
 *     the groups have no more devices than there are
 *     a model is on no more groups of a shape than there are
 *     the weights on a shape's groups are within their memory, also by counting: of the models that need at least a
 *         given number of bytes, a group has at most the number that fits
 *     the attained requests of a model, of a kind's models and of all models are no more than fit into their windows
 *         on those groups (window_cut.h), for any runs of requests: the worst runs for the program's solution become
 *         rows of it, and it is solved again, until no run is violated or a number of rounds has passed
 *
 * Every placement is a solution, so the optimum is no less than its attainment. The solver is not trusted: the bound is
 * computed from its prices, and is valid for any prices. All shapes count: every degree of a kind, with any number of
 * stages.
 */
#ifndef SPILLWAY_SIM_PLACEMENT_PLACEMENT_BOUND_H
#define SPILLWAY_SIM_PLACEMENT_PLACEMENT_BOUND_H

#include "sim/serving/traffic.h"

/* Larger problems get no such bound: models by shapes, and steps of cutting all kinds. */
enum { PLACEMENT_BOUND_REPLICAS_MAX = 4096, PLACEMENT_BOUND_SHAPES_MAX = 256 };
#define PLACEMENT_BOUND_CUTTING_MAX 1e9

struct placement_bound {
    bool known;        /* false: the problem is too large, or the solver returned nothing */
    uint32_t attained; /* upper bound for all placements */
    uint32_t rounds, rows; /* of the program */
};

/* Computes the bound. Errors: STATUS_LIMIT, STATUS_IO if the solver's process cannot start. */
MUST_CHECK enum status placement_bound(const struct serving *in, const struct traffic *traffic,
                                       struct placement_bound *out, struct error *err);

#endif
