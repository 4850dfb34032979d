/*
 * The load of the machine over a stretch of time: how much of its processors' time other programs used, how much a
 * hypervisor gave to other machines, and how long threads of this process waited for a processor.
 *
 * Sources: /proc/stat, getrusage(2), /proc/self/task/N/schedstat (Documentation/scheduler/sched-stats.rst). /proc/stat
 * counts in ticks of 10 ms, so a stretch should be a quarter of a second or longer.
 */
#ifndef SPILLWAY_BASE_LOAD_H
#define SPILLWAY_BASE_LOAD_H

#include <stdbool.h>

/* The counters at one moment. */
struct load_mark {
    bool known;      /* false: this system does not tell */
    double wall_s;
    double all_s;    /* time of all processors since the machine was started */
    double busy_s;   /* the part of it in which they worked, stolen time apart */
    double stolen_s; /* the part of it that the hypervisor gave to other machines */
    double own_s;    /* processor time of this process */
    double waited_s; /* time that its threads were runnable and waited for a processor */
};

/* Shares of the processors' time, in [0, 1]; all zero when unknown. */
struct load {
    double others; /* used by other programs */
    double stolen; /* given to other machines by the hypervisor */
    double waited; /* seconds that this process's threads waited for a processor, per second of wall clock */
};

struct load_mark load_now(void);
struct load load_between(const struct load_mark *from, const struct load_mark *to);

/* The share of the processors' time that this process could not have had. */
static inline double load_taken(const struct load *load)
{
    const double taken = load->others + load->stolen;
    return taken < 1 ? taken : 1;
}

#endif
