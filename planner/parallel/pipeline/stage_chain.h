/*
 * A network as a chain of layers that can be cut into stages: what planner/parallel/pipeline/stage_partition.h divides among workers.
 *
 * From a text of PipeDream's profiler (models/network/profile_text.h), or from a job, by the cost model.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PIPELINE_STAGE_CHAIN_H
#define SPILLWAY_PLANNER_PARALLEL_PIPELINE_STAGE_CHAIN_H

#include "base/arena.h"
#include "models/hardware/hardware.h"
#include "models/job/job.h"

enum { STAGE_LAYERS_MAX = 8192 }; /* what dividing them takes is limited by itself: STAGE_STEPS_MAX */

struct stage_layer {
    const char *name;
    double forward_s, backward_s; /* of a minibatch on one worker */
    uint64_t cut_bytes;           /* sent forward where the chain is cut behind this layer; the last one's is 0 */
    uint64_t weight_bytes;        /* what data-parallel workers exchange */
    uint64_t held_bytes;          /* on each worker, whatever is under way: weights, gradients, optimizer */
    uint64_t kept_bytes;          /* for each minibatch under way */
};

struct stage_chain {
    const char *name;
    struct stage_layer *layers;
    uint32_t count; /* at least 1 */
};

/* Both live as long as `arena`. A profile's layers hold weights and gradients, no optimizer.
 * Errors: STATUS_IO; STATUS_BAD_INPUT with file, line and column; STATUS_LIMIT; STATUS_NO_MEMORY. */
MUST_CHECK enum status stage_chain_read(struct arena *arena, const char *path, struct stage_chain *out,
                                        struct error *err);
MUST_CHECK enum status stage_chain_parse(struct arena *arena, const char *name, const char *text,
                                         struct stage_chain *out, struct error *err);

/* The layers as a network that jobs can have (NETWORK_PROFILE), of `scale` times the samples: times, what is kept and what
 * is sent, not weights, which are whole floats. Lives as long as `arena`. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status stage_chain_network(struct arena *arena, const struct stage_chain *chain, double scale,
                                           struct network *out, struct error *err);

/* The layers of a job's network, a microbatch on that device of the machine; of a parallel job with its tensor
 * parallelism, without the collectives, and with what ZeRO leaves of states.
 * Errors: STATUS_LIMIT; STATUS_NO_MEMORY. */
MUST_CHECK enum status stage_chain_of_job(struct arena *arena, const struct job *job, const struct hardware *hardware,
                                          uint32_t device, struct stage_chain *out, struct error *err);

#endif
