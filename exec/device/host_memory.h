/* Memory of the host: its size, and large blocks with huge pages, touched. */
#ifndef SPILLWAY_EXEC_DEVICE_HOST_MEMORY_H
#define SPILLWAY_EXEC_DEVICE_HOST_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Returns the bytes that can still be allocated without swapping: the kernel's estimate, or the
 * rest below the control group's limit if that is less. UINT64_MAX when neither can be read. */
uint64_t host_memory_available(void);

/* Returns the bytes of DRAM in the machine, or the control group's limit; 0 when they cannot be
 * read. */
uint64_t host_memory_total(void);

/* Returns true when madvise() may ask for huge pages. */
bool host_memory_huge_pages(void);

/*
 * Maps `bytes` zeroed bytes (0 is allowed: *out is NULL) on a 2 MiB boundary, asks for huge pages
 * and writes to every page, so that no page faults happen later. `what` names the memory in the
 * message. The caller unmaps it with host_memory_unmap().
 * Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status host_memory_map(const char *what, uint64_t bytes, void **out,
                                       struct error *err);
void host_memory_unmap(void *memory, uint64_t bytes); /* NULL does nothing */

#endif
