/*
 * The calls by which something reaches a disk that must still be there after the power went: one
 * table, so that a test can put a disk of its own behind it, which fails at the n-th call or loses
 * what was not synced (tests/support/support_disk.h).
 *
 * Each call does what the POSIX function of its name does, errors included: -1 and errno.
 */
#ifndef SPILLWAY_BASE_DISK_H
#define SPILLWAY_BASE_DISK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct disk;

struct disk_calls {
    int (*make_folder)(struct disk *disk, const char *path);
    /* A descriptor that keeps others out of the folder while it is open; EWOULDBLOCK when another
     * one is, of this process or not. It goes with the process, however that ends. */
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
    /* Call `each` with every name in the folder but "." and "..", in any order. */
    int (*list)(struct disk *disk, const char *path,
                void (*each)(void *context, const char *name), void *context);
};

struct disk {
    const struct disk_calls *calls;
};

/* The real one. */
extern struct disk disk_real;

#endif
