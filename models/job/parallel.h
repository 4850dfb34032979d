/*
 * Parallel jobs: degrees of parallelism, and the pipeline schedule.
 *
 *     "parallel": {"tensor": 8, "pipeline": 8, "data": 4, "chunks": 2, "schedule": "interleaved",
 *                  "recompute": "selective", "collective": "ring", "sequence": true, "zero": 1,
 *                  "prefetch": 1, "first_device": 0, "cut": [3, 2, 3], "slices": [512, 512], "buckets": 1,
 *                  "offload": "states", "storage": false, "delayed": false, "swap": false, "choose": false}
 *     --parallel tp=8,pp=8,dp=4,v=2,sp,zero=1 --schedule interleaved --recompute selective
 *
 * A parallel job runs on tensor * data * pipeline devices at once, starting at `first_device`:
 *
 *     device of rank (t, d, p) = first_device + t + tensor * (d + data * p)
 *
 * Tensor groups are thus closest together, stages farthest apart. The devices of one stage are a *gang*: a grid with
 * one axis per kind of group (planner/plan.h). A minibatch has job->microbatches in total, job->microbatches / data on
 * each replica.
 *
 * Stages. The blocks (a profile's layers) are cut into pipeline * chunks ranges, the chunks (Megatron-LM's model
 * chunks), of equal length (the first longer by one if they do not divide), or of given or balanced lengths. The first
 * chunk also has the embedding, the last the head. The c-th chunk of stage p, from 0, is chunk c * pipeline + p; in a
 * V (zb-v) the second is chunk 2 pipeline - 1 - p. With one stage, the all-reduce of a chunk's gradients overlaps with
 * the backward passes over earlier chunks.
 *
 * Buckets. On several stages with gpipe, 1f1b, pipedream or 2bw, each stage's layers form `buckets` chunks (the first
 * longer by one layer), which follow each other in every pass. After the last microbatch's backward pass over a chunk,
 * its gradients are exchanged while earlier chunks compute. A boundary between buckets is not sent. Buckets do not
 * change the activations kept.
 *
 *     "pipeline": 2, "data": 4, "buckets": 5        --parallel replicas=15-1,buckets=6 --schedule pipedream
 *
 *     "data": 4, "sum": "tree"                      --parallel dp=4,tree
 *
 * Order of sums. Gradients and losses are added up microbatch by microbatch, and then replica by replica. With `tree`
 * they are added up as one balanced binary tree over the minibatch's microbatches, ((0 + 1) + (2 + 3)) + ((4 + 5) + 6):
 * replicas with 2^k microbatches each have whole branches, so that any number of replicas gives the same bits. Each
 * rank has partial sums of up to log2(its microbatches) further gradients (models/job/chunk_memory.h). The key "sum" of
 * a job says the same for all ways to run it: a spilled job has these partial sums in the workspace of a shard
 * (memory_level() in models/job/memory.h), and the bits of its replicas.
 *
 *     "tensor": 2, "tensor_pieces": 8               --parallel tp=2,tensor_pieces=8
 *
 * Pieces of products. A tensor group adds up its devices' parts of products, so its bits depend on their number. With
 * `tensor_pieces` P, a power of two, every device computes its products in P / tensor pieces and adds those up as a
 * balanced tree, whose upper levels are the sums over devices: any `tensor` that divides P has the same bits, 1
 * included.
 *
 * Data parallelism. Every rank has a full copy of the state that `zero` does not split, and a share of the rest, with
 * any schedule and any tensor and sequence parallelism:
 *
 *   0  gradients are added up over the ranks once per minibatch (all-reduce)
 *   1  optimizer states are split: reduce-scatter, a step on the share, all-gather of the weights
 *   2  gradients are split too: each chunk's gradients are reduced to shares after its backward pass of every
 *      microbatch
 *   3  weights are split too (FSDP): they are gathered before every pass over a chunk that multiplies by them, while
 *      the previous `prefetch` passes compute, and freed after the pass
 *
 * A tied table exists twice if embedding and head are on two stages. Its gradients are added up over both once per
 * minibatch, after the sums over replicas (see models/job/parallel_memory.h).
 *
 * Offloading (models/job/parallel_offload.h). Sharded state does not have to stay on the devices. `offload` moves the
 * optimizer states and the step to the host ("states", ZeRO-Offload), or the weights as well ("weights",
 * ZeRO-Infinity), in host memory or, with `storage`, on disk. With `delayed` the host updates during the next
 * minibatch: W(t+1) = W(t) - v grad f(W(t-1)) on all stages, but for the first minibatch after a flush. With "weights"
 * and `zero` 0 hosts have all weights and add up gradients themselves (KARMA).
 *
 * Swapping. With `swap`, activations of the first chunks go to the host after their forward passes and return for the
 * backward pass; activations of the last chunks stay, as far as memory allows
 * (planner/parallel/parallel_job_layout.h). This needs one stage without tensor groups, with offloaded weights. With
 * `choose`, the planner selects chunks that keep only their inputs and are recomputed
 * (planner/parallel/parallel_job_recompute.h); others swap the activations kept by `recompute`. The choice, made or
 * given, has one letter per chunk: r for recomputed; s for swapped, or staying while memory is left.
 *
 *     "swap": true, "choose": true        "swap": true, "choices": "srsrs"        --parallel ...,swap,choose
 *
 * Boundaries. Every rank of a tensor group sends the whole boundary to its place in the next stage. With `scatter`
 * (Megatron-LM's scatter/gather) each sends a part over its own NIC, and the receiving group gathers. With sequence
 * parallelism each rank always has only a part.
 *
 * Copies between stages overlap with passes. With `blocking` a stage computes nothing while it fetches, as in programs
 * that wait for PyTorch's receives at once (Megatron-LM, TeraPipe's released code); the sender continues.
 *
 * Collectives of tensor groups. Some overlap with products that do not need them (models/job/parallel_work.h). With
 * `exposed` passes wait for every one, as in Megatron-LM until the end of 2021. With `overlap` blocks wait for none:
 * products are cut, and their parts compute while others are sent (Transformer Engine's user buffers). The updates of
 * a minibatch then come in the order of the chunks, so that weights split by `zero` 1 or 2 are gathered during the next
 * minibatch's forward passes (Megatron-Core's --tp-comm-overlap and --overlap-param-gather).
 *
 * Slices (terapipe). A causal network's tokens need only earlier tokens: a microbatch goes through the stages in
 * slices, forward from its beginning, backward from its end. Later slices attend to more tokens; the planner chooses
 * their lengths unless they are given (planner/parallel/pipeline/slice_partition.h). Attention to earlier tokens is
 * counted as products for each head, with scores in memory where the job is only simulated.
 *
 * Asynchronous schedules (pipedream, 2bw) have no flush: each stage updates its weights by itself. A microbatch passes
 * forward and backward with one version of the weights, which the stage keeps until then (weight stashing). That
 * version is stale:
 *
 *   pipedream  an update after every microbatch; W(t+1) = W(t) - v grad f(W1(t-P+1), W2(t-P+2), ..., WP(t)), so the
 *              first of P stages is P - 1 updates old, the last 0. Stage p stores P - p versions, one per
 *              microbatch in flight
 *   2bw        an update after every m >= P microbatches; W(t+1) = W(t) - v grad f(W(t-1)) on all stages. Each stage
 *              stores two versions
 *
 * Data-parallel ranks work in step and add up their gradients for each update.
 *
 *     "schedule": "pipedream", "flush": 100        --parallel pp=4,flush=100 --schedule pipedream
 *
 * Flushes. After every `flush`-th minibatch since the training began, and before each evaluation, the pipeline runs
 * empty: all stages have the weights of the same minibatch, and the next one begins with them. With F the last flush
 * before update t, its microbatches use the version after max(t - staleness, F) updates. Only there can a checkpoint be
 * taken. A flush costs the bubble of a synchronous pipeline. Delayed updates are flushed likewise: the next minibatch
 * waits for the newest weights.
 *
 * Replicas. In asynchronous schedules, gpipe and 1f1b, stages may have unequal numbers of `replicas` instead of
 * `data`,
 *
 *     "replicas": [15, 1], "schedule": "pipedream"        --parallel replicas=15-1 --schedule pipedream
 *
 * With r replicas on a stage, microbatch b of the whole job belongs to replica b mod r, and the device of rank (t, d,
 * p) is first_device + t + tensor * (d + replicas of earlier stages). With gpipe, 1f1b and 2bw, replicas add up (not
 * average) their gradients for an update, so unequal shares still give the minibatch's gradient. With pipedream a
 * minibatch has one microbatch, and a stage with r replicas updates after every r, by the mean of their gradients.
 * With n(p) microbatches in flight on each replica of stage p, its weights are n(p) - 1 of its own updates old; n(p) =
 * ceil(devices from stage p on / replicas of stage p), also for 1f1b.
 *
 * Numbers. Formats are as in models/kernel/precision.h; sent data has the format of activations. With "gradients":
 * "bf16", weight gradients have 16 bits too, also when added up, as ZeRO counts them: 16 bytes per parameter with
 * AdamW instead of 18.
 *
 * Sources: Megatron-LM, arXiv 2104.04473 (order of ranks, interleaving); ZeRO, arXiv 1910.02054 (stages of
 * partitioning); PipeDream, SOSP 2019 and arXiv 1806.03377 (weight stashing), arXiv 2006.09503 (2BW); Korthikanti et
 * al., arXiv 2205.05198 (sequence parallelism, selective recomputation).
 */
