/*
 * How a job is spread over devices: the degrees of each kind of parallelism and the schedule.
 *
 *     "parallel": {"tensor": 8, "pipeline": 8, "data": 4, "chunks": 2, "schedule": "interleaved",
 *                  "recompute": "selective", "collective": "ring", "sequence": true, "zero": 1,
 *                  "prefetch": 1, "first_device": 0, "cut": [3, 2, 3], "slices": [512, 512], "buckets": 1,
 *                  "offload": "states", "storage": false, "delayed": false, "swap": false, "choose": false}
 *     --parallel tp=8,pp=8,dp=4,v=2,sp,zero=1 --schedule interleaved --recompute selective
 *
 * A job with it runs on tensor * data * pipeline devices at once, from `first_device` on:
 *
 *     device of rank (t, d, p) = first_device + t + tensor * (d + data * p)
 *
 * so that tensor groups lie closest together and neighbouring stages farthest apart. The devices of one
 * stage are a *gang*: a grid with an axis for each kind of group (planner/plan.h). Every minibatch has
 * job->microbatches microbatches in all, job->microbatches / data on each replica.
 *
 * Stages. The blocks are cut into pipeline * chunks runs of equal length (the first ones longer by one
 * where that does not divide them), or of given or balanced lengths; the first run has the embedding too, the last the head. The layers of a
 * profile are cut likewise. Chunk c of stage p is run c * pipeline + p; in a V (zb-v) chunk 1 comes back: run
 * 2 pipeline - 1 - p. With one stage chunks are what data-parallel ranks exchange at a time: the all-reduce of a
 * run's gradients goes on beside the backward passes over the runs in front of it.
 *
 * Buckets. On several stages with gpipe, 1f1b, pipedream or 2bw `buckets` do the same: each stage's layers are that many runs
 * (the first ones longer by one), which follow each other on it in every pass, and the gradients of one are exchanged beside
 * the backward passes over those in front of it, when its last microbatch has passed back. A boundary between two of them
 * goes nowhere, and what is kept is kept as without them.
 *
 *     "pipeline": 2, "data": 4, "buckets": 5        --parallel replicas=15-1,buckets=6 --schedule pipedream
 *
 * Data parallelism. What `zero` leaves whole is on every rank; of what it splits each has a share, whatever the
 * schedule, the tensor and the sequence parallelism:
 *
 *   0  gradients are added up over the ranks once a minibatch (all-reduce)
 *   1  the optimizer's states are split: reduce-scatter, a step on the share, all-gather of the weights
 *   2  gradients too: each run's are reduced to shares behind its backward pass of every microbatch
 *   3  weights too (FSDP): they are gathered in front of every pass over a run that multiplies by them, while
 *      the `prefetch` passes before it compute, and forgotten behind it
 *
 * A tied table that the embedding and the head have on two stages is there twice; its gradients are added up over both
 * stages once a minibatch, behind the sums over replicas, before both update it (models/job/parallel_memory.h says when).
 *
 * Offloading (models/job/parallel_offload.h). What ranks have shares of need not be on them at all: with `offload`
 * the optimizer's states, and the step, are the host's ("states", ZeRO-Offload), or the weights too ("weights",
 * ZeRO-Infinity), in host memory or with `storage` on disk. With `delayed` the host updates beside the passes over
 * the next minibatch: W(t+1) = W(t) - v grad f(W(t-1)), one update behind on all stages. With "weights" and `zero` 0
 * hosts have all of them, each for its rank, and add up gradients themselves (KARMA).
 *
 * Swapping. With `swap` activations leave too: those of the first runs go to the host behind their forward passes and
 * come back with the weights for the backward pass; those of the last runs, as many as fit, stay
 * (planner/parallel/spread_places.h). For one stage without tensor groups, whose weights are offloaded. With `choose` runs of which
 * the planner says so keep their inputs instead, and are computed again (planner/parallel/spread_choose.h), as with "full"
 * recomputation; of all others leaves what `recompute` keeps. What was chosen, or is given, is a letter for each run: r,
 * computed again; s, swapped, or staying where places are left.
 *
 *     "swap": true, "choose": true        "swap": true, "choices": "srsrs"        --parallel ...,swap,choose
 *
 * Boundaries. Every rank of a tensor group has a boundary whole, and each sends all of it to the rank at its place on the
 * next stage. With `scatter` ("scatter": true, --parallel scatter; Megatron-LM's scatter/gather) each sends a part of it,
 * over its own NIC, and the group there gathers the parts. With sequence parallelism each rank has a part alone anyway.
 *
 * Copies between stages go on beside passes. With `blocking` ("blocking": true, --parallel blocking) a stage computes nothing
 * while it fetches, as where PyTorch's receives are waited for at once (Megatron-LM, TeraPipe's released code). The stage that
 * sends goes on.
 *
 * Collectives of tensor groups. Some go on beside products that do not need them (models/job/parallel_work.h). With
 * `exposed` ("exposed": true, --parallel exposed) passes wait for each, as in Megatron-LM until the end of 2021.
 *
 * Slices (terapipe). A causal network's tokens need those in front of them only, so a microbatch goes through the
 * stages in slices, one behind the other, forward from its beginning and backward from its end. Later slices attend to
 * more and take longer: lengths are the planner's choice unless given (planner/parallel/pipeline/slice_partition.h). The part of
 * attention between a slice and the tokens in front of it is counted as products for each head, whose scores exist.
 *
 * Asynchronous schedules (pipedream, 2bw) are another training than the rest: no flush, minibatches enter as long
 * as there are some, and each stage updates its weights by itself. A microbatch goes forward and back over a stage
 * with one version of the weights, which is kept until then (weight stashing). That version is stale:
 *
 *   pipedream  an update behind every microbatch; W(t+1) = W(t) - v grad f(W1(t-P+1), W2(t-P+2), ..., WP(t)), so
 *              the first of P stages is P - 1 updates behind, the last 0. Versions there at once: P - p on stage p,
 *              as many as microbatches under way
 *   2bw        an update behind every m >= P microbatches; W(t+1) = W(t) - v grad f(W(t-1)) on all stages. Two
 *              versions
 *
 * Data-parallel ranks go in step and add up their gradients for each update.
 *
 * Replicas. In these schedules and in gpipe and 1f1b stages may also have unequal numbers of `replicas`, in place of
 * `data`,
 *
 *     "replicas": [15, 1], "schedule": "pipedream"        --parallel replicas=15-1 --schedule pipedream
 *
 * each of which takes the microbatches of the whole job in turn: microbatch b is replica b mod r's, on every stage, and
 * device of rank (t, d, p) = first_device + t + tensor * (d + replicas of the stages in front). A stage is as fast as
 * its replicas together. With gpipe, 1f1b and 2bw they share the microbatches of a minibatch and add up their gradients
 * for its update. These are sums and not means, so in synchronous schedules, where a replica may have one microbatch
 * more than another, that is the gradient of the minibatch all the same.
 * With pipedream there is one microbatch to a minibatch, and a stage updates behind as many as it has replicas, so with
 * n(p) of them under way on each replica of stage p its version is n(p) - 1 of the stage's own updates behind. How many
 * that are follows from the stages behind, n(p) = ceil(devices from stage p on / replicas of it); 1f1b has as many.
 *
 * Numbers. They are those of models/kernel/precision.h, and what stages and tensor groups pass on is as activations are.
 * With "gradients": "bf16" those of weights have 16 bits
 * as well, also where microbatches are added up, as ZeRO counts them: 16 bytes a parameter with AdamW in place of 18.
 *
 * Sources: Megatron-LM, arXiv 2104.04473 (order of ranks, interleaving); ZeRO, arXiv 1910.02054 (stages of
 * partitioning); PipeDream, SOSP 2019 and arXiv 1806.03377 (weight stashing), arXiv 2006.09503 (2BW); Korthikanti et al., arXiv 2205.05198 (sequence parallelism, selective recomputation).
 */
