/*
 * Copies at the rate of a link that is not there: a host device's memcpy stands in for PCIe.
 *
 * A paced copy of n bytes takes n / rate seconds where memcpy is faster than the rate, and copies
 * that follow each other without a pause keep the rate on average to much better than a percent.
 */
#ifndef SPILLWAY_EXEC_PACE_H
#define SPILLWAY_EXEC_PACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct pace {
    double bytes_per_s;  /* 0: not paced, a plain memcpy */
    double free_s;       /* clock_s() at which the link has carried what it was given so far */
    double oversleep_s;  /* how late sleeps of this thread usually end */
    /* Copies a piece and returns when it is there; NULL: memcpy. */
    void (*copy)(void *context, void *to, const void *from, uint64_t bytes);
    void *context;
};

/* Once on the thread that will copy: asks the kernel for precise timers. */
void pace_attach(struct pace *pace);

/*
 * Copy, and return when the link would be done.
 *
 * back_to_back   nothing was waited for since the last copy: the link had no gap
 * quit           may be NULL; set from another thread, it ends the copy early
 */
void pace_copy(struct pace *pace, void *to, const void *from, uint64_t bytes, bool back_to_back,
               const atomic_bool *quit);

#endif
