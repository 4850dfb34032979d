#include "exec/nccl/nccl_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "base/try.h"
#include "exec/cuda/gpu_library.h"

static const struct gpu_library about = {
    .title = "NCCL", .name = "libnccl.so.2", .variable = "SPILLWAY_NCCL", .folder = SPILLWAY_NCCL};

enum status nccl_library_open(struct nccl_library *out, struct error *err)
{
    struct nccl_library library = {.handle = NULL};
    const struct gpu_library_symbol symbols[] = {
        {"ncclGetVersion", &library.get_version},
        {"ncclGetErrorString", &library.error_string},
        {"ncclGetLastError", &library.last_error},
        {"ncclCommInitAll", &library.init_all},
        {"ncclCommDestroy", &library.destroy},
        {"ncclCommAbort", &library.abort},
        {"ncclCommGetAsyncError", &library.get_async_error},
        {"ncclGroupStart", &library.group_start},
        {"ncclGroupEnd", &library.group_end},
        {"ncclAllReduce", &library.all_reduce},
        {"ncclReduceScatter", &library.reduce_scatter},
        {"ncclAllGather", &library.all_gather},
        {"ncclReduce", &library.reduce},
        {"ncclBroadcast", &library.broadcast},
    };
    TRY(gpu_library_open(&about, symbols, ARRAY_COUNT(symbols), &library.handle, err));
    const int failed = library.get_version(&library.version);
    if (failed == NCCL_SUCCESS && library.version >= NCCL_OLDEST && library.version < NCCL_NEXT) {
        *out = library;
        return STATUS_OK;
    }
    char text[NCCL_VERSION_BYTES];
    nccl_library_text(&library, text);
    dlclose(library.handle);
    return error_set(err, STATUS_DEVICE, "%s is not of 2.13.4 to 2.99.99", text);
}

void nccl_library_text(const struct nccl_library *library, char text[NCCL_VERSION_BYTES])
{
    /* 2803 is 2.8.3 */
    const int version = library->version, major = version < 10000 ? version / 1000 : version / 10000;
    snprintf(text, NCCL_VERSION_BYTES, "NCCL %d.%d.%d", major, version / 100 % (version < 10000 ? 10 : 100),
             version % 100);
}

void nccl_library_reason(const struct nccl_library *library, nccl_comm comm, int result, char *reason, size_t size)
{
    const char *const said = library->last_error(comm);
    snprintf(reason, size, "%s%s%s", library->error_string(result), said && said[0] ? ": " : "", said ? said : "");
    for (char *c = reason; *c; c++)
        if (*c == '\n') *c = ' ';
}
