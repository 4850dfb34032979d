/*
 * How many requests any placement within memory can answer within their objectives: a bound on attainment.
 *
 * serving_bound.h takes all devices for one that holds every model. Here models are somewhere: a linear program
 * chooses, in fractions, how many groups of each shape there are, on how many of them each model is, and how many
 * of its requests attain their objective:
 *
 *     the groups have no more devices than there are
 *     a model is on no more groups of a shape than there are
 *     the weights on a shape's groups are within their memory, also by counting: of models that need at least so
 *         many bytes, a group has at most as many as fit
 *     a model's requests, those of a kind's models and all together are no more than fit into their windows on
 *         those groups (window_cut.h), for any runs of requests: the worst runs for the program's answer become
 *         rows of it, and it is solved again, until none is found or some rounds have passed
 *
 * Every placement is a solution, so the optimum is no less than what it attains. The solver is not believed: the
 * bound is worked out anew from the prices that it names for the rows, which is a bound whatever they are.
 * All shapes are looked at: every degree that a kind has, with any number of stages.
 */
#ifndef SPILLWAY_SERVING_PLACEMENT_BOUND_H
#define SPILLWAY_SERVING_PLACEMENT_BOUND_H

#include "sim/serving/traffic.h"

/* Larger problems are not bounded in this way: models by shapes, and steps of cutting all kinds. */
enum { PLACEMENT_BOUND_REPLICAS_MAX = 4096, PLACEMENT_BOUND_SHAPES_MAX = 256 };
#define PLACEMENT_BOUND_CUTTING_MAX 1e9

struct placement_bound {
    bool known;        /* false: the problem is too large, or the solver gave nothing */
    uint32_t attained; /* no placement attains more of the requests */
    uint32_t rounds, rows; /* of the program */
};

/* Errors: STATUS_NO_MEMORY, STATUS_LIMIT, STATUS_IO where there can be no process for the solver. */
MUST_CHECK enum status placement_bound(const struct serving *in, const struct traffic *traffic,
                                       struct placement_bound *out, struct error *err);

#endif
