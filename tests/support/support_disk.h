/*
 * A disk in memory that does what disks do at the worst moment.
 *
 * What was written and not synced may be there after the power went, or not, in pieces of 64 bytes
 * and in any order; names that were made, renamed or removed without a sync of their folder likewise.
 * A call may fail, once or from then on, and a write may take only a part.
 *
 * Calls are counted from 1. Reading is counted by itself, so that a sweep over the calls of a write
 * need not know how the folder is looked at.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_SUPPORT_DISK_H
#define SPILLWAY_TESTS_SUPPORT_SUPPORT_DISK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/files/disk.h"

enum support_disk_fault {
    FAULT_NONE,
    FAULT_ONCE,  /* call `at` fails with `error` */
    FAULT_FULL,  /* from call `at` on, each write fails with ENOSPC after taking half of it */
    FAULT_SHORT, /* from call `at` on, each write takes half */
    FAULT_KILL,  /* the program is gone from call `at` on; a write there is half done */
    FAULT_POWER, /* the same; support_disk_after_power() says what is left */
};

struct support_disk {
    struct disk disk; /* first: what the code under test gets */
    enum support_disk_fault fault;
    uint64_t at;
    int error;
    uint64_t calls;       /* that change something, so far */
    uint64_t read_at;     /* the n-th read fails with EIO; 0: none does */
    uint64_t reads;
    size_t read_most;     /* bytes a read gives at most; 0: what is asked for */
    bool lies;            /* sync says yes and does nothing: the judge must notice */
    struct support_disk_state *state;
};

#define SUPPORT_DISK_TOP "/top" /* a folder that is there */

void support_disk_init(struct support_disk *disk);
void support_disk_release(struct support_disk *disk);

/* What is found when the program starts again; faults are over. A seed says what was lost. */
void support_disk_after_kill(struct support_disk *disk);
void support_disk_after_power(struct support_disk *disk, uint64_t seed);

/* A file's bytes; NULL when there is none. Borrowed, and may be changed in place. */
unsigned char *support_disk_file(struct support_disk *disk, const char *path, size_t *length);
void support_disk_truncate(struct support_disk *disk, const char *path, size_t length);

/* Files whose names end like this. */
uint32_t support_disk_count(const struct support_disk *disk, const char *ending);

#endif
