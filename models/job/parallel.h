/*
 * Parallel jobs: the degrees of each kind of parallelism, and the pipeline schedule.
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
 * Tensor groups are thus closest together, neighbouring stages farthest apart. The devices of one stage are a *gang*:
 * a grid with one axis per kind of group (planner/plan.h). Every minibatch has job->microbatches microbatches in
 * total, and job->microbatches / data on each replica.
 *
 * Stages. The blocks are cut into pipeline * chunks runs (layer ranges) of equal length (if they do not divide
 * evenly, the first runs are longer by one block), or of given or balanced lengths. The first run also has the
 * embedding, the last the head. The layers of a profile are cut likewise. Chunk c of stage p is run c * pipeline + p;
 * in a V (zb-v) chunk 1 returns in reverse: run 2 pipeline - 1 - p. With one stage, chunks are the units in which
 * data-parallel ranks exchange gradients: the all-reduce of a run's gradients overlaps with the backward passes over
 * earlier runs.
 *
 * Buckets. On several stages with gpipe, 1f1b, pipedream or 2bw, `buckets` play the same role. Each stage's layers
 * form this number of runs (the first runs are longer by one layer), which follow each other in every pass. After the
 * last microbatch's backward pass over a run, its gradients are exchanged while the backward passes over earlier runs
 * compute. A boundary between two buckets is not sent. Buckets do not change the activations kept.
 *
 *     "pipeline": 2, "data": 4, "buckets": 5        --parallel replicas=15-1,buckets=6 --schedule pipedream
 *
 * Data parallelism. Every rank has a full copy of the state that `zero` does not split, and a share of the state that
 * it splits, with any schedule and any tensor and sequence parallelism:
 *
 *   0  gradients are added up over the ranks once per minibatch (all-reduce)
 *   1  optimizer states are split: reduce-scatter, a step on the share, all-gather of the weights
 *   2  gradients are split too: each run's gradients are reduced to shares after its backward pass of every
 *      microbatch
 *   3  weights are split too (FSDP): they are gathered before every pass over a run that multiplies by them, while
 *      the previous `prefetch` passes compute, and freed after the pass
 *
 * A tied table exists twice if the embedding and the head are on two stages. Its gradients are added up over both
 * stages once per minibatch, after the sums over replicas and before both stages update it (see
 * models/job/parallel_memory.h).
 *
 * Offloading (models/job/parallel_offload.h). Sharded state does not have to stay on the devices. `offload` moves the
 * optimizer states and the step to the host ("states", ZeRO-Offload), or the weights as well ("weights",
 * ZeRO-Infinity), in host memory or, with `storage`, on disk. With `delayed` the host updates during the passes over
 * the next minibatch: W(t+1) = W(t) - v grad f(W(t-1)), a delay of one update on all stages. With "weights" and
 * `zero` 0 each rank has all weights on its host, and hosts add up gradients themselves (KARMA).
 *
 * Swapping. With `swap`, activations leave the device too. Activations of the first runs go to the host after their
 * forward passes and return with the weights for the backward pass; activations of the last runs stay, as far as
 * memory allows (planner/parallel/parallel_job_layout.h). This needs one stage without tensor groups, with offloaded
 * weights. With `choose`, the planner selects runs that keep only their inputs and are recomputed, as with "full"
 * recomputation (planner/parallel/parallel_job_recompute.h); the other runs swap the activations kept by `recompute`.
 * The choice, made by the planner or given, has one letter per run: r for recomputed; s for swapped, or staying while
 * memory is left.
 *
 *     "swap": true, "choose": true        "swap": true, "choices": "srsrs"        --parallel ...,swap,choose
 *
 * Boundaries. Every rank of a tensor group has each boundary whole and sends all of it to the rank at its place in
 * the next stage. With `scatter` ("scatter": true, --parallel scatter; Megatron-LM's scatter/gather) each rank sends
 * a part of it over its own NIC, and the receiving group gathers the parts. With sequence parallelism each rank
 * always has only a part.
 *
 * Copies between stages overlap with passes. With `blocking` ("blocking": true, --parallel blocking) a stage computes
 * nothing while it fetches, as in programs that wait for PyTorch's receives at once (Megatron-LM, TeraPipe's released
 * code). The sending stage continues to compute.
 *
 * Collectives of tensor groups. Some overlap with products that do not need them (models/job/parallel_work.h). With
 * `exposed` ("exposed": true, --parallel exposed) passes wait for every collective, as in Megatron-LM until the end
 * of 2021.
 *
 * Slices (terapipe). Tokens of a causal network need only earlier tokens. A microbatch therefore goes through the
 * stages in slices, one after the other: forward from its beginning, backward from its end. Later slices attend to
 * more tokens and take longer; the planner chooses their lengths unless they are given
 * (planner/parallel/pipeline/slice_partition.h). Attention between a slice and earlier tokens is counted as products
 * for each head, with scores in memory.
 *
 * Asynchronous schedules (pipedream, 2bw) train differently from the others. There is no flush: minibatches enter one
 * after the other, and each stage updates its weights by itself. A stage passes a microbatch forward and backward
 * with the same version of the weights, which it keeps until then (weight stashing). That version is stale:
 *
 *   pipedream  an update after every microbatch; W(t+1) = W(t) - v grad f(W1(t-P+1), W2(t-P+2), ..., WP(t)), so the
 *              first of P stages is P - 1 updates old, the last 0. Stage p stores P - p versions, one per
 *              microbatch in flight
 *   2bw        an update after every m >= P microbatches; W(t+1) = W(t) - v grad f(W(t-1)) on all stages. Each stage
 *              stores two versions
 *
 * Data-parallel ranks work in step and add up their gradients for each update.
 *
 * Replicas. In asynchronous schedules, gpipe and 1f1b, stages may have unequal numbers of `replicas` instead of
 * `data`,
 *
 *     "replicas": [15, 1], "schedule": "pipedream"        --parallel replicas=15-1 --schedule pipedream
 *
 * Replicas take the microbatches of the whole job in turn: on every stage with r replicas, microbatch b belongs to
 * replica b mod r, and the device of rank (t, d, p) is first_device + t + tensor * (d + replicas of earlier stages).
 * The speed of a stage is the sum over its replicas. With gpipe, 1f1b and 2bw, replicas share the microbatches of a
 * minibatch and add up their gradients for its update. These are sums and not means. In synchronous schedules the
 * result is therefore the gradient of the minibatch even if a replica has one microbatch more than another. With
 * pipedream a minibatch has one microbatch, and a stage with r replicas updates after every r microbatches. With n(p)
 * microbatches in flight on each replica of stage p, its weights are n(p) - 1 of its own updates old. n(p) follows
 * from the later stages: n(p) = ceil(devices from stage p on / replicas of stage p). 1f1b has the same number in
 * flight.
 *
 * Numbers. Formats are as in models/kernel/precision.h; data sent between stages and in tensor groups has the format
 * of activations. With "gradients": "bf16", weight gradients have 16 bits too, also when microbatches are added up,
 * as ZeRO counts them: 16 bytes per parameter with AdamW instead of 18.
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

/* The order in which a stage passes microbatches forward and backward; planner/parallel/pipeline/pipeline.h has the
 * rules. */
