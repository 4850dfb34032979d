/* The emulated NCCL (tests/emulator/nccl), as tests see it. */
#ifndef SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_NCCL_H
#define SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_NCCL_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "tests/emulator/nccl/emulated_nccl.h"

static emulated_nccl_break_function nccl_break;
static emulated_nccl_calls_function nccl_calls;
static emulated_nccl_finding_function nccl_finding;
static emulated_nccl_open_function nccl_open;

/* Returns the library; NULL, and says why, if it cannot be loaded. */
static inline void *nccl_open_library(void)
{
    void *const library = dlopen(EMULATED_NCCL, RTLD_NOW);
    if (!library) {
        printf("%s\n", dlerror());
        return NULL;
    }
    const struct {
        const char *name;
        void *function;
    } symbols[] = {{"emulated_nccl_break", &nccl_break},
                   {"emulated_nccl_calls", &nccl_calls},
                   {"emulated_nccl_finding", &nccl_finding},
                   {"emulated_nccl_open", &nccl_open}};
    for (size_t i = 0; i < ARRAY_COUNT(symbols); i++) {
        void *const symbol = dlsym(library, symbols[i].name);
        memcpy(symbols[i].function, &symbol, sizeof symbol);
        if (!symbol) return NULL;
    }
    return library;
}

#endif