#ifndef SPILLWAY_MODELS_JOB_PARALLEL_H
#define SPILLWAY_MODELS_JOB_PARALLEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json/json_in.h"
#include "models/cost/collective.h"

struct json_out;

enum { PARALLEL_DEGREE_MAX = 1 << 14, PARALLEL_CHUNKS_MAX = 1 << 10, PARALLEL_SLICES_MAX = 64,
       PARALLEL_CUTS_MAX = 128, PARALLEL_REPLICAS_MAX = PARALLEL_CUTS_MAX };

/* The rules are in planner/parallel/pipeline/pipeline.h. */
enum pipeline_schedule {
    PIPELINE_GPIPE,       /* all forward, then all backward */
    PIPELINE_1F1B,        /* PipeDream-Flush: synchronous */
    PIPELINE_INTERLEAVED, /* 1F1B with several chunks per stage */
    PIPELINE_ZB_H1,       /* zero bubble: weights' gradients fill bubbles, memory as 1F1B */
    PIPELINE_ZB_H2,       /* more microbatches in flight, no bubble at the start */
    PIPELINE_ZB_V,        /* two chunks per stage, the second in reverse order */
    PIPELINE_PIPEDREAM,   /* 1F1B without a flush; stale, see above */
    PIPELINE_2BW,         /* PipeDream with several microbatches per update, two versions of weights */
    PIPELINE_TERAPIPE,    /* slices of tokens: all forward, then all backward; synchronous */
    PIPELINE_SCHEDULE_COUNT
};
extern const char *const pipeline_schedule_names[PIPELINE_SCHEDULE_COUNT]; /* "gpipe", "1f1b", ... */

