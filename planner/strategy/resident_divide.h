/*
 * The division of jobs among devices (resident.h), by each job's times without others.
 *
 * All resident: the longest job first, to the device on which it ends first (LPT: at most 4/3 - 1/(3 D) of the best on
 * D equal devices, Graham, SIAM J. Appl. Math. 17, 1969). On the first m devices only: the longest first, to the
 * fullest device that it does not fill beyond an even share; jobs that fit nowhere are left for the other devices.
 *
 * Cost: O(jobs * kinds * log devices) comparisons; devices of a kind are in the order of their loads.
 */
#ifndef SPILLWAY_PLANNER_STRATEGY_RESIDENT_DIVIDE_H
#define SPILLWAY_PLANNER_STRATEGY_RESIDENT_DIVIDE_H

#include <stdint.h>

#define RESIDENT_NOWHERE UINT32_MAX

struct resident_times {
    const double *alone_s;   /* [job][kind]: seconds from its first minibatch to its last */
    const uint32_t *kind;    /* (device_count) each below kind_count; a kind without devices takes HUGE_VAL */
    const uint32_t *longest; /* (job_count) jobs by their times, the longest first */
    uint32_t job_count, device_count, kind_count;
};

struct resident_division {
    uint32_t *device;     /* (job_count) device of each job; RESIDENT_NOWHERE: left over */
    double *load_s;       /* (device_count) */
    uint32_t *order;      /* (device_count) scratch: devices by kind, then by load */
    uint32_t *kind_end;   /* (kind_count) scratch: where each kind ends there */
    uint32_t left_count;  /* jobs */
    double resident_s;    /* end of the last resident device */
    double left_s;        /* time of the jobs left over, divided among the other devices; or the longest of them */
};

/* Jobs by their shortest times, the longest first, of equal ones the lower number. `longest`: out, (job_count). */
void resident_order(const struct resident_times *times, uint32_t *longest);

/* Returns a lower bound for every division: the work in equal parts, or the longest job. */
double resident_share_s(const struct resident_times *times);

/* `resident` of the devices, from the first: device_count for all jobs. Fills what `out` points to. */
void resident_divide(const struct resident_times *times, uint32_t resident, struct resident_division *out);

#endif
