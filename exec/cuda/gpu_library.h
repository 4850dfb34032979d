/* Vendors' libraries that are loaded at run time if they are installed; the program does not link them. */
#ifndef SPILLWAY_EXEC_CUDA_GPU_LIBRARY_H
#define SPILLWAY_EXEC_CUDA_GPU_LIBRARY_H

#include <pthread.h>
#include <stddef.h>

#include "base/error.h"

/*
 * Held while a group of collectives is enqueued on several GPUs, and during the first launch of a library's kernel,
 * which loads it. Loading may wait for the GPU's running kernels. If it came between the launches of a group, the first
 * GPU's kernel would wait for the second's, which could not be launched.
 */
extern pthread_mutex_t gpu_library_launching;

/* The text of a macro's number: of a library's version in its name. */
#define GPU_LIBRARY_TEXT(macro) GPU_LIBRARY_TEXT_OF(macro)
#define GPU_LIBRARY_TEXT_OF(number) #number

struct gpu_library {
    const char *title;    /* "cuDNN" */
    const char *name;     /* "libcudnn.so.9" */
    const char *variable; /* of the environment: another name, or "off" */
    const char *folder;   /* where it is looked for if the loader does not find it */
};

struct gpu_library_symbol {
    const char *name;
    void *function; /* out: a pointer to a pointer to a function */
};

/* Loads a library and finds its functions. The caller closes *handle with dlclose(). Errors: STATUS_DEVICE. */
MUST_CHECK enum status gpu_library_open(const struct gpu_library *library, const struct gpu_library_symbol *symbols,
                                        size_t count, void **handle, struct error *err);

#endif
