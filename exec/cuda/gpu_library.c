#include "exec/cuda/gpu_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"

pthread_mutex_t gpu_library_launching = PTHREAD_MUTEX_INITIALIZER;

static void *load(const struct gpu_library *library, char *why, size_t size)
{
    const char *const wanted = getenv(library->variable);
    char beside[512];
    snprintf(beside, sizeof beside, "%s/%s", library->folder, library->name);
    const char *const names[] = {wanted ? wanted : library->name, beside};
    if (wanted && strcmp(wanted, "off") == 0) {
        snprintf(why, size, "%s is 'off'", library->variable);
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
static bool find(void *handle, const struct gpu_library_symbol *wanted)
{
    void *const symbol = dlsym(handle, wanted->name);
    memcpy(wanted->function, &symbol, sizeof symbol);
    return symbol != NULL;
}

enum status gpu_library_open(const struct gpu_library *library, const struct gpu_library_symbol *symbols, size_t count,
                             void **handle, struct error *err)
{
    char why[256] = "";
    void *const loaded = load(library, why, sizeof why);
    if (!loaded) return error_set(err, STATUS_DEVICE, "cannot load %s: %s", library->title, why);
    for (size_t i = 0; i < count; i++) {
        if (find(loaded, &symbols[i])) continue;
        dlclose(loaded);
        return error_set(err, STATUS_DEVICE, "%s has no %s", library->title, symbols[i].name);
    }
    *handle = loaded;
    return STATUS_OK;
}
