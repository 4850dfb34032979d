#include "exec/device/meeting.h"

#include <sched.h>

#include "base/process/children.h"

enum { LOOKS_MAX = 30000, YIELDS_MAX = 100 };

bool meeting_init(struct meeting *meeting, uint32_t members, bool looks)
{
    const bool crowded = members > children_cores();
    *meeting = (struct meeting){.members = members, .yields = crowded,
                                .looks = !looks ? 0 : crowded ? YIELDS_MAX : LOOKS_MAX};
    if (pthread_mutex_init(&meeting->lock, NULL) != 0) return false;
    if (pthread_cond_init(&meeting->met, NULL) == 0) return true;
    pthread_mutex_destroy(&meeting->lock);
    return false;
}

void meeting_release(struct meeting *meeting)
{
    pthread_cond_destroy(&meeting->met);
    pthread_mutex_destroy(&meeting->lock);
}

void meeting_cancel(struct meeting *meeting)
{
    pthread_mutex_lock(&meeting->lock);
    atomic_store(&meeting->cancelled, true);
    pthread_cond_broadcast(&meeting->met);
    pthread_mutex_unlock(&meeting->lock);
}

/* Returns the number of the meeting that was joined; of a cancelled one too, which is never held. Under the lock. */
static uint64_t join(struct meeting *meeting, meeting_last *last, void *argument)
{
    const uint64_t number = atomic_load(&meeting->held);
    if (atomic_load(&meeting->cancelled) || ++meeting->arrived < meeting->members) return number;
    meeting->arrived = 0;
    if (last) last(meeting, argument);
    atomic_store(&meeting->held, number + 1);
    pthread_cond_broadcast(&meeting->met);
    return number;
}

static bool goes_on(const struct meeting *meeting, uint64_t number)
{
    return atomic_load(&meeting->held) == number && !atomic_load(&meeting->cancelled);
}

static void look(const struct meeting *meeting, uint64_t number)
{
    for (uint32_t i = 0; i < meeting->looks && goes_on(meeting, number); i++)
        if (meeting->yields) sched_yield();
}

void meeting_arrive(struct meeting *meeting, meeting_last *last, void *argument)
{
    pthread_mutex_lock(&meeting->lock);
    join(meeting, last, argument);
    pthread_mutex_unlock(&meeting->lock);
}

bool meeting_attend(struct meeting *meeting, meeting_last *last, void *argument)
{
    pthread_mutex_lock(&meeting->lock);
    const uint64_t number = join(meeting, last, argument);
    pthread_mutex_unlock(&meeting->lock);
    look(meeting, number);
    if (goes_on(meeting, number)) {
        pthread_mutex_lock(&meeting->lock);
        while (goes_on(meeting, number)) pthread_cond_wait(&meeting->met, &meeting->lock);
        pthread_mutex_unlock(&meeting->lock);
    }
    return atomic_load(&meeting->held) > number;
}
