/*
 * Bytes that a job which is spread over devices (models/job/parallel.h) needs on one of them.
 *
 *   per run of layers        weights, gradients, states of the optimizer; ZeRO splits them over `data`
 *   per run and microbatch   activations kept between its passes, the boundary to the next run
 *   once                     a workspace
 *
 * What is counted is tensors of rows: statistics of norms (two numbers a row), log-sums of attention and
 * alignment are left out, as in the sources. Attention is counted as one that keeps its weights, B H T T
 * numbers a block, unless they are computed again: that is what recomputing selectively saves.
 *
 * Letters as in models/kernel/work.h; t devices in the tensor group; e = 2 bytes a number in jobs of precision
 * "bf16", 4 in others. The layers of a function are those of a run or a part of them.
 *
 * Sources: ZeRO, arXiv 1910.02054, sections 3 and 5; Korthikanti et al., arXiv 2205.05198, sections 4
 * and 5; for stages that are computed again GPipe, arXiv 1811.06965, section 2.3.
 */
#ifndef SPILLWAY_MODELS_PARALLEL_MEMORY_H
#define SPILLWAY_MODELS_PARALLEL_MEMORY_H

#include "models/job/job.h"

/* --- parameters ------------------------------------------------------------------------------- */

/*
 * Parameters of layers on one device of the tensor group. Where the head multiplies by the embedding's
 * table and another stage has that, the layers with the head have a copy of the table: both are updated
 * alike, from the sum of both gradients.
 */
uint64_t parallel_parameters(const struct job *job, struct parallel_layers layers);

/* Bytes of a table's gradient that the first and the last stage add up once a minibatch; 0 where one stage
 * has both ends, or each its own table. */
uint64_t parallel_tied_bytes(const struct job *job);

/* What each rank of the two sends of it in a plan: all of it, as Megatron-LM does with its distributed optimizer too (the
 * table has a bucket of its own, so shares of both ends are of the same rows); where ranks have shares of gradients
 * (`zero` 2 and up) its share. 0 in asynchronous schedules, whose stages update with gradients of different ages, and
 * where gradients are the hosts': there the sum is left out. */
uint64_t parallel_joined_bytes(const struct job *job);

/* Groups of such ranks for each place in a tensor group. With as many replicas of the first stage as of the last they are
 * pairs; else as many groups as both ends' can be dealt to evenly, where each rank gives its stage's sum divided by how
 * many of the group have it: replicas d and d + groups, d + 2 groups, ... of both stages are one. */
uint32_t parallel_joined_groups(const struct parallel *parallel);

/* Has the run of layers a gradient that is summed so? */
static inline bool parallel_joins_run(const struct job *job, uint32_t run)
{
    return (run == 0 || run + 1 == parallel_runs(&job->parallel)) && parallel_joined_bytes(job) > 0;
}

/* Of one parameter. */
struct parameter_bytes {
    uint64_t weight;
    uint64_t gradient; /* as the job's "gradients" say; of those that offload in their precision, as these make and
                          send it */
    uint64_t state; /* fp32 master of 16-bit weights, and the optimizer's moments */
};
struct parameter_bytes parallel_parameter_bytes(const struct job *job);

/*
 * What each of `data` devices with the same layers holds: all of it (level 0), or a share of the states
 * (1), of the gradients too (2), of the weights too (3). Shares are rounded up to whole parameters.
 */
struct rank_state {
    uint64_t weight_bytes, gradient_bytes, state_bytes;
};
struct rank_state parallel_zero_state(uint64_t parameters, struct parameter_bytes each, uint32_t data,
                                      uint32_t level);

/* Parameters whose states a device has, and which it therefore updates. */
uint64_t parallel_updated_parameters(const struct job *job, struct parallel_layers layers);

/* The same for layers of a job, with its `zero`, less what is offloaded (models/job/parallel_offload.h); and of all its data-parallel ranks together, whose weights are
 * gathered and whose gradients are reduced. */
struct rank_state parallel_state(const struct job *job, struct parallel_layers layers);
struct rank_state parallel_whole_state(const struct job *job, struct parallel_layers layers);

/* The first of all runs on one stage: what each of its devices has from minibatch to minibatch. */
struct rank_state parallel_stage_state(const struct job *job, uint32_t stage);

/* Bytes of the gradients of layers as data-parallel ranks reduce them: fewer where these are compressed. */
uint64_t parallel_reduced_bytes(const struct job *job, struct parallel_layers layers);

/* --- activations ------------------------------------------------------------------------------ */

/*
 * What one microbatch keeps between its passes over the layers, by the job's `recompute`; of whole rows
 * (x), t times less with sequence parallelism, or t times less in any case:
 *
 *   blocks, none        x: e R C  input, first norm, middle, second norm
 *                       e (q + k + v + attention) R, e F R of fc and gelu (llama: gate, up, swiglu),
 *                       attention's weights e B H T T
 *   blocks, selective   without attention's weights
 *   blocks, full        x: e R C  input
 *   all, stage          nothing
 *   head                x: e R C  input, norm; bert: what is between them. The logits, or their gradient
 *                       in their place: 4 R V
 *   embedding           nothing
 *
 * The input of the first layer is not in it: it is the boundary that came in (parallel_boundary_bytes()).
 * A profile keeps what it says, or with full recomputation what its layers pass on.
 *
 * `dropout`: with the three dropouts of a block and that of the embedding, which our networks lack and
 * published figures have: a byte of mask for each number, and attention's weights once more behind theirs.
 * With gpt2's shape, e = 2 and none of it split, a block then has s b h (34 + 5 a s / h) bytes.
 *
 * As it lives, which is encoded where activations are compressed, and as passes compute with it.
 */
uint64_t parallel_kept_bytes(const struct job *job, struct parallel_layers layers, bool dropout);
uint64_t parallel_plain_kept_bytes(const struct job *job, struct parallel_layers layers, bool dropout);

/* What a layer passes to the next for one microbatch, and the next one's gradient passes back: x: e R C; as it lives,
 * which is encoded where it is compressed, and as passes compute with it. */
uint64_t parallel_boundary_bytes(const struct job *job, uint64_t layer);
uint64_t parallel_plain_boundary_bytes(const struct job *job, uint64_t layer);

/* What each rank of a tensor group sends of it: all, or its part where boundaries are scattered. */
uint64_t parallel_sent_bytes(const struct job *job, uint64_t layer);

/*
 * What passes over the layers need beside all that: the largest of
 *   blocks      the gradient of the stream e R C (x) and the gradients of q, k and v or of the feed-forward
 *               part's F (llama: 2 F) columns; with sequence parallelism the whole rows e R C of what was
 *               gathered; what is computed again
 *   head        e R C twice, and the logits' gradient once more in 16 bits where those are 16-bit jobs
 *   embedding   e R C of whole rows
 *   profile     what is computed again
 * with what all its layers keep where a stage is computed again as a whole (of microbatches one after the other);
 * and where boundaries are compressed what was decoded: the one that came in and its gradient, the one that goes out;
 * where activations are, all of these
 */
uint64_t parallel_workspace_bytes(const struct job *job, struct parallel_layers layers);

#endif
