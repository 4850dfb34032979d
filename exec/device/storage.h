/*
 * A file for data that does not fit into host memory, accessed in large pieces, without the page
 * cache if possible.
 *
 * The file has no name and disappears with the process. Its space is reserved when it is opened, so
 * that a full disk is found then. Each *queue* is used by one thread at a time. A call returns when
 * all bytes are transferred.
 */
#ifndef SPILLWAY_EXEC_DEVICE_STORAGE_H
#define SPILLWAY_EXEC_DEVICE_STORAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct storage; /* opaque */

/* Other offsets cost the transfer of one more block at each end. */
enum { STORAGE_BLOCK = 4096 };

/*
 * Calls that tests may replace. `outcome` gets the result of every transfer (bytes, or -errno) and
 * returns the result to use. Several threads may call it.
 */
struct storage_calls {
    int (*open)(struct storage_calls *calls, const char *path, int flags);
    int (*reserve)(struct storage_calls *calls, int file, uint64_t bytes); /* 0 or an errno */
    int64_t (*outcome)(struct storage_calls *calls, bool write, uint64_t offset, uint64_t length,
                       int64_t result);
};
extern struct storage_calls storage_calls_real;

struct storage_options {
    const char *folder; /* borrowed */
    uint64_t bytes;
    uint32_t queues;
    bool buffered;      /* uses the page cache */
    bool no_ring;       /* no io_uring */
    struct storage_calls *calls; /* for tests; NULL: the real calls */
};

/* Opens storage. The caller closes it with storage_close().
 * Errors: STATUS_IO with the folder (missing, not writable, full); STATUS_DEVICE when no thread
 * can be started. */
MUST_CHECK enum status storage_open(const struct storage_options *options, struct storage **out,
                                    struct error *err);
void storage_close(struct storage *storage); /* NULL does nothing */

/* Returns the method of transfers: "direct, io_uring". Borrowed. */
const char *storage_text(const struct storage *storage);

/* Returns a line for the user if the storage is slower than it could be, else NULL. Borrowed. */
const char *storage_note(const struct storage *storage);

/* Read and write. Errors: STATUS_IO with folder and offset. The destination of a failed read is
 * undefined. */
MUST_CHECK enum status storage_read(struct storage *storage, uint32_t queue, void *to,
                                    uint64_t offset, uint64_t bytes, struct error *err);
MUST_CHECK enum status storage_write(struct storage *storage, uint32_t queue, const void *from,
                                     uint64_t offset, uint64_t bytes, struct error *err);

#endif
