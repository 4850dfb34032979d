/*
 * Memory of parallel jobs on one device, in bytes.
 *
 *   per chunk of layers        weights, gradients, optimizer states; ZeRO splits them over `data`
 *   per chunk and microbatch   activations kept between its passes, the boundary to the next chunk
 *   once                     a workspace
 *
 * Only tensors of rows are counted, as in the sources: no statistics of norms, log-sums of attention, alignment.
 * Attention keeps its weights, B H T T numbers per block, unless they are recomputed.
 *
 * Letters are as in models/kernel/work.h; t is the number of devices in the tensor group; e is 2 bytes in jobs of
 * precision "bf16", 4 in others. Layers are a chunk or a part of one.
 *
 * Sources: ZeRO, arXiv 1910.02054, sections 3 and 5; Korthikanti et al., arXiv 2205.05198, sections 4 and 5;
 * recomputation of stages: GPipe, arXiv 1811.06965, section 2.3.
 */
#ifndef SPILLWAY_MODELS_JOB_PARALLEL_MEMORY_H
#define SPILLWAY_MODELS_JOB_PARALLEL_MEMORY_H

#include "models/job/job.h"

/* --- parameters ------------------------------------------------------------------------------- */

/*
 * Return the trained parameters on one device of the tensor group, and the frozen ones. If the head's tied table is on
 * another stage, the head's layers count a copy, which gets the same updates.
 */
uint64_t parallel_parameters(const struct job *job, struct parallel_layers layers);
uint64_t parallel_frozen_parameters(const struct job *job, struct parallel_layers layers);

/* Returns true if the head multiplies by the table of the embedding, which is in another chunk of its stage. */
bool parallel_shares_table(const struct job *job);

/* Returns true if the head's table is the embedding's, and trained. */
bool parallel_trains_table(const struct job *job);

/* Returns the bytes of a tied table's gradient that the first and last stage add up once per minibatch, or 0: also
 * where the table is frozen. */
uint64_t parallel_tied_bytes(const struct job *job);

/* Returns the bytes of it that each rank of the two stages sends: all, as Megatron-LM does even with its
 * distributed optimizer, or its share with `zero` 2 and up. 0 for asynchronous schedules that are only simulated, and
 * when gradients are on the hosts. */
uint64_t parallel_joined_bytes(const struct job *job);

/* Returns the groups of such ranks for each place in a tensor group: pairs if both stages have equally many
 * replicas, else the largest number that divides both. Replicas d, d + groups, d + 2 groups, ... of both stages
 * form one group; each rank contributes its stage's sum divided by the number of members that have it. */
uint32_t parallel_joined_groups(const struct parallel *parallel);

/* Returns true if the chunk has a gradient that is summed this way. */
static inline bool parallel_joins_chunk(const struct job *job, uint32_t chunk)
{
    return (chunk == 0 || chunk + 1 == parallel_chunks(&job->parallel)) && parallel_joined_bytes(job) > 0;
}

/*
 * Asynchronous pipelines that are carried out. The first stage has a minibatch's gradient last. An update that needs
 * the other stages' gradients of its minibatch waits for it: of the last chunk, if the ends share a table; of all
 * chunks, if the job clips. Such a chunk is as stale as the first one (models/job/parallel.h), and has a gradient of
 * each minibatch whose update is to come.
 */

/* Returns true if the chunk's updates wait for the first stage, which is another one. */
bool parallel_waits_for_first(const struct job *job, uint32_t chunk);

/* Returns parallel_staleness() of the chunk, or of the one that it waits for. */
uint32_t parallel_chunk_staleness(const struct job *job, uint32_t chunk);

/* Returns the sums of gradients that the chunk has at once, used in turn. */
uint32_t parallel_gradient_count(const struct job *job, uint32_t chunk);