/* Returns true if minibatches follow each other without a flush. */
static inline bool pipeline_is_asynchronous(uint32_t schedule)
{
    return schedule == PIPELINE_PIPEDREAM || schedule == PIPELINE_2BW;
}

/* Kept activations; the others are recomputed (activation checkpointing, rematerialization). */
enum parallel_recompute {
    RECOMPUTE_NONE,      /* all */
    RECOMPUTE_SELECTIVE, /* all except those inside attention */
    RECOMPUTE_FULL,      /* only the layer's input */
    RECOMPUTE_STAGE,     /* nothing: all is recomputed from the chunk's input */
    RECOMPUTE_COUNT
};

/* Returns true if forward passes are repeated. */
static inline bool recompute_repeats(uint32_t recompute)
{
    return recompute >= RECOMPUTE_FULL;
}

extern const char *const recompute_names[RECOMPUTE_COUNT];

/* A chunk's choice, if each has its own. */
enum { PARALLEL_SWAPPED = 's', PARALLEL_AGAIN = 'r' };

/* How the layers are cut into chunks. */
enum parallel_partition {
    PARALLEL_EQUAL,    /* chunks of equal length */
    PARALLEL_BALANCED, /* least slowest chunk (planner/parallel/parallel_job_cut.h) */
    PARALLEL_PIPEDREAM, /* PipeDream's dynamic program: divides one stage's replicas among stages (likewise) */
    PARALLEL_RANNC,    /* also chooses stages, replicas and microbatches (planner/parallel/parallel_job_rannc.h) */
    PARALLEL_PARTITION_COUNT
};

