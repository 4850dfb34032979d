/*
 * cuDNN's backend interface, loaded at run time if it is installed; the program does not link it.
 *
 * Included only if cuDNN's header was found at build time (SPILLWAY_CUDNN).
 */
#ifndef SPILLWAY_EXEC_CUDA_CUDNN_LIBRARY_H
#define SPILLWAY_EXEC_CUDA_CUDNN_LIBRARY_H

#include <cudnn_graph.h>
#include <stddef.h>

#include "base/error.h"

/* The oldest version that accepts sequences of any length. */
enum { CUDNN_OLDEST = 90000 };

struct cudnn_library {
    void *handle; /* NULL: not loaded */
    size_t version; /* 91900 is 9.19.0 */
    size_t (*get_version)(void);
    void (*last_error)(char *message, size_t size);
    cudnnStatus_t (*create)(cudnnHandle_t *handle);
    cudnnStatus_t (*destroy)(cudnnHandle_t handle);
    cudnnStatus_t (*set_stream)(cudnnHandle_t handle, cudaStream_t stream);
    cudnnStatus_t (*create_descriptor)(cudnnBackendDescriptorType_t type,
                                       cudnnBackendDescriptor_t *descriptor);
    cudnnStatus_t (*destroy_descriptor)(cudnnBackendDescriptor_t descriptor);
    cudnnStatus_t (*finalize)(cudnnBackendDescriptor_t descriptor);
    cudnnStatus_t (*set_attribute)(cudnnBackendDescriptor_t descriptor,
                                   cudnnBackendAttributeName_t name,
                                   cudnnBackendAttributeType_t type, int64_t count,
                                   const void *values);
    cudnnStatus_t (*get_attribute)(cudnnBackendDescriptor_t descriptor,
                                   cudnnBackendAttributeName_t name,
                                   cudnnBackendAttributeType_t type, int64_t room, int64_t *count,
                                   void *values);
    cudnnStatus_t (*execute)(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                             cudnnBackendDescriptor_t pack);
};

/*
 * Loads the library that the variable SPILLWAY_CUDNN names ("off": none), or libcudnn.so.9 from the loader's path, or
 * from the place of CUDA's headers at build time. The caller closes it.
 *
 * Errors: STATUS_DEVICE, also if the version is too old or of another generation than the header.
 */
MUST_CHECK enum status cudnn_library_open(struct cudnn_library *out, struct error *err);
void cudnn_library_close(struct cudnn_library *library); /* not opened: does nothing */

/* Writes the library's text on this thread's last failed call. */
void cudnn_library_reason(const struct cudnn_library *library, cudnnStatus_t status, char *reason,
                          size_t size);

#endif
