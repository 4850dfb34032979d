/*
 * Convolutions as one product of matrices for each tap, of the pixels for which the tap lies in the image.
 */
#ifndef SPILLWAY_EXEC_KERNELS_KERNELS_CONVOLUTION_TAPS_H
#define SPILLWAY_EXEC_KERNELS_KERNELS_CONVOLUTION_TAPS_H

#include "exec/kernels/kernels_convolution_library.h"

/* Returns true if these products are faster than the library's own convolution. */
bool kernels_convolution_taps_pay(const struct kernel_convolution *shape);

/* Counts the numbers of scratch. */
uint64_t kernels_convolution_taps_scratch(const struct kernel_convolution *shape, enum kernels_convolution_pass pass);

void kernels_convolution_taps_compute(const struct kernel_convolution *shape,
                                      const struct kernels_convolution_operands *operands, float *scratch);

#endif