enum pipeline_schedule {
    PIPELINE_GPIPE,       /* all forward, then all backward */
    PIPELINE_1F1B,        /* PipeDream-Flush: one forward, one backward; synchronous */
    PIPELINE_INTERLEAVED, /* 1F1B with several chunks of layers per stage */
    PIPELINE_ZB_H1,       /* zero bubble: the weights' gradients fill bubbles, memory as 1F1B */
    PIPELINE_ZB_H2,       /* ZB-H1 with more microbatches in flight, no bubble at the start */
    PIPELINE_ZB_V,        /* ZB with two chunks per stage, the second in reverse order of stages */
    PIPELINE_PIPEDREAM,   /* 1F1B without a flush, an update after every microbatch; stale, see above */
    PIPELINE_2BW,         /* PipeDream with several microbatches per update and two versions of the weights */
    PIPELINE_TERAPIPE,    /* sequences in slices of tokens: all forward, then all backward; synchronous */
    PIPELINE_SCHEDULE_COUNT
};
extern const char *const pipeline_schedule_names[PIPELINE_SCHEDULE_COUNT]; /* "gpipe", "1f1b", ... */

/* Returns true when minibatches follow each other without a flush. */
static inline bool pipeline_is_asynchronous(uint32_t schedule)
{
    return schedule == PIPELINE_PIPEDREAM || schedule == PIPELINE_2BW;
}

