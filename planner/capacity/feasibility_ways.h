/*
 * The ways of fitting a training run that there are: where its states are, what is recomputed, how many devices
 * it uses. Each is something that `plan` or `simulate` can be asked for.
 *
 * name                     on one device at a time
 * resident                 states on the device, activations of the whole network kept
 * recompute                the same, of activations only the inputs of layers
 * spilled                  states in host memory, shard by shard on the device, which updates them
 * spilled-cpu              the same, updated by the host's processor
 * spilled-storage          states on storage; machines that have some
 * stages, stages-recompute resident stages on all devices; machines with several
 *
 *                          over n devices at once (models/job/parallel.h); "+recompute": all but the inputs of layers is
 * dp=n                     replicas
 * dp=n,v=c,zero=1..3       with shares of states; of gradients; of weights
 * ...,offload=states       states and step on the host
 * ...,offload=weights      weights too; ",storage": all that on storage
 * tp=t,pp=p,dp=d           tensor groups, as large as divide heads and devices, and stages; replicas of what is left
 */
#ifndef SPILLWAY_PLANNER_FEASIBILITY_WAYS_H
#define SPILLWAY_PLANNER_FEASIBILITY_WAYS_H

#include "planner/strategy/planner.h"

struct hardware;
struct job;

enum { FEASIBILITY_WAYS_MAX = 64, FEASIBILITY_NAME_BYTES = PARALLEL_TEXT_BYTES + 16 };

struct feasibility_way {
    char name[FEASIBILITY_NAME_BYTES];
    uint32_t devices;         /* of the machine's that it uses, the first ones */
    struct parallel parallel; /* all 0: one device at a time, by these: */
    const char *policy;
    uint32_t optimizer;       /* enum planner_place */
    uint32_t storage;         /* enum planner_storage */
    uint32_t activations;     /* enum plan_activations, or PLANNER_AUTO */
    uint32_t last;            /* enum planner_last */
};

/* Are states on the devices from beginning to end? */
static inline bool feasibility_way_stays(const struct feasibility_way *way)
{
    return way->last != PLANNER_LAST_AUTO || parallel_is_set(&way->parallel);
}

/* Those that this job can go on this machine, were there memory enough. Its minibatch has to have a microbatch for each
 * device at least, or replicas are left out. Returns how many; fewer than FEASIBILITY_WAYS_MAX. */
uint32_t feasibility_ways(const struct hardware *hardware, const struct job *job,
                          struct feasibility_way out[FEASIBILITY_WAYS_MAX]);

/*
 * One that need not be in that list: "tp=2,dp=8,zero=1", as parallel_parse_text() has it, with "+recompute", "+stage" or
 * "+selective" behind it. *out is named so. Errors: STATUS_BAD_INPUT when it cannot be read, the machine has too few
 * devices, or parallel_check() refuses it.
 */
MUST_CHECK enum status feasibility_way_parse(const struct hardware *hardware, const struct job *job, const char *text,
                                             struct feasibility_way *out, struct error *err);

#endif
