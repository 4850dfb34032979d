/*
 * Work of one device in a parallel job, and communication of its tensor group: kernels and collectives of each pass
 * over a chunk (or a part) for one microbatch.
 *
 * A profile has durations and no collectives.
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
    PARALLEL_BACKWARD, /* INPUT and WEIGHT */
    PARALLEL_INPUT,    /* recomputation, then the gradient for the earlier chunk */
    PARALLEL_WEIGHT,   /* added to the sums of earlier microbatches */
    PARALLEL_UPDATE,   /* once per minibatch */
    PARALLEL_SUM,      /* a microbatch's share of the gradient is added (models/job/parallel_offload.h) */
    PARALLEL_ENCODE,   /* once per minibatch, for compressed gradients */
    PARALLEL_NORM,     /* once per minibatch if it clips: squares of gradients */
    PARALLEL_EVALUATE, /* forward over held-out data, with the head's loss */
    PARALLEL_PASS_COUNT
};

/* A backward pass over an embedding, blocks and a head, with the forward passes that come before. */
enum { PARALLEL_CODECS_MAX = 4, PARALLEL_WORK_MAX = 7 * LAYER_WORK_MAX + PARALLEL_CODECS_MAX + 1 };

/*
 * Writes each device's kernels, equal ones merged; returns their number. Full recomputation repeats the whole forward
 * pass of blocks (and of a profile's layers), as Megatron-LM does; selective recomputation the inside of attention. In
 * jobs that are carried out it leaves out a block's last products, and the head computes only in backward passes, or in
 * INPUT.
 * The pass that makes or reads compressed data encodes or decodes it. The last item stands for collectives that
 * computations wait for, as the host sees them.
 */
uint32_t parallel_work(const struct job *job, struct parallel_layers layers, enum parallel_pass pass,
                       struct work_item out[PARALLEL_WORK_MAX]);

struct parallel_collective {
    uint32_t kind;  /* enum collective_kind, in the tensor group */
    uint32_t count;
    uint64_t bytes; /* of the whole tensor */
    bool overlaps;  /* with products of this pass that do not need it; others wait. Never in jobs that are carried
                       out */
};

enum { PARALLEL_COLLECTIVES_MAX = 16 };

/*
 * Writes the tensor group's collectives during a pass: rows of C numbers, e R C bytes, unless noted; equal ones are
 * merged. None for one member.
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
 *
 * Jobs that are carried out with sequence parallelism have all rows in an embedding (1 all-reduce) and from bert's and
 * vit's head on; their heads gather rows once; and their passes add up the gradients of each norm's weights (1
 * all-reduce), which updates then need not. A block whose parts run side by side has 1 sum forward, and backward 1 for
 * each of its norms. Norms of heads add up their weights' gradients in every tensor group that is carried out (2
 * all-reduces of D numbers).
 */
uint32_t parallel_collectives(const struct job *job, struct parallel_layers layers,
                              enum parallel_pass pass,
                              struct parallel_collective out[PARALLEL_COLLECTIVES_MAX]);

#endif