/* Activations of a layer that are kept between its passes. The others are recomputed (activation checkpointing,
 * rematerialization). */
enum parallel_recompute {
    RECOMPUTE_NONE,      /* all */
    RECOMPUTE_SELECTIVE, /* all except those inside attention, which are recomputed */
    RECOMPUTE_FULL,      /* only the layer's input */
    RECOMPUTE_STAGE,     /* nothing: the backward pass of a run recomputes all activations from the run's input */
    RECOMPUTE_COUNT
};

/* Returns true when forward passes are repeated. */
static inline bool recompute_repeats(uint32_t recompute)
{
    return recompute >= RECOMPUTE_FULL;
}

extern const char *const recompute_names[RECOMPUTE_COUNT];

/* The choice for a run, if each run has its own. */
enum { PARALLEL_SWAPPED = 's', PARALLEL_AGAIN = 'r' };

/* How the layers are cut into runs. */
enum parallel_partition {
    PARALLEL_EQUAL,    /* runs of equal length */
    PARALLEL_BALANCED, /* minimises the slowest run (planner/parallel/parallel_job_cut.h) */
    PARALLEL_PIPEDREAM, /* PipeDream's dynamic program: divides the given replicas of one stage among stages
                           (likewise) */
    PARALLEL_RANNC,    /* also chooses stages, replicas and microbatches, for the fastest minibatch
                          (planner/parallel/parallel_job_rannc.h) */
    PARALLEL_PARTITION_COUNT
};

/* State that data-parallel ranks split; each level includes the levels above it. */
enum zero_level { ZERO_NOTHING, ZERO_STATES, ZERO_GRADIENTS, ZERO_WEIGHTS };

/* Parts of a rank's shares that are not on its device; each level includes the levels above it. */
enum parallel_offload {
    OFFLOAD_NOTHING,
    OFFLOAD_STATES,  /* optimizer states, which the host updates with gradients copied to it */
    OFFLOAD_WEIGHTS, /* weights too; they are fetched for every pass */
    PARALLEL_OFFLOAD_COUNT
};

/* The algorithm of collectives that support it: the fastest, or one of models/cost/collective.h. */
enum parallel_algorithm {
    PARALLEL_FASTEST,
    PARALLEL_RING, /* from here on 1 + enum collective_algorithm */
    PARALLEL_ALGORITHM_COUNT = PARALLEL_RING + COLLECTIVE_ALGORITHM_COUNT
};

