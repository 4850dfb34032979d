/*
 * Work of one device in a parallel job (models/job/parallel.h), and communication of its tensor group: kernels and
 * collectives of each pass over the layers of a run (or a part of them) for one microbatch.
 *
 * Networks known only by a profile have durations and no collectives.
 *
 * Sources: Shoeybi et al., arXiv 1909.08053 (tensor parallelism); Korthikanti et al., arXiv 2205.05198
 * (sequence parallelism, selective recomputation); Qi et al., arXiv 2401.10241 (backward passes in two).
 */
#ifndef SPILLWAY_MODELS_JOB_PARALLEL_WORK_H
#define SPILLWAY_MODELS_JOB_PARALLEL_WORK_H

#include "models/cost/collective.h"
#include "models/job/job.h"

enum parallel_pass {
    PARALLEL_FORWARD,
    PARALLEL_BACKWARD, /* INPUT and WEIGHT together */
    PARALLEL_INPUT,    /* recomputation, then the gradient that the earlier run waits for */
    PARALLEL_WEIGHT,   /* weight gradients, added to the sums of earlier microbatches */
    PARALLEL_UPDATE,   /* once per minibatch: update of the device's parameters */
    PARALLEL_SUM,      /* a microbatch's share of the gradient added to a sum (models/job/parallel_offload.h) */
    PARALLEL_ENCODE,   /* once per minibatch: encoding of compressed gradients */
    PARALLEL_NORM,     /* once per minibatch of a job that clips: squares of the gradients (without the sum over
                          devices) */
    PARALLEL_PASS_COUNT
};

/* Length of the longest list: a pass over an embedding, a block and a head, and a block's recomputation. */
enum { PARALLEL_CODECS_MAX = 4, PARALLEL_WORK_MAX = 4 * LAYER_WORK_MAX + PARALLEL_CODECS_MAX + 1 };

/*
 * Writes the kernels on each device of the stage; equal kernels are merged. Full recomputation repeats the whole
 * forward pass of blocks (and of a profile's layers), as Megatron-LM does; selective recomputation repeats the inside
 * of attention. Compressed data (models/cost/compression.h) is encoded and decoded by the pass that makes or reads
 * it. The last item of a pass stands for its collectives that computations wait for, as the host sees them. Returns
 * the number of items.
 */
uint32_t parallel_work(const struct job *job, struct parallel_layers layers, enum parallel_pass pass,
                       struct work_item out[PARALLEL_WORK_MAX]);

struct parallel_collective {
    uint32_t kind;  /* enum collective_kind, in the tensor group */
    uint32_t count;
    uint64_t bytes; /* bytes of the whole tensor, as in models/cost/collective.h */
    bool overlaps;  /* may overlap with products of this pass that do not need it; otherwise they wait */
};

enum { PARALLEL_COLLECTIVES_MAX = 16 };

/*
 * Writes the collectives of the tensor group during a pass over the layers. They have rows of C numbers, e R C bytes,
 * unless noted; equal ones are merged. A group of one member has none.
 *
 *                      without sequence parallelism        with sequence parallelism
 *   block, forward     2 all-reduces                       2 all-gathers, 2 reduce-scatters
 *          input       2 all-reduces, which overlap        2 all-gathers; 2 reduce-scatters, which overlap
 *          weight      -                                   2 all-gathers of norms, which overlap
 *   embedding, forward 1 all-reduce                        the same; llama: 1 reduce-scatter
 *          weight      -                                   1 all-gather
 *   head, forward      3 all-reduces of 4 R bytes: the     the same, and 1 all-gather
 *                      largest logit of each row, the sum
 *                      of exponentials, the target's logit
 *          input       1 all-reduce, which overlaps        1 reduce-scatter, which overlaps
 *          weight      -                                   1 all-gather, which overlaps
 *   vit's head, bert's pooler: forward -                   1 all-gather
 *   vit's embedding    -                                   weight: 1 all-gather
 *   update             -                                   1 all-reduce, in fp32, of the gradients of parameters
 *                                                          that each member has whole and has computed for a share
 *                                                          of the rows; only the share that it updates
 *   full recomputation before the input's gradient: the collectives of a block's forward pass again
 */
uint32_t parallel_collectives(const struct job *job, struct parallel_layers layers,
                              enum parallel_pass pass,
                              struct parallel_collective out[PARALLEL_COLLECTIVES_MAX]);

#endif
