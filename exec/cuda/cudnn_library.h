/*
 * cuDNN, loaded when it is there: the functions of its backend interface that attention needs.
 *
 * Nothing is linked: a machine without the library runs the same program. Included where cuDNN's header
 * was found when this was built (SPILLWAY_CUDNN).
 */
#ifndef SPILLWAY_EXEC_CUDNN_LIBRARY_H
#define SPILLWAY_EXEC_CUDNN_LIBRARY_H

#include <cudnn_graph.h>
#include <stddef.h>

#include "base/error.h"

/* The oldest one that takes sequences of any length. */
enum { CUDNN_OLDEST = 90000 };

struct cudnn_library {
    void *handle; /* dlopen()'s; NULL: not there */
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
 * Load the library that the variable SPILLWAY_CUDNN names ("off": none), or libcudnn.so.9 from where the
 * loader looks, then from where CUDA's headers were when this was built. The caller closes it with
 * cudnn_library_close().
 *
 * Errors: STATUS_DEVICE with what the loader says, or with the version that is too old or of another
 * generation than the header.
 */
MUST_CHECK enum status cudnn_library_open(struct cudnn_library *out, struct error *err);
void cudnn_library_close(struct cudnn_library *library); /* one that was not opened is fine */

/* What the library says of the last call of this thread that failed, up to `size` bytes. */
void cudnn_library_reason(const struct cudnn_library *library, cudnnStatus_t status, char *reason,
                          size_t size);

#endif