struct parallel {
    uint32_t tensor, pipeline, data; /* degrees, at least 1; all 0: not a parallel job */
    uint32_t chunks;                 /* chunks of layers per stage, at least 1 */
    uint32_t buckets;                /* consecutive runs of a stage; 0 and 1: one */
    uint32_t schedule;               /* enum pipeline_schedule */
    uint32_t recompute;              /* enum parallel_recompute */
    bool sequence;                   /* split norms and dropouts along the sequence in tensor groups */
    uint32_t zero;                   /* enum zero_level */
    uint32_t first_device;
    uint32_t prefetch;               /* how many passes ahead a stage gathers weights, at zero level 3; default 1.
                                        Memory holds the weights of `prefetch` + 1 runs */
    uint32_t collective;             /* enum parallel_algorithm */
    uint32_t slices;                 /* slices of terapipe; 0: the planner's choice, or not sliced */
    uint32_t slice_tokens[PARALLEL_SLICES_MAX]; /* tokens of each slice; their sum is the job's sequence */
    uint32_t partition;              /* enum parallel_partition */
    uint32_t cuts;                   /* number of runs with given lengths: all, or 0: as `partition` says */
    uint32_t cut_lengths[PARALLEL_CUTS_MAX]; /* blocks (layers of a profile) of each run */
    uint32_t offload;                /* enum parallel_offload */
    bool storage;                    /* offloaded state is on storage, gradients on the host */
    bool delayed;                    /* the host updates while the next minibatch computes */
    uint32_t replicated;             /* number of stages with given replicas: all (then `data` is 1), or 0: `data`
                                        replicas each */
    uint32_t replicas[PARALLEL_REPLICAS_MAX];
    bool swap;                       /* activations of the first runs go to the host between their passes */
    bool choose;                     /* or are recomputed; the planner decides for each run */
    uint32_t chosen;                 /* number of runs that `choices` decides: all, or 0 */
    char choices[PARALLEL_CUTS_MAX]; /* PARALLEL_SWAPPED or PARALLEL_AGAIN per run; not terminated */
    bool exposed;                    /* passes wait for all collectives of their tensor group */
    bool blocking;                   /* a stage does not compute while it fetches */
    bool scatter;                    /* each rank of a tensor group sends a part of a boundary; the receivers
                                        gather it */
    uint32_t slice_begin, slice_length; /* in jobs of parallel_slice(): the slice's tokens; length 0: all */
};

static inline bool parallel_is_set(const struct parallel *parallel)
{
    return parallel->tensor > 0;
}

/* Returns true when data-parallel ranks have shares of this state. False with a single rank. */
static inline bool parallel_splits(const struct parallel *parallel, enum zero_level level)
{
    return parallel->data > 1 && parallel->zero >= level;
}

/* Returns true when passes fetch the weights that they multiply by. */
static inline bool parallel_fetches_weights(const struct parallel *parallel)
{
    return parallel_splits(parallel, ZERO_WEIGHTS) || parallel->offload == OFFLOAD_WEIGHTS;
}

/* Returns the algorithm of collectives; COLLECTIVE_ALGORITHM_COUNT when none is forced. */
static inline enum collective_algorithm parallel_algorithm(const struct parallel *parallel)
{
    return parallel->collective == PARALLEL_FASTEST ? COLLECTIVE_ALGORITHM_COUNT
                                                    : (enum collective_algorithm)(parallel->collective - 1);
}

/* Returns the number of tensor groups of a stage. */
static inline uint32_t parallel_replicas(const struct parallel *parallel, uint32_t stage)
{
    return parallel->replicated > 0 ? parallel->replicas[stage] : parallel->data;
}

/* Returns the number of tensor groups of all earlier stages. */
static inline uint64_t parallel_replicas_before(const struct parallel *parallel, uint32_t stage)
{
    uint64_t sum = (uint64_t)parallel->data * stage;
    if (parallel->replicated == 0) return sum;
    sum = 0;
    for (uint32_t s = 0; s < stage; s++) sum += parallel->replicas[s];
    return sum;
}

/* Returns the number of devices that the job needs. */
static inline uint64_t parallel_devices(const struct parallel *parallel)
{
    return parallel->tensor * parallel_replicas_before(parallel, parallel->pipeline);
}

/* Returns the number of replicas of a stage that take microbatches in turn; 1 when all replicas work in step. */
static inline uint32_t parallel_turns(const struct parallel *parallel, uint32_t stage)
{
    return parallel->replicated > 0 ? parallel->replicas[stage] : 1;
}

/* Returns the number of consecutive runs of a stage whose gradients are exchanged separately. */
static inline uint32_t parallel_buckets(const struct parallel *parallel)
{
    return parallel->buckets > 0 ? parallel->buckets : 1;
}

/* Returns the number of pieces that `partition` or `cut` makes: runs, or with buckets the groups of runs. */
static inline uint32_t parallel_cut_count(const struct parallel *parallel)
{
    return parallel->pipeline * parallel->chunks;
}

/* Returns the number of runs: pipeline * chunks * buckets. */
static inline uint32_t parallel_runs(const struct parallel *parallel)
{
    return parallel_cut_count(parallel) * parallel_buckets(parallel);
}