#ifndef SPILLWAY_MODELS_PARALLEL_H
#define SPILLWAY_MODELS_PARALLEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json/json_in.h"
#include "models/cost/collective.h"

struct json_out;

enum { PARALLEL_DEGREE_MAX = 1 << 14, PARALLEL_CHUNKS_MAX = 1 << 10, PARALLEL_SLICES_MAX = 64,
       PARALLEL_CUTS_MAX = 128, PARALLEL_REPLICAS_MAX = PARALLEL_CUTS_MAX };

/* In which order a stage passes microbatches forward and backward; planner/parallel/pipeline/pipeline.h has the rules. */
enum pipeline_schedule {
    PIPELINE_GPIPE,       /* all forward, then all backward */
    PIPELINE_1F1B,        /* PipeDream-Flush: one forward, one backward; synchronous */
    PIPELINE_INTERLEAVED, /* the same with several chunks of layers on each stage */
    PIPELINE_ZB_H1,       /* zero bubble: the weights' gradients fill bubbles, memory as 1F1B */
    PIPELINE_ZB_H2,       /* the same with more microbatches under way, no bubble at the start */
    PIPELINE_ZB_V,        /* the same with two chunks on each stage, there and back */
    PIPELINE_PIPEDREAM,   /* 1F1B without a flush, an update behind every microbatch; stale, see below */
    PIPELINE_2BW,         /* the same with several microbatches to an update and two versions of the weights */
    PIPELINE_TERAPIPE,    /* sequences in slices of tokens: all forward, then all backward; synchronous */
    PIPELINE_SCHEDULE_COUNT
};
extern const char *const pipeline_schedule_names[PIPELINE_SCHEDULE_COUNT]; /* "gpipe", "1f1b", ... */

