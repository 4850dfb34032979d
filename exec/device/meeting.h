/*
 * Threads that wait for each other, again and again.
 *
 * A member looks for the others before it sleeps, for about as long as it takes to wake a thread. Without that, a
 * member that wakes late keeps the others waiting at the next meeting until they sleep as well, and so on.
 */
#ifndef SPILLWAY_EXEC_DEVICE_MEETING_H
#define SPILLWAY_EXEC_DEVICE_MEETING_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t met;
    uint32_t members, arrived;
    atomic_uint_fast64_t held; /* meetings so far; changed under the lock, like `cancelled` */
    atomic_bool cancelled;
    uint32_t looks; /* of a member before it sleeps */
    bool yields;    /* members outnumber cores, and give way between two looks */
};

/* `looks`: false on dilated devices, whose processor time is measured. Returns false without resources. */
MUST_CHECK bool meeting_init(struct meeting *meeting, uint32_t members, bool looks);
void meeting_release(struct meeting *meeting);

/* Called under the lock by the last member, before the others go on; may change `members` of the next meetings. */
typedef void meeting_last(struct meeting *meeting, void *argument);

/* Counts a member that does not wait. `last` may be NULL. */
void meeting_arrive(struct meeting *meeting, meeting_last *last, void *argument);

/* Waits for all members. Returns false when a cancellation came before all of them. */
MUST_CHECK bool meeting_attend(struct meeting *meeting, meeting_last *last, void *argument);

/* Ends this and all later meetings for everybody. */
void meeting_cancel(struct meeting *meeting);

#endif
