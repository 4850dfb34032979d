/*
 * Which models to put on which groups, and how to divide the devices into groups, so that the most requests
 * attain their objectives.
 *
 * For each shape: as many groups of it as there are devices for (devices that are left stand alone), then
 * replicas one after the other, the model with the most requests that fail on that group with room for it
 * which has the least to do, until nothing more fits or nothing fails. Then the same for pairs of shapes beside
 * each other, those first which would attain the most if each model had the better of both, with the devices
 * divided in three ways. From the best of all these on, an anytime search: replicas are taken away, moved and
 * exchanged between groups, devices of one or two groups are divided anew into groups of other shapes, and what
 * is not worse is kept; of placements that attain as many, the one whose requests are farther from failing.
 * All is judged by simulation. Deterministic for a seed and a number of simulations.
 *
 * Source: the greedy placement is AlpaServe's faster heuristic (section 4.2). There buckets of models that take
 * about as long get devices and groups of their own; here groups of any shapes share all models.
 */
#ifndef SPILLWAY_SERVING_PLACEMENT_SEARCH_H
#define SPILLWAY_SERVING_PLACEMENT_SEARCH_H

#include "sim/serving/serve.h"

struct placement_search_options {
    uint64_t seed;
    uint64_t simulations;       /* of the search behind the greedy placements */
    struct serving_shape shape; /* of all groups; 0 x 0: whatever is best, also unlike ones */
    void (*on_progress)(void *context, double done, double total); /* in simulations; may be NULL */
    void *context;
};

struct placement_found {
    struct serving_placement placement;
    uint32_t attained;    /* of the requests that it was found for */
    uint64_t simulations; /* in all */
    uint32_t shapes;      /* tried */
};

/*
 * The shapes that groups of `in` may have: degrees of its kinds by pipelines of powers of two and of all
 * devices; 1 x 1 is the first. Lives as long as `arena`. Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status placement_shapes(struct arena *arena, const struct serving *in, struct serving_shape **out,
                                        uint32_t *count, struct error *err);

/*
 * The best placement found for `traffic`; it lives as long as `arena`. `cuts` has placement_shapes() or more,
 * and options->shape. Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status placement_search(struct arena *arena, const struct serving_cuts *cuts,
                                        const struct traffic *traffic,
                                        const struct placement_search_options *options,
                                        struct placement_found *out, struct error *err);

#endif