/* Do minibatches follow each other without a flush? */
static inline bool pipeline_is_asynchronous(uint32_t schedule)
{
    return schedule == PIPELINE_PIPEDREAM || schedule == PIPELINE_2BW;
}

/* What is kept of a layer's activations between its passes. */
enum recompute {
    RECOMPUTE_NONE,      /* all */
    RECOMPUTE_SELECTIVE, /* all but those of attention's core, which is computed again */
    RECOMPUTE_FULL,      /* its input */
    RECOMPUTE_STAGE,     /* nothing: a run's backward pass makes all that the run keeps again, from the run's input */
    RECOMPUTE_COUNT
};

/* Are forward passes done again? */
static inline bool recompute_repeats(uint32_t recompute)
{
    return recompute >= RECOMPUTE_FULL;
}

extern const char *const recompute_names[RECOMPUTE_COUNT];

/* The same of a run, where each has its own. */
enum { PARALLEL_SWAPPED = 's', PARALLEL_AGAIN = 'r' };

/* Where the layers are cut into runs. */
enum parallel_partition {
    PARALLEL_EQUAL,    /* runs of equal length */
    PARALLEL_BALANCED, /* the slowest run as fast as can be (planner/parallel/spread_cut.h) */
    PARALLEL_PIPEDREAM, /* PipeDream's programme, which divides the replicas given of one stage among stages (likewise) */
    PARALLEL_RANNC,    /* stages, replicas and microbatches, too: what ends a minibatch first (planner/parallel/spread_rannc.h) */
    PARALLEL_PARTITION_COUNT
};
extern const char *const parallel_partition_names[PARALLEL_PARTITION_COUNT];

/* What data-parallel ranks split; each with what is above it. */
enum zero_level { ZERO_NOTHING, ZERO_STATES, ZERO_GRADIENTS, ZERO_WEIGHTS };

/* What of a rank's shares is not on its device; each with what is above it. */
enum parallel_offload {
    OFFLOAD_NOTHING,
    OFFLOAD_STATES,  /* the optimizer's states, which the host updates; gradients go there */
    OFFLOAD_WEIGHTS, /* weights too: they come for every pass */
    PARALLEL_OFFLOAD_COUNT
};
extern const char *const parallel_offload_names[PARALLEL_OFFLOAD_COUNT]; /* "nothing", "states", "weights" */

/* By which algorithm collectives go that have it: the fastest, or one of models/cost/collective.h. */
enum parallel_algorithm {
    PARALLEL_FASTEST,
    PARALLEL_RING, /* 1 + enum collective_algorithm, from here on */
    PARALLEL_ALGORITHM_COUNT = PARALLEL_RING + COLLECTIVE_ALGORITHM_COUNT
};
extern const char *const parallel_algorithm_names[PARALLEL_ALGORITHM_COUNT]; /* "fastest", "ring", ... */

