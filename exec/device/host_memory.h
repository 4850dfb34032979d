/* Memory of the host: how much there is, and large blocks of it with huge pages, touched. */
#ifndef SPILLWAY_EXEC_HOST_MEMORY_H
#define SPILLWAY_EXEC_HOST_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Bytes that can still be had without swapping: the kernel's estimate, or what is left below the
 * limit of the control group when that is less. UINT64_MAX when neither can be read. */
uint64_t host_memory_available(void);

/* Bytes of DRAM in the machine, or the control group's limit; 0 when they cannot be read. */
uint64_t host_memory_total(void);

/* May madvise() ask for huge pages? */
bool host_memory_huge_pages(void);

/*
 * Map `bytes` (0 is allowed: *out is NULL) on a 2 MiB boundary, ask for huge pages and write to
 * every page, so that no page fault is left for later. Zeroed. `what` names it in the message.
 * The caller unmaps it with host_memory_unmap(). Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status host_memory_map(const char *what, uint64_t bytes, void **out,
                                       struct error *err);
void host_memory_unmap(void *memory, uint64_t bytes); /* NULL is fine */

#endif