/* Split by data-parallel ranks; each level includes the ones above. */
enum zero_level { ZERO_NOTHING, ZERO_STATES, ZERO_GRADIENTS, ZERO_WEIGHTS };

/* Parts of a rank's shares off its device; each level includes the ones above. */
enum parallel_offload {
    OFFLOAD_NOTHING,
    OFFLOAD_STATES,  /* updated by the host with gradients copied to it */
    OFFLOAD_WEIGHTS, /* fetched for every pass */
    PARALLEL_OFFLOAD_COUNT
};

/* Whether the executor carries out the job. The planner decides, and its plans say so. */
enum parallel_carrying {
    PARALLEL_UNDECIDED, /* in plans: not carried out */
    PARALLEL_SIMULATED, /* not wanted, although it may be possible */
    PARALLEL_CARRIED_OUT
};

/* The fastest, or one of models/cost/collective.h where it applies. */
enum parallel_algorithm {
    PARALLEL_FASTEST,
    PARALLEL_RING, /* from here on 1 + enum collective_algorithm */
    PARALLEL_ALGORITHM_COUNT = PARALLEL_RING + COLLECTIVE_ALGORITHM_COUNT
};

struct parallel {
    uint32_t tensor, pipeline, data; /* at least 1; all 0: not parallel */
    uint32_t chunks;                 /* per stage, at least 1 */
    uint32_t buckets;                /* per stage; 0 and 1: one */
    uint32_t schedule;               /* enum pipeline_schedule */
    uint32_t recompute;              /* enum parallel_recompute */
    bool sequence;                   /* norms and dropouts are split along the sequence in tensor groups */
    uint32_t zero;                   /* enum zero_level */
    uint32_t first_device;
    uint32_t prefetch;               /* how many passes ahead weights are gathered at zero level 3; default 1.
                                        Memory holds `prefetch` + 1 chunks */
    uint32_t collective;             /* enum parallel_algorithm */
    uint32_t slices;                 /* of terapipe; 0: the planner's choice, or none */
    uint32_t slice_tokens[PARALLEL_SLICES_MAX]; /* their sum is the job's sequence */
    uint32_t partition;              /* enum parallel_partition */
    uint32_t cuts;                   /* chunks with given lengths: all, or 0: see `partition` */
    uint32_t cut_lengths[PARALLEL_CUTS_MAX]; /* blocks (or layers) of each chunk */
    uint32_t offload;                /* enum parallel_offload */
    bool storage;                    /* for offloaded state; gradients are on the host */
    bool delayed;                    /* the host updates during the next minibatch */
    uint32_t replicated;             /* stages with given replicas: all (then `data` is 1), or 0: `data` each */
    uint32_t replicas[PARALLEL_REPLICAS_MAX];
    bool swap;                       /* first chunks' activations go to the host */
    bool choose;                     /* or are recomputed, by the planner's decision */
    uint32_t chosen;                 /* chunks that `choices` decides: all, or 0 */
    char choices[PARALLEL_CUTS_MAX]; /* PARALLEL_SWAPPED or PARALLEL_AGAIN; not terminated */
    bool exposed;                    /* passes wait for collectives of tensor groups */
    bool overlap;                    /* blocks wait for no collective of tensor groups, forward passes not for all
                                        weights */
    bool blocking;                   /* no computation during a fetch */
    uint32_t flush;                  /* asynchronous, delayed: minibatches between flushes; 0: only where it is
                                        evaluated */
    bool tree;                       /* gradients and losses are added up as a tree ("sum": "tree") */
    uint32_t tensor_pieces;          /* of products, over a tensor group; 0: one for each device */
    bool scatter;                    /* ranks of a tensor group send parts of a boundary */
    uint32_t carrying;               /* enum parallel_carrying */
    uint32_t slice_begin, slice_length; /* of parallel_slice(): tokens; length 0: all */
};

