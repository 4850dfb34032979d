/*
 * Dropout: a number is 0 with probability p, else divided by 1 - p. Whether it is depends only on its place in the
 * training, so that masks are the same in every plan and need not be kept: the backward pass makes them again.
 *
 *     key      of the step, the layer and the place in it (exec/network/transformer_dropout.c)
 *     sample   of the minibatch, then a row of the sample, then the number in the row
 *
 * Source: Srivastava et al., JMLR 15 (2014); masks by counter: base/random.h.
 */
#ifndef SPILLWAY_EXEC_KERNELS_KERNELS_DROPOUT_H
#define SPILLWAY_EXEC_KERNELS_KERNELS_DROPOUT_H

#include <stdint.h>

struct kernel_dropout {
    uint64_t key;
    float p;                /* 0: none */
    int64_t samples, begin; /* numbers of the first sample, and of each sample's first token */
    int64_t rows, heads;    /* numbers of the first row in the first sample, and of the first head: of a tensor group's
                               member */
};

#endif
