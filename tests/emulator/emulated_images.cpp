/* The kernels of this file, compiled for the emulator. */
#include "exec/kernels_cuda_images.cu"
