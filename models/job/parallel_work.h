/*
 * What one device does for a job that is spread over devices (models/job/parallel.h), and what its tensor group
 * does together: kernels and collectives, by pass over the layers of a run (or a part of them) for one
 * microbatch.
 *
 * Networks known by a profile alone have durations and no collectives.
 *
 * Sources: Shoeybi et al., arXiv 1909.08053 (tensor parallelism); Korthikanti et al., arXiv 2205.05198
 * (sequence parallelism, selective recomputation); Qi et al., arXiv 2401.10241 (backward passes in two).
 */
#ifndef SPILLWAY_MODELS_PARALLEL_WORK_H
#define SPILLWAY_MODELS_PARALLEL_WORK_H

#include "models/cost/collective.h"
#include "models/job/job.h"

enum parallel_pass {
    PARALLEL_FORWARD,
    PARALLEL_BACKWARD, /* INPUT and WEIGHT together */
    PARALLEL_INPUT,    /* what is computed again, then the gradient that the run in front waits for */
    PARALLEL_WEIGHT,   /* the gradients of weights, added to those of earlier microbatches */
    PARALLEL_UPDATE,   /* once a minibatch: what the device updates of the parameters */
    PARALLEL_SUM,      /* a microbatch's share of the gradient added to a sum (models/job/parallel_offload.h) */
    PARALLEL_ENCODE,   /* once a minibatch: the gradients, where these are compressed */
    PARALLEL_NORM,     /* once a minibatch of a job that clips: the squares of their gradients (adding up
                          the devices' sums is not in here) */
    PARALLEL_PASS_COUNT
};

/* Of the longest list: a pass over an embedding, a block and a head, and what a block computes again. */
enum { PARALLEL_CODECS_MAX = 4, PARALLEL_WORK_MAX = 4 * LAYER_WORK_MAX + PARALLEL_CODECS_MAX + 1 };

/*
 * The kernels on each device of the stage; equal ones are merged. Full recomputation repeats the whole
 * forward pass of blocks (and of a profile's layers), as Megatron-LM does; selective that of attention's
 * core. What is compressed (models/cost/compression.h) is encoded and decoded by the pass that makes or reads it. The
 * last item of a pass are its collectives that computations wait for, as their host sees them. Returns the number of items.
 */
uint32_t parallel_work(const struct job *job, struct parallel_layers layers, enum parallel_pass pass,
                       struct work_item out[PARALLEL_WORK_MAX]);

struct parallel_collective {
    uint32_t kind;  /* enum collective_kind, in the tensor group */
    uint32_t count;
    uint64_t bytes; /* of the whole tensor, as models/cost/collective.h has it */
    bool overlaps;  /* may run beside products of this pass that do not need it; else these wait */
};

enum { PARALLEL_COLLECTIVES_MAX = 16 };

/*
 * What the tensor group exchanges during a pass over the layers, of rows of C numbers e R C but where said
 * otherwise; equal ones are merged. None where the group has one member.
 *
 *                      tensor alone                        with sequence parallelism
 *   block, forward     2 all-reduces                       2 all-gathers, 2 reduce-scatters
 *          input       2 all-reduces, which overlap        2 all-gathers; 2 reduce-scatters, which overlap
 *          weight      -                                   2 all-gathers of norms, which overlap
 *   embedding, forward 1 all-reduce                        the same; llama: 1 reduce-scatter
 *          weight      -                                   1 all-gather
 *   head, forward      3 all-reduces of 4 R bytes: the largest logit of each row, the sum of exponentials,
 *                      the logit that is meant; and        1 all-gather
 *          input       1 all-reduce, which overlaps        1 reduce-scatter, which overlaps
 *          weight      -                                   1 all-gather, which overlaps
 *   vit's head, bert's pooler: forward -                   1 all-gather
 *   vit's embedding    -                                   weight: 1 all-gather
 *   update             -                                   1 all-reduce of the gradients, in fp32, of what
 *                                                          each member has whole and met a share of the rows;
 *                                                          of the share that it updates
 *   full recomputation in front of the input's gradient, a block's forward again
 */
uint32_t parallel_collectives(const struct job *job, struct parallel_layers layers,
                              enum parallel_pass pass,
                              struct parallel_collective out[PARALLEL_COLLECTIVES_MAX]);

#endif
