/*
 * The calls that write data which must survive a loss of power. They form a table, so that a test
 * can supply a disk that fails at the n-th call or loses data that was not synced
 * (tests/support/support_disk.h).
 *
 * Each call does what the POSIX function of its name does, including its errors: -1 and errno.
 */
#ifndef SPILLWAY_BASE_FILES_DISK_H
#define SPILLWAY_BASE_FILES_DISK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct disk;

struct disk_calls {
    int (*make_folder)(struct disk *disk, const char *path);
    /* Returns a descriptor that locks the folder while it is open. EWOULDBLOCK when another open
     * descriptor, of this or another process, holds the lock. The lock ends with the process. */
    int (*lock_folder)(struct disk *disk, const char *path);
    int (*create)(struct disk *disk, const char *path); /* for writing, empty */
    int (*open)(struct disk *disk, const char *path);   /* for reading; EISDIR and such as open() */
    int64_t (*size)(struct disk *disk, int file);
    ssize_t (*write)(struct disk *disk, int file, const void *data, size_t length);
    ssize_t (*read)(struct disk *disk, int file, void *data, size_t length, uint64_t offset);
    int (*sync)(struct disk *disk, int file);
    int (*close)(struct disk *disk, int file);
    int (*rename)(struct disk *disk, const char *from, const char *to);
    int (*sync_folder)(struct disk *disk, const char *path);
    int (*remove)(struct disk *disk, const char *path);
    /* Calls `each` with every name in the folder except "." and "..", in any order. */
    int (*list)(struct disk *disk, const char *path,
                void (*each)(void *context, const char *name), void *context);
};

struct disk {
    const struct disk_calls *calls;
};

/* The disk of the operating system. */
extern struct disk disk_real;

#endif
