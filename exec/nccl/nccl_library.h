/*
 * NCCL's interface, loaded at run time if it is installed; the program does not link it.
 *
 * The declarations are from nccl.h, NCCL 2.28.9, as far as they are used (NVIDIA Collective Communication Library
 * documentation, "Collective Communication Functions", "Communicator Creation and Management Functions"). They have
 * been the same since 2.0; a test compares the numbers where that header is installed.
 */
#ifndef SPILLWAY_EXEC_NCCL_NCCL_LIBRARY_H
#define SPILLWAY_EXEC_NCCL_NCCL_LIBRARY_H

#include <cuda_runtime_api.h>
#include <stddef.h>

#include "base/error.h"

/* ncclGetVersion() of the oldest version with ncclGetLastError(), and of the next generation. */
enum { NCCL_OLDEST = 21304, NCCL_NEXT = 30000 };

enum { NCCL_SUCCESS = 0, NCCL_IN_PROGRESS = 7 }; /* ncclResult_t */
enum { NCCL_INT8 = 0, NCCL_FLOAT32 = 7, NCCL_FLOAT64 = 8 }; /* ncclDataType_t */
enum { NCCL_SUM = 0 }; /* ncclRedOp_t */
typedef struct ncclComm *nccl_comm;

struct nccl_library {
    void *handle; /* NULL: not loaded */
    int version;  /* 22809 is 2.28.9 */
    int (*get_version)(int *version);
    const char *(*error_string)(int result);
    const char *(*last_error)(nccl_comm comm);
    int (*init_all)(nccl_comm *comms, int count, const int *devices);
    int (*destroy)(nccl_comm comm);
    int (*abort)(nccl_comm comm);
    int (*get_async_error)(nccl_comm comm, int *result);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*all_reduce)(const void *from, void *to, size_t count, int type, int operation, nccl_comm comm,
                      cudaStream_t stream);
    int (*reduce_scatter)(const void *from, void *to, size_t share, int type, int operation, nccl_comm comm,
                          cudaStream_t stream);
    int (*all_gather)(const void *from, void *to, size_t share, int type, nccl_comm comm, cudaStream_t stream);
    int (*reduce)(const void *from, void *to, size_t count, int type, int operation, int root, nccl_comm comm,
                  cudaStream_t stream);
    int (*broadcast)(const void *from, void *to, size_t count, int type, int root, nccl_comm comm, cudaStream_t stream);
};

/*
 * Loads the library that the variable SPILLWAY_NCCL names ("off": none), or libnccl.so.2 from the loader's path, or
 * from the CUDA toolkit's folder. It stays loaded until the program ends, because it has threads of its own.
 *
 * Errors: STATUS_DEVICE, also if the version is too old or of another generation.
 */
MUST_CHECK enum status nccl_library_open(struct nccl_library *out, struct error *err);

enum { NCCL_VERSION_BYTES = 48 };
void nccl_library_text(const struct nccl_library *library, char text[NCCL_VERSION_BYTES]); /* "NCCL 2.28.9" */

/* Writes "unhandled cuda error: ...", with the library's last message. `comm` may be NULL. */
void nccl_library_reason(const struct nccl_library *library, nccl_comm comm, int result, char *reason, size_t size);

#endif
