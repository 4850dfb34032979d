/*
 * The ways of fitting a training run: place of states, recomputation, devices. `plan` and `simulate` accept each of
 * them.
 *
 *     name                     on one device at a time
 *     resident                 states on the device, activations of the whole network kept
 *     recompute                the same, of activations only the inputs of layers
 *     spilled                  states in host memory, shard by shard on the device, which updates them
 *     spilled-cpu              the same, updated by the host's processor
 *     spilled-storage          states on storage; machines with storage
 *     stages, stages-recompute resident stages on all devices; machines with several
 *
 *                              over n devices at once (models/job/parallel.h); "+recompute": all but the inputs of
 *                              layers
 *     dp=n                     replicas
 *     dp=n,v=c,zero=1..3       with shares of states; of gradients; of weights
 *     ...,offload=states       states and step on the host
 *     ...,offload=weights      weights too; ",storage": all that on storage
 *     tp=t,pp=p,dp=d           the largest tensor groups that divide heads and devices, and stages; replicas of the
 *                              rest
 *
 * Stages have schedule 1f1b, and tensor groups sequence parallelism where it is possible. `plan` also tries the
 * variants: "pp=p zb-h1", "pp=p,v=2 interleaved" and "tp=t" without "sp".
 */
#ifndef SPILLWAY_PLANNER_CAPACITY_FEASIBILITY_WAYS_H
#define SPILLWAY_PLANNER_CAPACITY_FEASIBILITY_WAYS_H

#include "planner/strategy/planner.h"

struct hardware;
struct job;

enum { FEASIBILITY_WAYS_MAX = 64, FEASIBILITY_VARIANTS_MAX = 5, FEASIBILITY_NAME_BYTES = PARALLEL_TEXT_BYTES + 16 };

struct feasibility_way {
    char name[FEASIBILITY_NAME_BYTES];
    uint32_t devices;         /* number of devices, the machine's first ones */
    struct parallel parallel; /* all 0: one device at a time, with the fields below */
    const char *policy;
    uint32_t optimizer;       /* enum planner_place */
    uint32_t storage;         /* enum planner_storage */
    uint32_t activations;     /* enum plan_activations, or PLANNER_AUTO */
    uint32_t last;            /* enum planner_last */
};

/* Returns true when states are on the devices from beginning to end. */
static inline bool feasibility_way_stays(const struct feasibility_way *way)
{
    return way->last != PLANNER_LAST_AUTO || parallel_is_set(&way->parallel);
}

/* Lists the job's ways, whatever the memory; no replicas if the minibatch has fewer microbatches than devices. Returns
 * their number, below FEASIBILITY_WAYS_MAX. */
uint32_t feasibility_ways(const struct hardware *hardware, const struct job *job,
                          struct feasibility_way out[FEASIBILITY_WAYS_MAX]);

/* Lists the possible variants of a listed parallel way, without the way itself. Returns their number, at most
 * FEASIBILITY_VARIANTS_MAX. */
uint32_t feasibility_variants(const struct job *job, const struct feasibility_way *way,
                              struct feasibility_way out[FEASIBILITY_VARIANTS_MAX]);

/*
 * Parses a way, listed or not: "tp=2,dp=8,zero=1", as in parallel_parse_text(), with "+recompute", "+stage" or
 * "+selective" at the end. *out gets this name. Errors: STATUS_BAD_INPUT for unreadable text, too few devices, or a way
 * that parallel_check() refuses.
 */
MUST_CHECK enum status feasibility_way_parse(const struct hardware *hardware, const struct job *job, const char *text,
                                             struct feasibility_way *out, struct error *err);

#endif
