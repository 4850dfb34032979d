/* Failures of the emulated machine, for tests. */
#ifndef SPILLWAY_TESTS_EMULATOR_EMULATOR_FAULTS_H
#define SPILLWAY_TESTS_EMULATOR_EMULATOR_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

struct emulator_faults {
    bool loses;             /* `device` is lost when `after` pieces of work have run on it */
    int device;
    uint64_t after;
    bool refuses_pinning;
    size_t largest_bytes;   /* no more device memory in one piece; 0: no limit */
    bool forbids_peers;     /* no device may reach into another's memory: copies go through the driver */
    uint64_t damages_peers; /* every n-th byte of each direct copy arrives changed; 0: none */
};

/* Copies that went directly from one device's memory to another's, since the faults were set; and those
 * that the driver was asked for without access. */
struct emulator_peer_copies {
    uint64_t direct, through_driver;
};
struct emulator_peer_copies emulator_peer_copies(void);

/* Sets the number of GPUs, 2 at first, at most 8. No device may be open. */
void emulator_set_devices(int count);

/* Returns the device of a stream; for libraries of ours. */
int emulator_stream_device(cudaStream_t stream);

/* Takes effect at once. Restarts counting and restores lost devices. No device may be open. */
void emulator_set_faults(struct emulator_faults faults);

#ifdef __cplusplus
}
#endif

#endif