/* Bytes per trained parameter. */
struct parameter_bytes {
    uint64_t weight;
    uint64_t gradient; /* by the job's "gradients"; in offloaded jobs by its precision */
    uint64_t state; /* fp32 master of 16-bit weights, and moments */
};
struct parameter_bytes parallel_parameter_bytes(const struct job *job);

/*
 * Returns the bytes on each of `data` devices: everything (level 0), or a share of states (1), of gradients too (2),
 * of weights too (3). Shares are rounded up to whole parameters.
 */
struct rank_state {
    uint64_t weight_bytes, gradient_bytes, state_bytes;
};
struct rank_state parallel_zero_state(uint64_t parameters, struct parameter_bytes each, uint32_t data,
                                      uint32_t level);

/* Counts the parameters that a device updates. */
uint64_t parallel_updated_parameters(const struct job *job, struct parallel_layers layers);

/* Return bytes with the job's `zero`, without offloaded state (models/job/parallel_offload.h): on one device, which has
 * all frozen weights unless replicas split weights, and full tensors, whose weights are gathered and gradients
 * reduced. */
struct rank_state parallel_state(const struct job *job, struct parallel_layers layers);
struct rank_state parallel_whole_state(const struct job *job, struct parallel_layers layers);

/* Sums parallel_state() over a stage's chunks: what each device keeps between minibatches. */
struct rank_state parallel_stage_state(const struct job *job, uint32_t stage);

/* Returns the code of the gradients that replicas exchange where a job is carried out: of its "compression", or bf16
 * for gradients of 16 bits. */
enum compression_code parallel_gradient_code(const struct job *job);

/* Returns true if replicas encode their gradients before they exchange them. */
bool parallel_encodes_gradients(const struct job *job);

/* Counts gradients as data-parallel ranks reduce them; fewer bytes where they are encoded. */
uint64_t parallel_reduced_bytes(const struct job *job, struct parallel_layers layers);

/* --- activations ------------------------------------------------------------------------------ */

/*
 * Return the bytes that one microbatch keeps between its passes. With sequence parallelism, tensors marked (x) are
 * divided by t; others always are:
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
 * The incoming boundary (parallel_boundary_bytes()) is not counted. A profile keeps the bytes that it states, or with
 * full recomputation its layers' outputs.
 *
 * `dropout` adds a block's three dropouts and the embedding's, which our networks lack and published figures include:
 * a byte of mask per number, and attention's weights once more. For gpt2's shape, e = 2 and nothing split, a block
 * then has s b h (34 + 5 a s / h) bytes.
 *
 * The first counts stored (perhaps encoded) bytes, the second bytes in passes.
 */
uint64_t parallel_kept_bytes(const struct job *job, struct parallel_layers layers, bool dropout);
uint64_t parallel_plain_kept_bytes(const struct job *job, struct parallel_layers layers, bool dropout);

/* Return the bytes that a layer passes on for one microbatch, and whose gradient comes back: x: e R C. The first
 * counts stored (perhaps encoded) bytes, the second bytes in passes. */
uint64_t parallel_boundary_bytes(const struct job *job, uint64_t layer);
uint64_t parallel_plain_boundary_bytes(const struct job *job, uint64_t layer);

/* Counts what each rank of a tensor group sends: all, or its part if scattered. */
uint64_t parallel_sent_bytes(const struct job *job, uint64_t layer);

/*
 * Returns the workspace of passes: the maximum of
 *   blocks      the gradient of the stream e R C (x) and the gradients of q, k and v or of the feed-forward
 *               part's F (llama: 2 F) columns; with sequence parallelism the gathered rows e R C; recomputed tensors
 *   head        2 e R C, and the logits' gradient once more in 16 bits for 16-bit jobs
 *   embedding   e R C of whole rows
 *   profile     recomputed tensors
 * Recomputing a whole stage adds the tensors that all its layers keep. Compressed boundaries add the decoded ones and
 * the incoming one's gradient; compressed activations add all decoded activations.
 */
uint64_t parallel_workspace_bytes(const struct job *job, struct parallel_layers layers);

#endif
