#include "exec/cuda/cudnn_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"

#define TEXT_OF(number) TEXT(number)
#define TEXT(number) #number
static const char library_name[] = "libcudnn.so." TEXT_OF(CUDNN_MAJOR);

static void *load(char *why, size_t size)
{
    const char *const wanted = getenv("SPILLWAY_CUDNN");
    char beside[512];
    snprintf(beside, sizeof beside, "%s/%s", SPILLWAY_CUDNN, library_name);
    const char *const names[] = {wanted ? wanted : library_name, beside};
    if (wanted && strcmp(wanted, "off") == 0) {
        snprintf(why, size, "SPILLWAY_CUDNN is 'off'");
        return NULL;
    }
    for (size_t i = 0; i < ARRAY_COUNT(names) && !(wanted && i > 0); i++) {
        void *const handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (handle) return handle;
        if (i == 0) snprintf(why, size, "%s", dlerror()); /* of the name that everybody knows */
    }
    return NULL;
}

/* ISO C does not convert data pointers to pointers to functions. */
static bool find(void *handle, const char *name, void *function)
{
    void *const symbol = dlsym(handle, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

enum status cudnn_library_open(struct cudnn_library *out, struct error *err)
{
    char why[256] = "";
    struct cudnn_library library = {.handle = load(why, sizeof why)};
    if (!library.handle) return error_set(err, STATUS_DEVICE, "cannot load cuDNN: %s", why);
    const struct {
        const char *name;
        void *function;
    } symbols[] = {{"cudnnGetVersion", &library.get_version},
                   {"cudnnGetLastErrorString", &library.last_error},
                   {"cudnnCreate", &library.create},
                   {"cudnnDestroy", &library.destroy},
                   {"cudnnSetStream", &library.set_stream},
                   {"cudnnBackendCreateDescriptor", &library.create_descriptor},
                   {"cudnnBackendDestroyDescriptor", &library.destroy_descriptor},
                   {"cudnnBackendFinalize", &library.finalize},
                   {"cudnnBackendSetAttribute", &library.set_attribute},
                   {"cudnnBackendGetAttribute", &library.get_attribute},
                   {"cudnnBackendExecute", &library.execute}};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < ARRAY_COUNT(symbols) && status == STATUS_OK; i++)
        if (!find(library.handle, symbols[i].name, symbols[i].function))
            status = error_set(err, STATUS_DEVICE, "cuDNN has no %s", symbols[i].name);
    if (status == STATUS_OK) {
        library.version = library.get_version();
        if (library.version < CUDNN_OLDEST || library.version / 10000 != CUDNN_MAJOR)
            status = error_set(err, STATUS_DEVICE, "cuDNN %zu.%zu.%zu is not of %d.0.0 to %d.99.99",
                               library.version / 10000, library.version / 100 % 100,
                               library.version % 100, CUDNN_OLDEST / 10000, CUDNN_MAJOR);
    }
    if (status == STATUS_OK)
        *out = library;
    else
        dlclose(library.handle);
    return status;
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
