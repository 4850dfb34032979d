/* See device_host.c and device_cuda.c. */
#include "exec/device/backend.h"

#include <string.h>

#include "base/size.h"
#include "exec/kernels/kernels.h"

static enum status count_host(uint32_t *out, struct error *err)
{
    (void)err;
    *out = UINT32_MAX;
    return STATUS_OK;
}

static const char *host_unsupported(const struct job *job)
{
    (void)job;
    return NULL;
}

static const struct backend backend_host = {
    .name = "host",
    .open = device_open_host,
    .count = count_host,
    .unsupported = host_unsupported,
    .text = kernels_host_text,
    .arena_on_host = true,
};

static const struct backend *const backends[] = {
    &backend_host,
#ifdef SPILLWAY_CUDA
    &backend_cuda,
#endif
};

const struct backend *backend_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(backends); i++)
        if (strcmp(backends[i]->name, name) == 0) return backends[i];
    return NULL;
}

const char *backend_names(void)
{
#ifdef SPILLWAY_CUDA
    return "host, cuda";
#else
    return "host";
#endif
}