static inline bool parallel_is_set(const struct parallel *parallel)
{
    return parallel->tensor > 0;
}

/* Returns true if devices compute slices of the network (network_slice()): of a tensor group, or in pieces. */
static inline bool parallel_has_slices(const struct parallel *parallel)
{
    return parallel->tensor > 1 || parallel->tensor_pieces > 0;
}

/* True when data-parallel ranks have shares of this state; false with one rank. */
static inline bool parallel_splits(const struct parallel *parallel, enum zero_level level)
{
    return parallel->data > 1 && parallel->zero >= level;
}

/* Returns true if passes fetch the weights that they multiply by. */
static inline bool parallel_fetches_weights(const struct parallel *parallel)
{
    return parallel_splits(parallel, ZERO_WEIGHTS) || parallel->offload == OFFLOAD_WEIGHTS;
}

/* Returns COLLECTIVE_ALGORITHM_COUNT when none is forced. */
static inline enum collective_algorithm parallel_algorithm(const struct parallel *parallel)
{
    return parallel->collective == PARALLEL_FASTEST ? COLLECTIVE_ALGORITHM_COUNT
                                                    : (enum collective_algorithm)(parallel->collective - 1);
}

/* Counts a stage's tensor groups. */
static inline uint32_t parallel_replicas(const struct parallel *parallel, uint32_t stage)
{
    return parallel->replicated > 0 ? parallel->replicas[stage] : parallel->data;
}

/* Counts tensor groups of earlier stages. */
static inline uint64_t parallel_replicas_before(const struct parallel *parallel, uint32_t stage)
{
    uint64_t sum = (uint64_t)parallel->data * stage;
    if (parallel->replicated == 0) return sum;
    sum = 0;
    for (uint32_t s = 0; s < stage; s++) sum += parallel->replicas[s];
    return sum;
}

/* Counts the job's devices. */
static inline uint64_t parallel_devices(const struct parallel *parallel)
{
    return parallel->tensor * parallel_replicas_before(parallel, parallel->pipeline);
}

/* Counts a stage's replicas that take microbatches in turn; 1 when all work in step. */
static inline uint32_t parallel_turns(const struct parallel *parallel, uint32_t stage)
{
    return parallel->replicated > 0 ? parallel->replicas[stage] : 1;
}

/* Counts a stage's chunks whose gradients are exchanged separately. */
static inline uint32_t parallel_buckets(const struct parallel *parallel)
{
    return parallel->buckets > 0 ? parallel->buckets : 1;
}

/* Counts pieces of `partition` or `cut`: chunks, or with buckets groups of chunks. */
static inline uint32_t parallel_cut_count(const struct parallel *parallel)
{
    return parallel->pipeline * parallel->chunks;
}

