/*
 * A network as a chain of layers to cut into stages (planner/parallel/pipeline/stage_partition.h), read from a text of
 * PipeDream's profiler (models/network/profile_text.h) or made from a job by the cost model.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PIPELINE_STAGE_CHAIN_H
#define SPILLWAY_PLANNER_PARALLEL_PIPELINE_STAGE_CHAIN_H

#include "base/arena.h"
#include "models/hardware/hardware.h"
#include "models/job/job.h"

enum { STAGE_LAYERS_MAX = 8192 }; /* STAGE_STEPS_MAX limits the work of dividing them */

struct stage_layer {
    const char *name;
    double forward_s, backward_s; /* of a minibatch on one worker */
    uint64_t cut_bytes;           /* sent forward if the chain is cut after this layer; 0 for the last layer */
    uint64_t weight_bytes;        /* weights that data-parallel workers exchange */
    uint64_t held_bytes;          /* on each worker at all times: weights, gradients, optimizer */
    uint64_t kept_bytes;          /* for each minibatch in flight */
};

struct stage_chain {
    const char *name;
    struct stage_layer *layers;
    uint32_t count; /* at least 1 */
};

/* Read and parse a text of PipeDream's profiler. The chain lives as long as `arena`; layers hold weights and gradients,
 * no optimizer states. Errors: STATUS_IO; STATUS_BAD_INPUT with file, line and column; STATUS_LIMIT. */
MUST_CHECK enum status stage_chain_read(struct arena *arena, const char *path, struct stage_chain *out,
                                        struct error *err);
MUST_CHECK enum status stage_chain_parse(struct arena *arena, const char *name, const char *text,
                                         struct stage_chain *out, struct error *err);

/* Makes a network for jobs (NETWORK_PROFILE), with times, kept and sent bytes of `scale` times the samples. Weights are
 * not scaled, and are rounded to whole floats. The network lives as long as `arena`. */
MUST_CHECK enum status stage_chain_network(struct arena *arena, const struct stage_chain *chain, double scale,
                                           struct network *out, struct error *err);

/* Makes the chain of a job's network, timed for a microbatch on that device. A parallel job's layers have its tensor
 * parallelism without collectives, and states as ZeRO splits them. Errors: STATUS_LIMIT. */
MUST_CHECK enum status stage_chain_of_job(struct arena *arena, const struct job *job, const struct hardware *hardware,
                                          uint32_t device, struct stage_chain *out, struct error *err);

#endif
