/* What goes wrong with the emulated machine, for tests. */
#ifndef SPILLWAY_TESTS_EMULATOR_FAULTS_H
#define SPILLWAY_TESTS_EMULATOR_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct emulator_faults {
    bool loses;             /* `device` is lost when `after` pieces of work have run on it */
    int device;
    uint64_t after;
    bool refuses_pinning;
    size_t largest_bytes;   /* no more device memory in one piece; 0: no limit */
};

/* From now on; counting begins anew, and lost devices are there again. No device may be open. */
void emulator_set_faults(struct emulator_faults faults);

#ifdef __cplusplus
}
#endif

#endif
