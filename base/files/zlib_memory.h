/* Memory for zlib from base/alloc.h, so that tests can make it fail. */
#ifndef SPILLWAY_BASE_FILES_ZLIB_MEMORY_H
#define SPILLWAY_BASE_FILES_ZLIB_MEMORY_H

#include <stdlib.h>
#include <zlib.h>

#include "base/alloc.h"

static inline voidpf zlib_allocate(voidpf unused, uInt count, uInt size)
{
    (void)unused;
    return alloc_zeroed(count, size);
}

static inline void zlib_free(voidpf unused, voidpf memory)
{
    (void)unused;
    free(memory);
}

#endif
