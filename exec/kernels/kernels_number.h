/*
 * The numbers of activations, of their gradients, and of weights as passes read them: fp32, or bf16 in the kernels for
 * jobs of precision "bf16" (models/kernel/precision.h).
 *
 * Who calls kernels has arrays of numbers without a type, and moves in them by struct kernels' number_bytes. A kernel's
 * source names its type as KERNELS_NUMBER before it includes this file. All pointers to data have the same form here.
 */
#ifndef SPILLWAY_EXEC_KERNELS_KERNELS_NUMBER_H
#define SPILLWAY_EXEC_KERNELS_KERNELS_NUMBER_H

#include "base/bf16.h"

#ifndef KERNELS_NUMBER
#define KERNELS_NUMBER void
#endif
typedef KERNELS_NUMBER kernel_number;

#endif
