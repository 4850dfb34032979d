/*
 * One file for what host memory has no room for: read and written in large pieces, past the page
 * cache where the file system lets us.
 *
 * The file has no name, so nothing is left of it however the process ends. Its space is reserved when
 * it is opened: a full disk is found then, and not in the middle of a run. Each *lane* is used by one
 * thread at a time; a call returns when all of its bytes are there. Short transfers are continued,
 * interrupted ones repeated.
 */
#ifndef SPILLWAY_EXEC_STORAGE_H
#define SPILLWAY_EXEC_STORAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct storage; /* opaque */

/* What offsets should be multiples of; others cost an additional transfer of one block at each end. */
enum { STORAGE_BLOCK = 4096 };

/*
 * The calls that may fail, so that tests can let them: each does what the POSIX function of its name
 * does. `outcome` sees the result of every transfer (bytes, or -errno) and says what we are told:
 * the same, less, or an error. Several threads may call it at the same time.
 */
struct storage_calls {
    int (*open)(struct storage_calls *calls, const char *path, int flags);
    int (*reserve)(struct storage_calls *calls, int file, uint64_t bytes); /* 0 or an errno */
    int64_t (*outcome)(struct storage_calls *calls, bool write, uint64_t offset, uint64_t length,
                       int64_t result);
};
extern struct storage_calls storage_calls_real;

struct storage_options {
    const char *folder; /* borrowed while it is open */
    uint64_t bytes;
    uint32_t lanes;
    bool buffered;      /* go through the page cache, as where there is no direct I/O */
    bool no_ring;       /* do without io_uring, as where the kernel refuses it */
    struct storage_calls *calls; /* tests; NULL: the real ones */
};

/* The caller closes it with storage_close(). Errors: STATUS_IO with the folder: not there, not ours
 * to write to, no room; STATUS_NO_MEMORY; STATUS_DEVICE when no thread can be started. */
MUST_CHECK enum status storage_open(const struct storage_options *options, struct storage **out,
                                    struct error *err);
void storage_close(struct storage *storage); /* NULL is fine */

/* "direct, io_uring": how transfers are made. Borrowed. */
const char *storage_text(const struct storage *storage);

/* A line for the user about what is slower here than it might be; NULL: nothing is. Borrowed. */
const char *storage_note(const struct storage *storage);

/* Errors: STATUS_IO with folder and offset, STATUS_NO_MEMORY. What was to be read is undefined then. */
MUST_CHECK enum status storage_read(struct storage *storage, uint32_t lane, void *to,
                                    uint64_t offset, uint64_t bytes, struct error *err);
MUST_CHECK enum status storage_write(struct storage *storage, uint32_t lane, const void *from,
                                     uint64_t offset, uint64_t bytes, struct error *err);

#endif