/* Returns pipeline * chunks * buckets. */
static inline uint32_t parallel_chunks(const struct parallel *parallel)
{
    return parallel_cut_count(parallel) * parallel_buckets(parallel);
}

/* A chunk's stage, and its chunk or bucket there. */
struct parallel_place {
    uint32_t stage, on_stage;
};
static inline struct parallel_place parallel_place(const struct parallel *parallel, uint32_t chunk)
{
    if (parallel_buckets(parallel) > 1)
        return (struct parallel_place){chunk / parallel->buckets, chunk % parallel->buckets};
    uint32_t on_stage = chunk / parallel->pipeline, stage = chunk % parallel->pipeline;
    bool back = parallel->schedule == PIPELINE_ZB_V && on_stage % 2 == 1;
    return (struct parallel_place){back ? parallel->pipeline - 1 - stage : stage, on_stage};
}

/* Counts a stage's passes over a microbatch in each direction. */
static inline uint32_t parallel_slices(const struct parallel *parallel)
{
    return parallel->slices > 0 ? parallel->slices : 1;
}

/* Returns slices in order forward, reversed backward. */
static inline uint32_t parallel_slice_of_pass(const struct parallel *parallel, uint64_t n, bool backward)
{
    uint32_t slices = parallel_slices(parallel), at = (uint32_t)(n % slices);
    return backward ? slices - 1 - at : at;
}

/*
 * Returns a job whose microbatch is one slice of the tokens, which attend to themselves and to earlier ones; for
 * models/job/parallel_work.h and models/job/parallel_memory.h. Without slices returns the job. A profile's layer takes
 * the slice's share.
 */
struct hardware;
struct job;
struct network;
struct job parallel_slice(const struct job *job, uint32_t slice);

/* Makes no copy without slices: returns `job`, or room. */
const struct job *parallel_slice_in(const struct job *job, uint32_t slice, struct job *room);

/* Returns the job as a device of a tensor group computes it, with a slice of the network (network_slice()). Makes no
 * copy without tensor groups: returns `job`, or room. */
const struct job *parallel_share_in(const struct job *job, struct job *room);

/* Returns the tokens of a whole sequence, also for a job of parallel_slice(). */
uint64_t parallel_sequence(const struct job *job);

/* Returns a slice's part; parts add up to `whole`. */
uint64_t parallel_slice_share(const struct parallel *parallel, uint64_t whole);

/* Returns true if a stage with r replicas updates after every r minibatches. */
static inline bool parallel_has_own_pace(const struct parallel *parallel)
{
    return parallel->replicated > 0 && parallel->schedule == PIPELINE_PIPEDREAM;
}

/* Returns the microbatches in flight on each replica of a stage, for 1f1b and asynchronous schedules: ceil(replicas
 * from this stage on / its own replicas), for the first stage PipeDream's NOAM. This keeps all devices busy only if
 * no microbatch waits; between stages with different pass times they do: shapes 3-2-1, 2-3-4 and 1-2-3-2-1 take 5 /
 * 4 of (the slowest stage's time / its replicas), see tests/planner/parallel/test_parallel_job_replicas.c,
 * no_slack(). */
static inline uint32_t parallel_depth(const struct parallel *parallel, uint32_t stage)
{
    uint64_t all = parallel_replicas_before(parallel, parallel->pipeline) - parallel_replicas_before(parallel, stage);
    uint32_t own = parallel_replicas(parallel, stage);
    return (uint32_t)((all + own - 1) / own);
}

/* Returns true for schedules with backward passes in two units, of the gradients of inputs and of weights. */
static inline bool pipeline_has_halves(uint32_t schedule)
{
    return schedule == PIPELINE_ZB_H1 || schedule == PIPELINE_ZB_H2 || schedule == PIPELINE_ZB_V;
}

/* Returns the least number of minibatches after which all stages have updated: above 1 where stages have their own
 * pace. */
uint64_t parallel_round(const struct parallel *parallel);

