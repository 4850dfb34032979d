/* What the files about GPUs share: errors, and streams for collectives (exec/nccl). */
#ifndef SPILLWAY_EXEC_CUDA_DEVICE_CUDA_H
#define SPILLWAY_EXEC_CUDA_DEVICE_CUDA_H

#include <cuda_runtime_api.h>

#include "exec/device/device_backend.h"

cudaStream_t device_cuda_stream(const struct device_stream *stream);

/* While the stream's thread is in a call of device_call_ahead(): enqueues the place where all members have come. The
 * call's time begins there. Returns its event. An error ends the device. */
cudaEvent_t device_cuda_begin(struct device_stream *stream);

/* Returns false, and ends the device, if the call's status is an error. */
bool device_cuda_worked(struct device *device, const char *call, cudaError_t status);
#define CUDA_WORKED(device, call) device_cuda_worked(device, #call, call)

/* Needs `err`. */
#define CUDA_TRY(call)                                                                       \
    do {                                                                                     \
        const cudaError_t try_status = (call);                                               \
        if (try_status != cudaSuccess)                                                       \
            return error_set(err, STATUS_DEVICE, "%s: %s", #call, cudaGetErrorString(try_status)); \
    } while (0)

#endif
