/*
 * Saturn's introspection: at every interval the remaining work is planned again, and a plan that ends sooner by a
 * threshold is taken.
 *
 * Run times are exact here, so only changed decisions gain: a job may stop, and go on later in another configuration or
 * elsewhere, after a restart of `restart_ticks` during which it holds its devices. Work is divisible: after 3 of 10
 * ticks in one configuration, 7 tenths are left in any other, rounded up to whole ticks. Jobs that go on unchanged pay
 * nothing.
 *
 * Source: Saturn, PVLDB 17(4), sec. 4.4: intervals of 1000 s, a threshold of 500 s.
 */
#ifndef SPILLWAY_PLANNER_SATURN_SPASE_SPASE_INTROSPECT_H
#define SPILLWAY_PLANNER_SATURN_SPASE_SPASE_INTROSPECT_H

#include "planner/saturn/spase/spase_schedule.h"

enum { SPASE_INTERVALS_MAX = 100000 };

struct spase_introspect_options {
    int64_t interval_ticks;  /* at least 1 */
    int64_t threshold_ticks; /* at least 0: least gain of a new plan */
    int64_t restart_ticks;   /* at least 0 */
    uint64_t seed;
    uint64_t iterations;     /* iterations of the search, at each interval */
    bool optimus;            /* plan with Optimus's rule instead: "Optimus*-Dynamic" */
};

/* A job in one configuration on the same devices, without a stop. */
struct spase_piece {
    uint32_t job, config;
    uint32_t first_device, device_count; /* in spase_course.devices */
    int64_t start, end;
    int64_t restart;                     /* ticks at the beginning without work */
};

/* Open structure; zeroed it is empty. */
struct spase_course {
    struct spase_piece *pieces; /* (piece_count), in the order of decisions */
    uint32_t *devices;
    size_t piece_count, device_count, piece_capacity, device_capacity;
    int64_t makespan;
    uint32_t intervals, replans; /* intervals examined; plans taken */
};

/* Simulates steps[] with planning at every interval. Errors: STATUS_LIMIT for more than SPASE_INTERVALS_MAX intervals,
 * or too large a sum of durations. */
MUST_CHECK enum status spase_introspect(const struct spase *in, const struct spase_step *steps,
                                        const struct spase_introspect_options *options,
                                        struct spase_course *out, struct error *err);
void spase_course_release(struct spase_course *course);

/*
 * Checks a course: gangs as in spase_check(), no device or job in two pieces at a time, every piece but a job's first
 * with its restart, and all work done. Shares no code with the maker of courses. Errors: STATUS_CHECK.
 */
MUST_CHECK enum status spase_course_check(const struct spase *in, const struct spase_course *course,
                                          int64_t restart_ticks, struct error *err);

#endif
