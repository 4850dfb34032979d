#include "cli/sweep/ranks.h"

#include <assert.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>

#include "base/files/path.h"
#include "base/size.h"
#include "base/text/number.h"

#ifndef SPILLWAY_MODULE_FOLDER
#define SPILLWAY_MODULE_FOLDER ""
#endif

/* Reads the environment of Open MPI, MPICH and others that use PMI. */
static uint64_t launched(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"};
    for (size_t n = 0; n < ARRAY_COUNT(names); n++) {
        const char *text = getenv(names[n]);
        uint64_t count;
        if (text && number_read_u64(text, &count)) return count;
    }
    return 1;
}

/* Looks in this program's folder, else in the installation. */
static void *load(void)
{
    char path[PATH_MAX];
    struct error unknown = {0};
    void *library = NULL;
    /* Open MPI's modules look for its symbols */
    if (path_from_program(SWEEP_RANKS_MODULE, path, sizeof path, &unknown) == STATUS_OK)
        library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library && SPILLWAY_MODULE_FOLDER[0])
        library = dlopen(SPILLWAY_MODULE_FOLDER "/" SWEEP_RANKS_MODULE, RTLD_NOW | RTLD_GLOBAL);
    return library;
}

enum status sweep_ranks_begin(struct sweep_ranks *out, struct error *err)
{
    *out = (struct sweep_ranks){.count = 1};
    if (launched() <= 1) return STATUS_OK;
    out->library = load();
    if (!out->library)
        return error_set(err, STATUS_DEVICE,
                         "mpirun started this program, but %s cannot be loaded: %s (was MPI installed when it was "
                         "built?)",
                         SWEEP_RANKS_MODULE, dlerror());
    out->module = dlsym(out->library, SWEEP_RANKS_SYMBOL);
    int rank = 0, count = 1;
    if (!out->module || !out->module->begin(&rank, &count))
        return error_set(err, STATUS_DEVICE, "mpirun started this program, but MPI does not start");
    out->rank = (uint32_t)rank;
    out->count = (uint32_t)count;
    return STATUS_OK;
}

void sweep_ranks_end(struct sweep_ranks *ranks)
{
    if (ranks->module) ranks->module->end();
    /* MPI leaves threads and handlers running */
}

void sweep_ranks_share(const struct sweep_ranks *ranks, void *data, size_t bytes)
{
    assert(bytes <= INT_MAX);
    if (ranks->module) ranks->module->share(data, (int)bytes);
}

void sweep_ranks_tell(const struct sweep_ranks *ranks, const void *data, size_t bytes)
{
    assert(ranks->module && ranks->rank > 0 && bytes <= INT_MAX);
    ranks->module->tell(data, (int)bytes);
}

bool sweep_ranks_hear(const struct sweep_ranks *ranks, void *data, size_t bytes)
{
    assert(bytes <= INT_MAX);
    return ranks->module && ranks->rank == 0 && ranks->module->hear(data, (int)bytes);
}
