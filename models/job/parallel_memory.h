/*
 * Memory of parallel jobs (models/job/parallel.h) on one device, in bytes.
 *
 *   per run of layers        weights, gradients, optimizer states; ZeRO splits them over `data`
 *   per run and microbatch   activations kept between its passes, the boundary to the next run
 *   once                     a workspace
 *
 * Only tensors of rows are counted. Statistics of norms (two numbers per row), log-sums of attention and alignment
 * are left out, as in the sources. Attention is assumed to keep its weights, B H T T numbers per block, unless they
 * are recomputed; selective recomputation saves these numbers.
 *
 * Letters are as in models/kernel/work.h; t is the number of devices in the tensor group; e is the bytes of a number:
 * 2 in jobs of precision "bf16", 4 in others. The layers passed to a function are a run or a part of one.
 *
 * Sources: ZeRO, arXiv 1910.02054, sections 3 and 5; Korthikanti et al., arXiv 2205.05198, sections 4 and 5;
 * recomputation of stages: GPipe, arXiv 1811.06965, section 2.3.
 */
#ifndef SPILLWAY_MODELS_JOB_PARALLEL_MEMORY_H
#define SPILLWAY_MODELS_JOB_PARALLEL_MEMORY_H

#include "models/job/job.h"

/* --- parameters ------------------------------------------------------------------------------- */

/*
 * Returns the parameters of layers on one device of the tensor group. If the head multiplies by the embedding's table
 * and the table is on another stage, the head's layers count a copy of the table. Both copies get the same updates,
 * from the sum of both gradients.
 */
uint64_t parallel_parameters(const struct job *job, struct parallel_layers layers);

/* Returns the bytes of a tied table's gradient, which the first and the last stage add up once per minibatch; 0 when
 * one stage has both ends, or when the table is not tied. */
uint64_t parallel_tied_bytes(const struct job *job);

/* Returns the bytes of that gradient that each rank of the two stages sends in a plan: all of it, as Megatron-LM does
 * even with its distributed optimizer (the table has a separate bucket, so shares of both ends have the same rows);
 * its share if ranks have shares of gradients (`zero` 2 and up). Returns 0, because the sum is left out, for
 * asynchronous schedules, whose stages update with gradients of different ages, and when gradients are on the hosts. */
uint64_t parallel_joined_bytes(const struct job *job);

/* Returns the number of groups of such ranks for each place in a tensor group. With equally many replicas of the
 * first and last stage, groups are pairs. Otherwise it is the largest number of groups among which the replicas of
 * both ends divide evenly: replicas d, d + groups, d + 2 groups, ... of both stages form one group, and each rank
 * contributes its stage's sum divided by the number of group members that have this sum. */
uint32_t parallel_joined_groups(const struct parallel *parallel);

/* Returns true when the run has a gradient that is summed this way. */
static inline bool parallel_joins_run(const struct job *job, uint32_t run)
{
    return (run == 0 || run + 1 == parallel_runs(&job->parallel)) && parallel_joined_bytes(job) > 0;
}

/* Bytes per parameter. */
struct parameter_bytes {
    uint64_t weight;
    uint64_t gradient; /* by the job's "gradients"; in offloaded jobs by the job's precision, in which they are
                          made and sent */
    uint64_t state; /* fp32 master of 16-bit weights, and the optimizer's moments */
};
struct parameter_bytes parallel_parameter_bytes(const struct job *job);

/*
 * Returns the bytes on each of `data` devices with the same layers: everything (level 0), or a share of the states
 * (1), of the gradients too (2), of the weights too (3). Shares are rounded up to whole parameters.
 */
struct rank_state {
    uint64_t weight_bytes, gradient_bytes, state_bytes;
};
struct rank_state parallel_zero_state(uint64_t parameters, struct parameter_bytes each, uint32_t data,
                                      uint32_t level);

/* Returns the number of parameters whose states a device has and which it therefore updates. */
uint64_t parallel_updated_parameters(const struct job *job, struct parallel_layers layers);

/* Return the bytes for layers of a job with its `zero`, without offloaded state (models/job/parallel_offload.h): on
 * one device, and the full tensors of all data-parallel ranks together, whose weights are gathered and gradients
 * reduced. */
struct rank_state parallel_state(const struct job *job, struct parallel_layers layers);
struct rank_state parallel_whole_state(const struct job *job, struct parallel_layers layers);

/* Returns parallel_state() summed over the runs of a stage: the state that each of its devices keeps between
 * minibatches. */
struct rank_state parallel_stage_state(const struct job *job, uint32_t stage);

/* Returns the bytes of the layers' gradients as data-parallel ranks reduce them; smaller with compression. */
uint64_t parallel_reduced_bytes(const struct job *job, struct parallel_layers layers);

/* --- activations ------------------------------------------------------------------------------ */

/*
 * Return the bytes that one microbatch keeps between its passes over the layers, depending on the job's `recompute`.
 * With sequence parallelism, tensors marked (x) are divided by t; others are always divided by t:
 *
 *   blocks, none        x: e R C  input, first norm, middle, second norm
 *                       e (q + k + v + attention) R, e F R of fc and gelu (llama: gate, up, swiglu),
 *                       attention's weights e B H T T
 *   blocks, selective   the same without attention's weights
 *   blocks, full        x: e R C  input
 *   all, stage          nothing
 *   head                x: e R C  input, norm; bert: also the tensors between them. The logits, or their gradient
 *                       in the same place: 4 R V
 *   embedding           nothing
 *
 * The input of the first layer is not counted: it is the incoming boundary (parallel_boundary_bytes()). A profile
 * keeps the bytes that it states, or with full recomputation the outputs of its layers.
 *
 * `dropout` adds the three dropouts of a block and the embedding's dropout, which our networks lack and published
 * figures include: one byte of mask per number, and attention's weights once more after their dropout. For gpt2's
 * shape, e = 2 and nothing split, a block then has s b h (34 + 5 a s / h) bytes.
 *
 * The first function counts bytes as stored (encoded if activations are compressed), the second as passes compute
 * with them.
 */
uint64_t parallel_kept_bytes(const struct job *job, struct parallel_layers layers, bool dropout);
uint64_t parallel_plain_kept_bytes(const struct job *job, struct parallel_layers layers, bool dropout);

/* Return the bytes that a layer passes to the next layer for one microbatch, and whose gradient comes back: x: e R C.
 * The first function counts bytes as stored (encoded if boundaries are compressed), the second as passes compute with
 * them. */
uint64_t parallel_boundary_bytes(const struct job *job, uint64_t layer);
uint64_t parallel_plain_boundary_bytes(const struct job *job, uint64_t layer);

/* Returns the bytes of a boundary that each rank of a tensor group sends: all, or its part if boundaries are
 * scattered. */
uint64_t parallel_sent_bytes(const struct job *job, uint64_t layer);

/*
 * Returns the workspace of passes over the layers, in bytes. It is the maximum of
 *   blocks      the gradient of the stream e R C (x) and the gradients of q, k and v or of the feed-forward
 *               part's F (llama: 2 F) columns; with sequence parallelism the gathered rows e R C; recomputed tensors
 *   head        2 e R C, and the logits' gradient once more in 16 bits for 16-bit jobs
 *   embedding   e R C of whole rows
 *   profile     recomputed tensors
 * If a whole stage is recomputed (one microbatch after the other), the tensors that all its layers keep are added.
 * Compressed boundaries add the decoded tensors: the incoming boundary, its gradient, and the outgoing boundary.
 * Compressed activations add all decoded activations.
 */
uint64_t parallel_workspace_bytes(const struct job *job, struct parallel_layers layers);

#endif
