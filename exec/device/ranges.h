/*
 * Named ranges on a profiler's timeline (Nsight Systems) by NVTX; empty functions without CUDA or
 * NVTX's header.
 */
#ifndef SPILLWAY_EXEC_DEVICE_RANGES_H
#define SPILLWAY_EXEC_DEVICE_RANGES_H

#if defined SPILLWAY_CUDA && __has_include(<nvtx3/nvToolsExt.h>)

#include <nvtx3/nvToolsExt.h>

static inline void ranges_push(const char *text)
{
    nvtxRangePushA(text);
}

static inline void ranges_pop(void)
{
    nvtxRangePop();
}

#else

static inline void ranges_push(const char *text)
{
    (void)text;
}

static inline void ranges_pop(void) {}

#endif

#endif