/*
 * Returns the updates by which a chunk's weights are stale: microbatches of update u use the version after max(u -
 * staleness, 0) updates, so staleness + 1 versions exist. pipedream is stale by the microbatches in flight, 2bw and
 * delayed updates by 1.
 */
static inline uint32_t parallel_staleness(const struct parallel *parallel, uint32_t chunk)
{
    if (parallel->schedule == PIPELINE_2BW || parallel->delayed) return 1;
    return parallel->schedule == PIPELINE_PIPEDREAM
           ? parallel_depth(parallel, parallel_place(parallel, chunk).stage) - 1 : 0;
}

/* Returns true if passes may lack updates of their weights: in asynchronous schedules, and with delayed updates. */
static inline bool parallel_is_stale(const struct parallel *parallel)
{
    return pipeline_is_asynchronous(parallel->schedule) || parallel->delayed;
}

/* Returns true if all stages of a job with stale weights have those of the same minibatch after `minibatch`, counted
 * from 0 among the remaining ones. Other jobs flush after every one. */
bool parallel_flushes_after(const struct job *job, uint64_t minibatch);

/* Returns the minibatches, of `done`, before the last such flush; 0: there was none. */
uint64_t parallel_flushed_before(const struct job *job, uint64_t done);

/* Return the microbatches that a replica adds up for an update, and the training's updates. `turn` selects one of
 * the replicas that take turns, of which the first may have one microbatch more; parallel_microbatches() counts for
 * the first. */
uint64_t parallel_microbatches_in_turn(const struct job *job, uint32_t stage, uint32_t turn);
uint64_t parallel_microbatches(const struct job *job, uint32_t stage);
uint64_t parallel_updates(const struct job *job, uint32_t stage);

/* Makes stages of equally many replicas what "data" makes of them: in a schedule with a flush, where the replicas
 * divide the microbatches. Returns true if it did. */
bool parallel_settle_replicas(struct job *job);

/* The microbatches of a minibatch that a replica passes over, numbered in the minibatch: first, first + step, ...
 * Replicas in turn take every r-th one, others ranges of equal length. */
struct parallel_microbatches {
    uint64_t first, step, count;
};
struct parallel_microbatches parallel_microbatches_of(const struct job *job, uint32_t stage, uint32_t replica);

/* Returns the most microbatches of a minibatch whose data a replica of the first or the last stage has. */
uint64_t parallel_microbatches_read(const struct job *job);

/*
 * Checks that the options fit each other and the job:
 * - chunks: with several stages, schedules without chunks have one; zb-h1 and zb-h2 always one, zb-v two, interleaved
 *   at least two, and for interleaved `pipeline` divides a replica's microbatches;
 * - buckets: only gpipe, 1f1b, pipedream and 2bw on several stages, each of which has a layer per bucket;
 * - flush: an asynchronous schedule, whose stages have equal numbers of replicas, or delayed updates that are carried
 *   out; likewise where it is evaluated;
 * - pipedream: one microbatch per replica; 2bw: at least one microbatch per stage (with `replicas`: as in
 *   flight); both need `zero` 0;
 * - replicas: they divide the microbatches that they take in turn; for gpipe and 1f1b, which have no other
 *   microbatches, they are at most their number; they have all state that they update (`zero` 0, no `offload`);
 * - terapipe: a causal network, slices whose sum is the sequence, no sequence parallelism;
 * - offload: offloaded state is split (models/job/parallel_offload.h);
 * - compression: compressed data is sent. Boundaries need several stages and undivided backward passes; gradients
 *   need several replicas and `zero` 0 or 1;
 * - there are layers for every chunk; `data` divides the microbatches; `tensor` divides heads, widths and, with
 *   `sequence`, tokens; networks known only by a profile have no tensor parallelism;
 * - the job needs nothing that plans of parallel jobs lack: evaluations and clipping of jobs that are only simulated;
 * - frozen tensors and adapters: no `tensor_pieces`;
 * - scatter: tensor groups have whole boundaries. `zero` works with all other schedules.
 * Errors: STATUS_BAD_INPUT with a message but without a position.
 */