struct parallel {
    uint32_t tensor, pipeline, data; /* degrees, at least 1; all 0: the job is not spread */
    uint32_t chunks;                 /* of layers on each stage, at least 1 */
    uint32_t buckets;                /* runs of a stage that follow each other; 0 like 1: one */
    uint32_t schedule;               /* enum pipeline_schedule */
    uint32_t recompute;              /* enum recompute */
    bool sequence;                   /* norms and dropouts are split along the sequence in tensor groups */
    uint32_t zero;                   /* enum zero_level */
    uint32_t first_device;
    uint32_t prefetch;               /* passes of a stage that weights are gathered ahead of, on level 3; 1
                                        unless given. There is memory for `prefetch` + 1 runs' */
    uint32_t collective;             /* enum parallel_algorithm */
    uint32_t slices;                 /* of terapipe; 0: the planner's choice, or not cut */
    uint32_t slice_tokens[PARALLEL_SLICES_MAX]; /* of each, the job's sequence in all */
    uint32_t partition;              /* enum parallel_partition */
    uint32_t cuts;                   /* runs whose lengths are given: all, or 0: as `partition` says */
    uint32_t cut_lengths[PARALLEL_CUTS_MAX]; /* blocks (layers of a profile) of each run */
    uint32_t offload;                /* enum parallel_offload */
    bool storage;                    /* what is offloaded lives on storage, gradients on the host */
    bool delayed;                    /* the host updates while the next minibatch computes */
    uint32_t replicated;             /* stages whose replicas are given: all, and `data` is 1; or 0: `data` of each */
    uint32_t replicas[PARALLEL_REPLICAS_MAX];
    bool swap;                       /* activations of the first runs go to the host between their passes */
    bool choose;                     /* or are computed again, which the planner decides run by run */
    uint32_t chosen;                 /* runs of which `choices` says it: all, or 0 */
    char choices[PARALLEL_CUTS_MAX]; /* of each run PARALLEL_SWAPPED or PARALLEL_AGAIN; not terminated */
    bool exposed;                    /* passes wait for all of their tensor group's collectives */
    bool blocking;                   /* a stage does not compute while it fetches */
    bool scatter;                    /* ranks of a tensor group each send a part of a boundary, and gather it there */
    uint32_t slice_begin, slice_length; /* in jobs of parallel_slice(): which tokens; length 0: all */
};

static inline bool parallel_is_set(const struct parallel *parallel)
{
    return parallel->tensor > 0;
}

/* Do data-parallel ranks have shares of it? Not where there is one of them. */
static inline bool parallel_splits(const struct parallel *parallel, enum zero_level level)
{
    return parallel->data > 1 && parallel->zero >= level;
}

/* Do passes multiply by weights that were fetched for them? */
static inline bool parallel_fetches_weights(const struct parallel *parallel)
{
    return parallel_splits(parallel, ZERO_WEIGHTS) || parallel->offload == OFFLOAD_WEIGHTS;
}

/* COLLECTIVE_ALGORITHM_COUNT: none is forced. */
static inline enum collective_algorithm parallel_algorithm(const struct parallel *parallel)
{
    return parallel->collective == PARALLEL_FASTEST ? COLLECTIVE_ALGORITHM_COUNT
                                                    : (enum collective_algorithm)(parallel->collective - 1);
}

/* Tensor groups of a stage. */
static inline uint32_t parallel_replicas(const struct parallel *parallel, uint32_t stage)
{
    return parallel->replicated > 0 ? parallel->replicas[stage] : parallel->data;
}

/* Of all stages in front of it. */
static inline uint64_t parallel_replicas_before(const struct parallel *parallel, uint32_t stage)
{
    uint64_t sum = (uint64_t)parallel->data * stage;
    if (parallel->replicated == 0) return sum;
    sum = 0;
    for (uint32_t s = 0; s < stage; s++) sum += parallel->replicas[s];
    return sum;
}

