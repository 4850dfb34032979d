/* No profiler can be attached to the emulator. */
#ifndef SPILLWAY_TESTS_EMULATOR_NVTX3_NVTOOLSEXT_H
#define SPILLWAY_TESTS_EMULATOR_NVTX3_NVTOOLSEXT_H

static inline void nvtxRangePushA(const char *text)
{
    (void)text;
}

static inline void nvtxRangePop(void) {}

#endif
