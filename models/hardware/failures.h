/*
 * Failing, preempted and slow devices in synchronous training: each step needs every device and takes as long as the
 * slowest.
 *
 *     {"spillway_failures": 1, "mtbf": "4000h", "shape": 1, "repair": "2h", "spares": 8,
 *      "restart": "5min", "checkpoint": {"every": "30min", "cost": "20s"}, "elastic": true, "least": 64,
 *      "stragglers": {"every": "100h", "for": "10min", "factor": 1.5},
 *      "events": [{"at": "3h", "device": 2, "for": "10min"},
 *                 {"at": "5h", "device": 0, "for": "1h", "factor": 2}], "work": "30d"}
 *
 *   mtbf        mean time until a device fails (default: never); Weibull with "shape" (1: exponential)
 *   repair      mean time until a failed device is back, exponential (0: at once)
 *   spares      idle devices, which replace a failed device at once and do not fail while idle (0)
 *   restart     time from a failure, or from when enough devices are there, until work continues (0)
 *   checkpoint  written after each interval "every" of work; writing stops work for "cost" (0). Without checkpoints a
 *               failure loses all work
 *   elastic     the run continues on the remaining devices, "least" (1) or more, at proportional speed. Repaired
 *               devices join at the next checkpoint. If not elastic, the run waits until all devices are back
 *   stragglers  each device becomes slow at mean intervals "every" for a mean time "for", both exponential. While
 *               any device is slow, a step takes "factor" times its normal time
 *   events      a fixed list of events, in addition to random ones: a device is away, or slow if "factor" is given
 *   work        duration of the undisturbed run; default: the simulated makespan
 */
#ifndef SPILLWAY_MODELS_HARDWARE_FAILURES_H
#define SPILLWAY_MODELS_HARDWARE_FAILURES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json/json_in.h"

enum { FAILURE_SPARES_MAX = 1 << 20, FAILURE_EVENTS_MAX = 1 << 20 };

struct failure_event {
    double at_s, for_s;
    uint32_t device;
    double factor; /* 0: away; else the factor on a step's time */
};

struct failures {
    double mtbf_s;  /* HUGE_VAL: never */
    double shape;   /* of the Weibull distribution */
    double repair_s, restart_s;
    uint32_t spares;
    double checkpoint_every_s; /* seconds of work; HUGE_VAL: no checkpoints */
    double checkpoint_s;
    bool elastic;
    uint32_t least;
    double straggle_every_s;   /* HUGE_VAL: never */
    double straggle_s, straggle_factor;
    double work_s;             /* 0: not given */
    struct failure_event *events; /* sorted by at_s */
    uint32_t event_count;
};

/* Read failures. The result lives as long as `arena`. An object inside another file needs no version. Errors:
 * STATUS_BAD_INPUT with file, line and column; STATUS_IO, STATUS_LIMIT. */
MUST_CHECK enum status failures_read(const char *path, uint32_t devices, struct arena *arena, struct failures *out,
                                     struct error *err);
MUST_CHECK enum status failures_parse(const struct json_input *in, const json_t *value, uint32_t devices,
                                      struct arena *arena, struct failures *out, struct error *err);

/* Returns a device's lifetime from an exponential random number of mean 1; HUGE_VAL when devices do not fail. */
double failures_life_s(const struct failures *failures, double exponential);

/*
 * Returns the best interval between checkpoints, in seconds of work, for failures at `rate` per second (all devices).
 * It minimises (e^(rate (interval + cost)) - 1) / interval, where (1 - rate interval) e^(rate (interval + cost)) = 1.
 * HUGE_VAL when rate or cost is 0 or checkpoints gain nothing.
 * Source: Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 22(3), 2006. The
 * equation is solved, not expanded.
 */
double failures_best_interval_s(double rate, double cost_s);

#endif
