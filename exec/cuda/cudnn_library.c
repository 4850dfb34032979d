#include "exec/cuda/cudnn_library.h"

#include <dlfcn.h>
#include <stdio.h>

#include "base/size.h"
#include "base/try.h"
#include "exec/cuda/gpu_library.h"

static const struct gpu_library about = {.title = "cuDNN",
                                         .name = "libcudnn.so." GPU_LIBRARY_TEXT(CUDNN_MAJOR),
                                         .variable = "SPILLWAY_CUDNN",
                                         .folder = SPILLWAY_CUDNN};

enum status cudnn_library_open(struct cudnn_library *out, struct error *err)
{
    struct cudnn_library library = {.handle = NULL};
    const struct gpu_library_symbol symbols[] = {
        {"cudnnGetVersion", &library.get_version},
        {"cudnnGetLastErrorString", &library.last_error},
        {"cudnnCreate", &library.create},
        {"cudnnDestroy", &library.destroy},
        {"cudnnSetStream", &library.set_stream},
        {"cudnnBackendCreateDescriptor", &library.create_descriptor},
        {"cudnnBackendDestroyDescriptor", &library.destroy_descriptor},
        {"cudnnBackendFinalize", &library.finalize},
        {"cudnnBackendSetAttribute", &library.set_attribute},
        {"cudnnBackendGetAttribute", &library.get_attribute},
        {"cudnnBackendExecute", &library.execute},
    };
    TRY(gpu_library_open(&about, symbols, ARRAY_COUNT(symbols), &library.handle, err));
    library.version = library.get_version();
    if (library.version < CUDNN_OLDEST || library.version / 10000 != CUDNN_MAJOR) {
        dlclose(library.handle);
        return error_set(err, STATUS_DEVICE, "cuDNN %zu.%zu.%zu is not of %d.0.0 to %d.99.99", library.version / 10000,
                         library.version / 100 % 100, library.version % 100, CUDNN_OLDEST / 10000, CUDNN_MAJOR);
    }
    *out = library;
    return STATUS_OK;
}

void cudnn_library_close(struct cudnn_library *library)
{
    if (library->handle) dlclose(library->handle);
    library->handle = NULL;
}

void cudnn_library_reason(const struct cudnn_library *library, cudnnStatus_t status, char *reason,
                          size_t size)
{
    char said[256] = "";
    library->last_error(said, sizeof said);
    said[sizeof said - 1] = '\0';
    for (char *c = said; *c; c++)
        if (*c == '\n') *c = ' ';
    snprintf(reason, size, "status %d%s%s", (int)status, said[0] ? ": " : "", said);
}
