/*
 * A disk in memory that shows the worst behaviour of real disks.
 *
 * After a power cut, data that was not synced may be there or not, in pieces of 64 bytes and in any order; so may names
 * that were made, renamed or removed without a sync of their folder. A call may fail, once or from then on, and a write
 * may take only a part.
 *
 * Calls are counted from 1. Reads are counted separately, so that a sweep over the calls of a write does not depend on
 * how the folder is read.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_SUPPORT_DISK_H
#define SPILLWAY_TESTS_SUPPORT_SUPPORT_DISK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/files/disk.h"

enum support_disk_fault {
    FAULT_NONE,
    FAULT_ONCE,  /* call `at` fails with `error` */
    FAULT_FULL,  /* from call `at` on, each write takes half of its data and fails with ENOSPC */
    FAULT_SHORT, /* from call `at` on, each write takes half */
    FAULT_KILL,  /* the program ends at call `at`; a write there is half done */
    FAULT_POWER, /* the same; support_disk_after_power() decides what survives */
};

struct support_disk {
    struct disk disk; /* first: the interface of the code under test */
    enum support_disk_fault fault;
    uint64_t at;
    int error;
    uint64_t calls;       /* calls so far that change something */
    uint64_t read_at;     /* the n-th read fails with EIO; 0: no read */
    uint64_t reads;
    size_t read_most;     /* largest number of bytes that a read returns; 0: no limit */
    bool lies;            /* sync succeeds and does nothing, which the judge must notice */
    struct support_disk_state *state;
};

#define SUPPORT_DISK_TOP "/top" /* an existing folder */

void support_disk_init(struct support_disk *disk);
void support_disk_release(struct support_disk *disk);

/* Restart the program after faults. The seed selects the lost data. */
void support_disk_after_kill(struct support_disk *disk);
void support_disk_after_power(struct support_disk *disk, uint64_t seed);

/* Returns a file's bytes, or NULL if there is none. Borrowed; may be changed in place. */
unsigned char *support_disk_file(struct support_disk *disk, const char *path, size_t *length);
void support_disk_truncate(struct support_disk *disk, const char *path, size_t length);

/* Counts files whose names have this ending. */
uint32_t support_disk_count(const struct support_disk *disk, const char *ending);

#endif
