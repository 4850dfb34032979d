/* oneDNN's convolutions (exec/kernels/kernels_images.h). */
#ifndef SPILLWAY_EXEC_KERNELS_KERNELS_CONVOLUTION_LIBRARY_H
#define SPILLWAY_EXEC_KERNELS_KERNELS_CONVOLUTION_LIBRARY_H

#include "exec/kernels/kernels_images.h"

struct kernels_convolution_library;

/* Returns NULL without memory. */
struct kernels_convolution_library *kernels_convolution_library_create(void);
void kernels_convolution_library_destroy(struct kernels_convolution_library *library);

enum kernels_convolution_pass { CONVOLUTION_FORWARD, CONVOLUTION_INPUT, CONVOLUTION_WEIGHT };

/* The three operands; the pass writes one of them: y, x or w. */
struct kernels_convolution_operands {
    enum kernels_convolution_pass pass;
    const float *x, *w, *y;
};

/* Returns false without memory; the result is not written then. */
bool kernels_convolution_library_compute(struct kernels_convolution_library *library,
                                         const struct kernel_convolution *shape,
                                         const struct kernels_convolution_operands *operands);

#endif
