/*
 * Bytes that are kept until they are read: in memory while they are few, then in a file without a name, which is gone
 * when the process ends, however it ends.
 */
#ifndef SPILLWAY_BASE_FILES_SPOOL_H
#define SPILLWAY_BASE_FILES_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct spool; /* opaque */

/* Makes the file in the folder of `path`, or in TMPDIR (/tmp) where `path` is NULL or its folder cannot hold it. The
 * caller frees *out with spool_destroy(). */
MUST_CHECK enum status spool_create(const char *path, struct spool **out, struct error *err);
void spool_destroy(struct spool *spool); /* NULL does nothing */

/* Appends bytes. A failure is remembered and reported by spool_read(). */
void spool_write(struct spool *spool, const void *data, size_t length);

/* Bytes that were written. */
uint64_t spool_length(const struct spool *spool);

/* Reads `length` bytes that were written from `offset` on. Errors: STATUS_IO. */
MUST_CHECK enum status spool_read(struct spool *spool, uint64_t offset, void *data, size_t length, struct error *err);

#endif
