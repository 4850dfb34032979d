/*
 * Named ranges on a profiler's timeline (Nsight Systems): a shard's pass, and the kernels in it.
 *
 * NVTX is a header that does nothing until a profiler is attached. Without CUDA, or with a CUDA
 * without the header (exec/cuda/CMakeLists.txt says so), these functions are empty.
 */
#ifndef SPILLWAY_EXEC_DEVICE_RANGES_H
#define SPILLWAY_EXEC_DEVICE_RANGES_H

#if defined SPILLWAY_CUDA && __has_include(<nvtx3/nvToolsExt.h>)

#include <nvtx3/nvToolsExt.h>

static inline void profiler_range_push(const char *text)
{
    nvtxRangePushA(text);
}

static inline void profiler_range_pop(void)
{
    nvtxRangePop();
}

#else

static inline void profiler_range_push(const char *text)
{
    (void)text;
}

static inline void profiler_range_pop(void) {}

#endif

#endif