/* Devices that the job needs. */
static inline uint64_t parallel_devices(const struct parallel *parallel)
{
    return parallel->tensor * parallel_replicas_before(parallel, parallel->pipeline);
}

/* How many of a stage's replicas take microbatches in turn, each by itself; 1: all of them go in step. */
static inline uint32_t parallel_turns(const struct parallel *parallel, uint32_t stage)
{
    return parallel->replicated > 0 ? parallel->replicas[stage] : 1;
}

/* Runs that a stage exchanges the gradients of one by one, and that follow each other on it. */
static inline uint32_t parallel_buckets(const struct parallel *parallel)
{
    return parallel->buckets > 0 ? parallel->buckets : 1;
}

/* Pieces that the layers are cut into, by `partition` or `cut`: runs, or what their buckets are runs of. */
static inline uint32_t parallel_cut_count(const struct parallel *parallel)
{
    return parallel->pipeline * parallel->chunks;
}

/* Runs of layers: pipeline * chunks * buckets. */
static inline uint32_t parallel_runs(const struct parallel *parallel)
{
    return parallel_cut_count(parallel) * parallel_buckets(parallel);
}

/* Which stage has run `run`, and which of its chunks or buckets that is. */
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

/* Passes of a stage over a microbatch, in each direction. */
static inline uint32_t parallel_slices(const struct parallel *parallel)
{
    return parallel->slices > 0 ? parallel->slices : 1;
}

/* Which slice the n-th pass of a stage is about: forward in order, backward the last one first. */
static inline uint32_t parallel_slice_of_pass(const struct parallel *parallel, uint64_t n, bool backward)
{
    uint32_t slices = parallel_slices(parallel), at = (uint32_t)(n % slices);
    return backward ? slices - 1 - at : at;
}

/*
 * A job whose microbatch is one slice of its tokens, which attend to themselves and to those in front of them: what
 * models/job/parallel_work.h and models/job/parallel_memory.h say of it is of that slice. The job itself where it is not cut.
 * A layer of a profile takes its tokens' share.
 */
struct hardware;
struct job;
struct job parallel_slice(const struct job *job, uint32_t slice);

/* The same without a copy where it is not cut: `job`, or *room. */
const struct job *parallel_slice_in(const struct job *job, uint32_t slice, struct job *room);

/* Of something that is shared among tokens evenly, the slice's part; shares add up to all. */
uint64_t parallel_slice_share(const struct parallel *parallel, uint64_t whole);

/* Does each stage update behind as many minibatches as it has replicas? */
static inline bool parallel_has_own_pace(const struct parallel *parallel)
{
    return parallel->replicated > 0 && parallel->schedule == PIPELINE_PIPEDREAM;
}

/* Microbatches under way at once on each replica of a stage, of 1f1b and of asynchronous schedules: ceil(replicas from it
 * on / its own); of the first stage PipeDream's NOAM. That is one microbatch for each device, which keeps all of them busy
 * only if no microbatch waits. Between stages whose passes take other times some do: shapes 3-2-1, 2-3-4 and 1-2-3-2-1 take
 * 5 / 4 of the slowest stage's time over its replicas (tests/planner/parallel/test_spread_replicas.c, no_slack()). */
static inline uint32_t parallel_depth(const struct parallel *parallel, uint32_t stage)
{
    uint64_t all = parallel_replicas_before(parallel, parallel->pipeline) - parallel_replicas_before(parallel, stage);
    uint32_t own = parallel_replicas(parallel, stage);
    return (uint32_t)((all + own - 1) / own);
}

/*
 * How many updates the weights of both passes over a run lack: with the u-th update's microbatches they are of the
 * version that max(u - staleness, 0) updates have made, so staleness + 1 versions are there at once. Asynchronous
 * schedules are stale: pipedream by what is under way, 2bw by 1. So are delayed updates, by 1.
 */
static inline uint32_t parallel_staleness(const struct parallel *parallel, uint32_t run)
{
    if (parallel->schedule == PIPELINE_2BW || parallel->delayed) return 1;
    return parallel->schedule == PIPELINE_PIPEDREAM ? parallel_depth(parallel, parallel_place(parallel, run).stage) - 1 : 0;
}

