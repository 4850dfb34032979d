/* The kernels of this file, compiled for the emulator. */
#include "exec/cuda/kernels_cuda_code.cu"