/* The stage of run `run`, and the number of the chunk or bucket on that stage. */
struct parallel_place {
    uint32_t stage, chunk;
};
static inline struct parallel_place parallel_place(const struct parallel *parallel, uint32_t run)
{
    if (parallel_buckets(parallel) > 1)
        return (struct parallel_place){run / parallel->buckets, run % parallel->buckets};
    uint32_t chunk = run / parallel->pipeline, stage = run % parallel->pipeline;
    bool back = parallel->schedule == PIPELINE_ZB_V && chunk % 2 == 1;
    return (struct parallel_place){back ? parallel->pipeline - 1 - stage : stage, chunk};
}

/* Returns the number of passes of a stage over a microbatch in each direction. */
static inline uint32_t parallel_slices(const struct parallel *parallel)
{
    return parallel->slices > 0 ? parallel->slices : 1;
}

/* Returns the slice of a stage's n-th pass: in order forward, from the last to the first backward. */
static inline uint32_t parallel_slice_of_pass(const struct parallel *parallel, uint64_t n, bool backward)
{
    uint32_t slices = parallel_slices(parallel), at = (uint32_t)(n % slices);
    return backward ? slices - 1 - at : at;
}

/*
 * Returns a job whose microbatch is one slice of the tokens; these attend to themselves and to earlier tokens.
 * models/job/parallel_work.h and models/job/parallel_memory.h then count only that slice. Returns the job itself if
 * it has no slices. A layer of a profile takes the share of the slice's tokens.
 */
struct hardware;
struct job;
struct network;
struct job parallel_slice(const struct job *job, uint32_t slice);

/* Returns the same job without a copy when there are no slices: `job`, or *room. */
const struct job *parallel_slice_in(const struct job *job, uint32_t slice, struct job *room);

/* Returns the slice's part of a value shared evenly among tokens; the parts add up to `whole`. */
uint64_t parallel_slice_share(const struct parallel *parallel, uint64_t whole);

/* Returns true when a stage with r replicas updates after every r minibatches. */
static inline bool parallel_has_own_pace(const struct parallel *parallel)
{
    return parallel->replicated > 0 && parallel->schedule == PIPELINE_PIPEDREAM;
}

/* Returns the number of microbatches in flight on each replica of a stage, for 1f1b and asynchronous schedules:
 * ceil(replicas from this stage on / its own replicas). For the first stage this is PipeDream's NOAM. It gives one
 * microbatch per device, which keeps all devices busy only if no microbatch waits. Microbatches do wait between
 * stages with different pass times: shapes 3-2-1, 2-3-4 and 1-2-3-2-1 take 5 / 4 of (the slowest stage's time / its
 * replicas), see tests/planner/parallel/test_parallel_job_replicas.c, no_slack(). */
static inline uint32_t parallel_depth(const struct parallel *parallel, uint32_t stage)
{
    uint64_t all = parallel_replicas_before(parallel, parallel->pipeline) - parallel_replicas_before(parallel, stage);
    uint32_t own = parallel_replicas(parallel, stage);
    return (uint32_t)((all + own - 1) / own);
}

/*
 * Returns the number of updates by which the weights of both passes over a run are stale. Microbatches of update u
 * use the version after max(u - staleness, 0) updates, so staleness + 1 versions exist at once. pipedream is stale by
 * the microbatches in flight, 2bw by 1, and delayed updates by 1.
 */
static inline uint32_t parallel_staleness(const struct parallel *parallel, uint32_t run)
{
    if (parallel->schedule == PIPELINE_2BW || parallel->delayed) return 1;
    return parallel->schedule == PIPELINE_PIPEDREAM ? parallel_depth(parallel, parallel_place(parallel, run).stage) - 1 : 0;
}

/* Return the microbatches that a replica of a stage adds up for an update, and the number of updates of the training.
 * Among replicas that take turns, the first ones may have one microbatch more than the last; `turn` selects a
 * replica, and parallel_microbatches() counts for the first. */
uint64_t parallel_microbatches_in_turn(const struct job *job, uint32_t stage, uint32_t turn);
uint64_t parallel_microbatches(const struct job *job, uint32_t stage);
uint64_t parallel_updates(const struct job *job, uint32_t stage);

