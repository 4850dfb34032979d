/*
 * Searches for the placement that attains the most requests: groups of devices, and their models.
 *
 * For each shape, it makes the most equal groups that fit (remaining devices are groups of their own). Then it adds
 * replicas greedily: the model with the most failing requests goes to the least loaded group with room, until nothing
 * fits or fails. Pairs of shapes are tried likewise, with three divisions of the devices; first the pairs that would
 * attain the most, if each model used its better shape. From the best an anytime search removes, moves and exchanges
 * replicas, and regroups the devices of one or two groups. It keeps changes that are not worse; of equal placements,
 * the one whose requests are farther from failing is better. Simulation judges all placements. The result depends only
 * on the seed and the number of simulations.
 *
 * Source: the greedy placement is AlpaServe's faster heuristic (section 4.2). AlpaServe gives buckets of models with
 * similar times their own devices and groups; here groups of any shapes share all models.
 */
#ifndef SPILLWAY_SIM_PLACEMENT_PLACEMENT_SEARCH_H
#define SPILLWAY_SIM_PLACEMENT_PLACEMENT_SEARCH_H

#include "sim/serving/serve.h"

struct placement_search_options {
    uint64_t seed;
    uint64_t simulations;       /* of the search after the greedy placements */
    struct serving_shape shape; /* shape of all groups; 0 x 0: any shapes, also mixed */
    void (*on_progress)(void *context, double done, double total); /* in simulations; may be NULL */
    void *context;
};

struct placement_found {
    struct serving_placement placement;
    uint32_t attained;    /* of the requests that the search used */
    uint64_t simulations; /* in all */
    uint32_t shapes;      /* number of tried shapes */
};

/*
 * Lists shapes: degrees of the kinds, with pipelines of powers of two and of all devices; 1 x 1 comes first. *out lives
 * as long as `arena`.
 */
MUST_CHECK enum status placement_shapes(struct arena *arena, const struct serving *in, struct serving_shape **out,
                                        uint32_t *count, struct error *err);

/* The result for `traffic` lives as long as `arena`. `cuts` must have all placement_shapes() and options->shape. */
MUST_CHECK enum status placement_search(struct arena *arena, const struct serving_cuts *cuts,
                                        const struct traffic *traffic,
                                        const struct placement_search_options *options,
                                        struct placement_found *out, struct error *err);

#endif
