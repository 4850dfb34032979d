/*
 * Rows and the experts that they are sent to; plain C, also for other back ends.
 *
 * R rows choose k of E experts each. Rows are sorted by expert, and rows of one expert by number: a place is one of R k
 * among the sorted. An expert has at most R rows, and all have R k together (dropless): memory does not depend on the
 * choices.
 *
 *     rows 0 1 2 choose  {2,0} {0,1} {2,1}        places   0 1 | 2 3 | 4 5      begins 0 2 4 6
 *                                                 rows     0 1 | 1 2 | 0 2
 */
#ifndef SPILLWAY_EXEC_KERNELS_KERNELS_EXPERTS_H
#define SPILLWAY_EXEC_KERNELS_KERNELS_EXPERTS_H

#include <stdbool.h>
#include <stdint.h>

#include "exec/kernels/kernels_number.h"

enum { KERNEL_CHOSEN_MAX = 64 }; /* of a row */

struct kernel_routes {
    int64_t r, e, k;
    bool normalized;      /* the chosen ones' weights add up to 1 */
    kernel_number *probabilities; /* (R,E): the router's results, then their softmax */
    float *weights;       /* (R,k), from the most probable expert on; among equals the lower number comes first */
    int32_t *experts;     /* (R,k) */
    int32_t *places;      /* (R,k) */
    int32_t *rows;        /* (R k): of a place */
    int32_t *begins;      /* (E + 1): an expert's first place */
};

#endif
