/*
 * The back ends that this program was built with, by the name that a plan has for them.
 *
 * Whoever opens devices goes through this table, so that everything else is the same code for hosts
 * and GPUs.
 */
#ifndef SPILLWAY_EXEC_BACKEND_H
#define SPILLWAY_EXEC_BACKEND_H

#include "exec/device/device.h"
#include "models/job/job.h"

struct backend {
    const char *name; /* as in a plan's hardware */
    enum status (*open)(const struct device_options *options, struct device **out,
                        struct error *err);
    /* How many devices there are; UINT32_MAX: as many as one likes. STATUS_DEVICE: none, and why. */
    enum status (*count)(uint32_t *out, struct error *err);
    /* NULL, or why its kernels cannot train this job. Constant text. */
    const char *(*unsupported)(const struct job *job);
    /* What computes, for reports; about the devices opened last. Borrowed by the calling thread until
     * it asks again. */
    const char *(*text)(void);
    /* Lock host memory for copies; false: it stays as it was, which is slower, and `why` (size bytes)
     * says for what reason. NULL: this back end has no use for it. */
    bool (*pin)(void *memory, uint64_t bytes, char *why, uint32_t size);
    void (*unpin)(void *memory);
    bool arena_on_host; /* arenas are taken from the host's memory */
};

/* NULL when the program was built without one of this name. */
const struct backend *backend_find(const char *name);

/* "host, cuda" */
const char *backend_names(void);

#ifdef SPILLWAY_CUDA
extern const struct backend backend_cuda; /* of device_cuda.c */
#endif

#endif
