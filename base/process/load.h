/*
 * The load of the machine over an interval: the share of processor time that other programs used, the share that a
 * hypervisor gave to other machines, and the time that threads of this process waited for a processor.
 *
 * Sources: /proc/stat, getrusage(2), /proc/self/task/N/schedstat (Documentation/scheduler/sched-stats.rst).
 * /proc/stat counts in ticks of 10 ms, so an interval should be a quarter of a second or longer.
 */
#ifndef SPILLWAY_BASE_PROCESS_LOAD_H
#define SPILLWAY_BASE_PROCESS_LOAD_H

#include <stdbool.h>

/* The counters at one moment. */
struct load_mark {
    bool known;      /* false: this system does not report it */
    double wall_s;
    double all_s;    /* time of all processors since boot */
    double busy_s;   /* the part of all_s spent on work, without stolen time */
    double stolen_s; /* the part of all_s that the hypervisor gave to other machines */
    double own_s;    /* processor time of this process */
    double waited_s; /* time for which threads of this process were runnable but waited for a processor */
};

/* Shares of the processors' time, in [0, 1]; all zero when unknown. */
struct load {
    double others; /* used by other programs */
    double stolen; /* given to other machines by the hypervisor */
    double own;    /* used by this process */
    double waited; /* seconds that this process's threads waited for a processor, per second of wall clock */
};

struct load_mark load_now(void);
struct load load_between(const struct load_mark *from, const struct load_mark *to);

/* Returns the share of processor time that was not available to this process. */
static inline double load_taken(const struct load *load)
{
    const double taken = load->others + load->stolen;
    return taken < 1 ? taken : 1;
}

#endif