/* Microbatches that a replica of a stage adds up for an update, of those that take turns that with place `turn`: the
 * first ones may have one more than the last; those of the first. Updates of a training. */
uint64_t parallel_microbatches_in_turn(const struct job *job, uint32_t stage, uint32_t turn);
uint64_t parallel_microbatches(const struct job *job, uint32_t stage);
uint64_t parallel_updates(const struct job *job, uint32_t stage);

/*
 * Do the parts fit together and the job? Schedules without chunks have one where there are several stages,
 * zb-h1 and zb-h2 always, zb-v two, interleaved at least two, and microbatches of a replica that `pipeline`
 * divides; `buckets` are of gpipe, 1f1b, pipedream and 2bw on several stages, each of which has a layer for
 * every one; pipedream one microbatch of a replica, 2bw at least as many as stages (as are under way, where `replicas`
 * are given), and both whole weights and states on every rank (`zero` 0); `replicas` divide what they take in turn, or in
 * gpipe and 1f1b, which have no others, are no more than that, and have all they update with (`zero` 0, no `offload`);
 * terapipe a network whose tokens see those in front of them alone, slices that add up to the sequence and no sequence
 * parallelism; what is offloaded is split (models/job/parallel_offload.h), and what is compressed is sent: boundaries where
 * there are several stages and backward passes are whole, gradients where there are several replicas and `zero` is 0 or
 * 1; there are layers for every run; `data` divides the microbatches; `tensor` divides heads, widths
 * and, with `sequence`, tokens; networks known by a profile alone are not cut by tensors; nothing else is
 * asked for that plans do not have: clipping, evaluations. `zero` goes with all other schedules; scattered boundaries
 * need tensor groups that have them whole.
 * Errors: STATUS_BAD_INPUT, in words, without a place.
 */
MUST_CHECK enum status parallel_check(const struct job *job, struct error *err);

/*
 * Is it spread over a single device, in no way that differs from a job that is not spread? Such a job computes what
 * the resident policies compute, and plans of them can be carried out. Of networks that are listed layer by layer, and
 * of jobs that clip, which no resident policy takes: false. With another software stack than the executor's (enum
 * hardware_stack), too: it recomputes and schedules as the job says.
 */
bool parallel_is_alone(const struct hardware *hardware, const struct job *job);

/* May a group of `tensor` devices divide the rows of norms and sums ("sequence")? */
bool parallel_divides_tokens(const struct job *job, uint32_t tensor);

/* Is what the layer passes on sent to another stage? Not inside a run, nor between chunks or buckets of a stage. */
bool parallel_crosses(const struct job *job, uint64_t layer);

/* And is it compressed? */
bool parallel_compresses(const struct job *job, uint64_t layer);

/* The layers of a run: [first, first + count). */
struct parallel_layers {
    uint64_t first, count;
};
struct parallel_layers parallel_layers(const struct job *job, uint32_t run);

/* What is computed again of layers that are a run or a part of one: enum recompute. */
uint32_t parallel_recompute(const struct job *job, struct parallel_layers layers);

/* From the object "parallel"; absent keys keep what *out has. */
MUST_CHECK enum status parallel_parse(const struct json_input *in, const json_t *value,
                                      struct parallel *out, struct error *err);
void parallel_write(const struct parallel *parallel, struct json_out *out, const char *key);

/* "tp=8,pp=8,dp=4,v=2,sp,zero=3,prefetch=2,offload=weights,storage" or "tp=2,replicas=15-1", which says how many
 * stages there are, too: what it does not name keeps what *out has, degrees of a job that was not spread are 1.
 * Errors: STATUS_BAD_INPUT. */
MUST_CHECK enum status parallel_parse_text(const char *text, struct parallel *out, struct error *err);

/* The same in that form, what is 1 left out: "tp=8,pp=8,dp=4,v=2,sp,zero=1"; "one device"; past some stages
 * "replicas=2-2-2-...". */
enum { PARALLEL_TEXT_BYTES = 192 };
const char *parallel_text(const struct parallel *parallel, char text[PARALLEL_TEXT_BYTES]);

#endif
