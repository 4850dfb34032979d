/* The back ends that this program was built with, by their names in plans. */
#ifndef SPILLWAY_EXEC_DEVICE_BACKEND_H
#define SPILLWAY_EXEC_DEVICE_BACKEND_H

#include "exec/device/device.h"
#include "exec/device/device_groups.h"
#include "models/job/job.h"

struct backend {
    const char *name; /* name in a plan's hardware */
    enum status (*open)(const struct device_options *options, struct device **out,
                        struct error *err);
    /* UINT32_MAX: no limit. STATUS_DEVICE: no device, with the reason. */
    enum status (*count)(uint32_t *out, struct error *err);
    /* Returns NULL, or a constant reason why it cannot train this job. */
    const char *(*unsupported)(const struct job *job);
    /* The devices opened last, for reports. Borrowed by the calling thread until its next call. */
    const char *(*text)(void);
    /* Locks host memory for copies. False: copies are slower; `why` (size bytes) has the reason.
     * NULL: not needed. */
    bool (*pin)(void *memory, uint64_t bytes, char *why, uint32_t size);
    void (*unpin)(void *memory);
    bool arena_on_host;
    const struct group_library *groups; /* NULL: none */
};

/* Returns NULL if the program lacks the back end. */
const struct backend *backend_find(const char *name);

/* Returns "host, cuda". */
const char *backend_names(void);

#ifdef SPILLWAY_CUDA
extern const struct backend backend_cuda; /* of device_cuda.c */
#endif

#endif