/*
 * Checks that the options fit each other and the job:
 * - chunks: with several stages, schedules without chunks have one; zb-h1 and zb-h2 always one, zb-v two, interleaved
 *   at least two, and for interleaved `pipeline` divides a replica's microbatches;
 * - buckets: only gpipe, 1f1b, pipedream and 2bw on several stages, each of which has a layer per bucket;
 * - pipedream: one microbatch per replica; 2bw: at least one microbatch per stage (with `replicas`: as in
 *   flight); both need `zero` 0;
 * - replicas: they divide the microbatches that they take in turn; for gpipe and 1f1b, which have no other
 *   microbatches, they are at most their number; they have all state that they update (`zero` 0, no `offload`);
 * - terapipe: a causal network, slices whose sum is the sequence, no sequence parallelism;
 * - offload: offloaded state is split (models/job/parallel_offload.h);
 * - compression: compressed data is sent. Boundaries need several stages and undivided backward passes; gradients
 *   need several replicas and `zero` 0 or 1;
 * - there are layers for every run; `data` divides the microbatches; `tensor` divides heads, widths and, with
 *   `sequence`, tokens; networks known only by a profile have no tensor parallelism;
 * - the job needs nothing that plans of parallel jobs lack: clipping, evaluations;
 * - scatter: tensor groups have whole boundaries. `zero` works with all other schedules.
 * Errors: STATUS_BAD_INPUT with a message but without a position.
 */
MUST_CHECK enum status parallel_check(const struct job *job, struct error *err);

/*
 * Returns true when a parallel job uses a single device and does not differ from a job that is not parallel. Such a
 * job computes the same as under the resident policies, and its plans can be carried out. Returns false for networks
 * listed layer by layer, for jobs that clip (no resident policy takes them), and for a software stack other than the
 * executor's (enum hardware_stack), where the job's own recomputation and schedule apply.
 */
bool parallel_is_alone(const struct hardware *hardware, const struct job *job);

/* Returns true when a group of `tensor` devices may divide the rows of norms and sums ("sequence"). */
bool parallel_divides_tokens(const struct job *job, uint32_t tensor);

/* Returns true when the layer's output is sent to another stage. False inside a run, and between chunks or buckets of
 * a stage. */
bool parallel_crosses(const struct job *job, uint64_t layer);

/* Returns true when the layer's output is also compressed. */
bool parallel_compresses(const struct job *job, uint64_t layer);

/* Returns the number of layers that can be cut: blocks, or listed layers. */
uint64_t parallel_pieces(const struct network *network);

/* The layers of a run: [first, first + count). */
struct parallel_layers {
    uint64_t first, count;
};
struct parallel_layers parallel_layers(const struct job *job, uint32_t run);

/* Returns the recomputation (enum parallel_recompute) of layers that are a run or a part of one. */
uint32_t parallel_recompute(const struct job *job, struct parallel_layers layers);

/* Reads the object "parallel" into *out; keys that are absent leave *out untouched. */
MUST_CHECK enum status parallel_parse(const struct json_input *in, const json_t *value,
                                      struct parallel *out, struct error *err);
void parallel_write(const struct parallel *parallel, struct json_out *out, const char *key);

/* Reads "tp=8,pp=8,dp=4,v=2,sp,zero=3,prefetch=2,offload=weights,storage" or "tp=2,replicas=15-1", which also gives
 * the number of stages. Options that the text does not name are untouched; degrees of a job that was not parallel
 * become 1.
 * Errors: STATUS_BAD_INPUT. */
MUST_CHECK enum status parallel_parse_text(const char *text, struct parallel *out, struct error *err);

/* Writes the options in that form, without degrees of 1: "tp=8,pp=8,dp=4,v=2,sp,zero=1"; "one device" if there is
 * nothing to write; many stages are abbreviated as "replicas=2-2-2-...". Returns `text`. */
enum { PARALLEL_TEXT_BYTES = 192 };
const char *parallel_text(const struct parallel *parallel, char text[PARALLEL_TEXT_BYTES]);

#endif
