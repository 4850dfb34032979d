#include "base/process/clock.h"

#include <errno.h>
#include <math.h>
#include <time.h>

static double read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double clock_s(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

static struct timespec timespec_of(double at_s)
{
    const double whole_s = floor(at_s);
    return (struct timespec){.tv_sec = (time_t)whole_s, .tv_nsec = (long)((at_s - whole_s) * 1e9)};
}

void clock_sleep_until(double at_s)
{
    const struct timespec at = timespec_of(at_s);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        ;
}

bool clock_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, double at_s)
{
    const struct timespec at = timespec_of(at_s);
    return pthread_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, &at) == 0;
}

double clock_thread_s(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}
