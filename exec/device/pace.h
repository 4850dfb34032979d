/*
 * Work that lasts as long as on an emulated machine: a host device's memcpy represents PCIe, and a core represents
 * several slower devices.
 *
 * A copy of n bytes takes n / rate seconds if memcpy is faster. Consecutive work keeps its rate to much better than a
 * percent.
 */
#ifndef SPILLWAY_EXEC_DEVICE_PACE_H
#define SPILLWAY_EXEC_DEVICE_PACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct device_pace {
    double bytes_per_s;  /* 0: not paced, a plain memcpy */
    double free_s;       /* clock_s() when the link has carried all data so far */
    double oversleep_s;  /* usual delay of this thread's sleeps */
    double asked_s, late_s; /* durations so far; and by how much work ended later */
    /* Copies a piece and returns after its arrival; NULL: memcpy. */
    void (*copy)(void *context, void *to, const void *from, uint64_t bytes);
    void *context;
};

/* Asks for precise timers, on the thread that copies. */
void device_pace_attach(struct device_pace *pace);

/*
 * Copies, and returns when the link would be done.
 *
 * back_to_back   the link had no gap since the last copy
 *   quit           may be NULL; set from another thread, it ends the copy early
 */
void device_pace_copy(struct device_pace *pace, void *to, const void *from, uint64_t bytes, bool back_to_back,
                      const atomic_bool *quit);

/* Returns at the end of work that began at begun_s (clock_s()), has been done, and represents duration_s. The other
 * arguments are as above. */
void device_pace_hold(struct device_pace *pace, double begun_s, double duration_s, bool back_to_back,
                      const atomic_bool *quit);

#endif
