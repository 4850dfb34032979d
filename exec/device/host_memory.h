/* Memory of the host: its size, and large blocks with huge pages, touched. */
#ifndef SPILLWAY_EXEC_DEVICE_HOST_MEMORY_H
#define SPILLWAY_EXEC_DEVICE_HOST_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Returns bytes that can be allocated without swapping, within the control group's limit;
 * UINT64_MAX when unknown. */
uint64_t host_memory_available(void);

/* Returns the DRAM of the machine, or the control group's limit; 0 if unknown. */
uint64_t host_memory_total(void);

/* Returns true if madvise() may ask for huge pages. */
bool host_memory_huge_pages(void);

/*
 * Maps zeroed bytes (0 is allowed: *out is NULL) on a 2 MiB boundary, asks for huge pages and
 * touches every page. `what` names the memory in messages. The caller unmaps it with
 * host_memory_unmap().
 * Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status host_memory_map(const char *what, uint64_t bytes, void **out,
                                       struct error *err);
void host_memory_unmap(void *memory, uint64_t bytes); /* NULL does nothing */

#endif