MUST_CHECK enum status parallel_check(const struct job *job, struct error *err);

/*
 * True when the job uses a single device and computes as under the resident policies, so its plans can be carried out.
 * False for networks listed layer by layer, jobs that clip, and another stack than the executor's (enum
 * hardware_stack), where the job's own recomputation and schedule apply.
 */
bool parallel_is_alone(const struct hardware *hardware, const struct job *job);

/*
 * The executor carries out pipelines and their replicas, which may split states: the chunks' buffers are those of
 * models/job/chunk_memory.h, and their plans have batches, losses and copies of states. Other jobs are only simulated,
 * with the closed forms of models/job/parallel_memory.h.
 */

/* Returns why a job cannot be carried out, such as "tensor groups", or NULL; static text. `hardware` may be NULL. */
const char *parallel_only_simulated(const struct hardware *hardware, const struct job *job);

/* Returns true for a job that a planner would have carried out. */
bool parallel_may_be_carried_out(const struct hardware *hardware, const struct job *job);

/* How gradients and losses are added up. */
enum sum_order { SUM_IN_ORDER, SUM_TREE, SUM_ORDER_COUNT };
extern const char *const sum_order_names[SUM_ORDER_COUNT]; /* "order", "tree" */

/* Returns the leaves of the left branch of a tree of `count` leaves, at least 2: the largest power of two below it. */
static inline uint32_t parallel_tree_half(uint32_t count)
{
    uint32_t half = 1;
    while (2 * half < count) half *= 2;
    return half;
}

/* Returns true for a job of a plan that is carried out. */
static inline bool parallel_is_carried_out(const struct parallel *parallel)
{
    return parallel_is_set(parallel) && parallel->carrying == PARALLEL_CARRIED_OUT;
}

/* Returns true if a group of `tensor` devices may divide the rows of norms and sums ("sequence"). */
bool parallel_divides_tokens(const struct job *job, uint32_t tensor);

/* Returns true if the layer's output is sent to another stage: not inside a chunk, nor between a stage's chunks or
 * buckets. */
bool parallel_crosses(const struct job *job, uint64_t layer);

/* Returns true if the layer's output is sent and compressed. */
bool parallel_compresses(const struct job *job, uint64_t layer);

/* Counts blocks, or listed layers. */
uint64_t parallel_pieces(const struct network *network);

/* The layers of a chunk: [first, first + count). */
struct parallel_layers {
    uint64_t first, count;
};
struct parallel_layers parallel_layers(const struct job *job, uint32_t chunk);

/* Returns enum parallel_recompute for a chunk or a part of it. This project's executor keeps nothing inside attention,
 * so it has nothing to recompute selectively. */
uint32_t parallel_recompute(const struct job *job, struct parallel_layers layers);

/* Reads "parallel"; absent keys leave *out untouched. */
MUST_CHECK enum status parallel_parse(const struct json_input *in, const json_t *value,
                                      struct parallel *out, struct error *err);
void parallel_write(const struct parallel *parallel, struct json_out *out, const char *key);

/* Reads "tp=8,pp=8,dp=4,v=2,sp,zero=3,prefetch=2,offload=weights,storage" or "tp=2,replicas=15-1", which also gives
 * the stages. Other options are untouched; degrees of a job that was not parallel become 1.
 * Errors: STATUS_BAD_INPUT. */
MUST_CHECK enum status parallel_parse_text(const char *text, struct parallel *out, struct error *err);

/* Writes that form without degrees of 1, or "one device"; many stages become "replicas=2-2-2-...". Returns `text`. */
enum { PARALLEL_TEXT_BYTES = 224 };
const char *parallel_text(const struct parallel *parallel, char text[PARALLEL_TEXT_BYTES]);

#endif
