/*
 * Devices that fail, are taken away, come back and are slow at times, and what a run does about it: for
 * synchronous training, whose step needs every device and takes as long as the slowest.
 *
 *     {"spillway_failures": 1, "mtbf": "4000h", "shape": 1, "repair": "2h", "spares": 8,
 *      "restart": "5min", "checkpoint": {"every": "30min", "cost": "20s"}, "elastic": true, "least": 64,
 *      "stragglers": {"every": "100h", "for": "10min", "factor": 1.5},
 *      "events": [{"at": "3h", "device": 2, "for": "10min"},
 *                 {"at": "5h", "device": 0, "for": "1h", "factor": 2}], "work": "30d"}
 *
 *   mtbf        mean time of a device until it fails (never); Weibull with "shape" (1: exponential)
 *   repair      mean time until it is back, exponential (0: at once)
 *   spares      idle devices, which take a failed one's place at once and do not fail while idle (0)
 *   restart     from a failure, when there are devices, until work goes on (0)
 *   checkpoint  written "every" so long of work, which stands still for "cost" (0); without one all is lost
 *   elastic     a run goes on with the devices that are there, "least" (1) at least, and as much slower;
 *               those that come back join at the next checkpoint. Else it waits for all of them
 *   stragglers  each device is slow every so often for a while, means of exponential times: a step takes
 *               "factor" times as long while any is
 *   events      a trace instead of chance or beside it: a device that is away, or with "factor" slow
 *   work        how long the run would take undisturbed; the simulated makespan unless given
 */
#ifndef SPILLWAY_MODELS_FAILURES_H
#define SPILLWAY_MODELS_FAILURES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json/json_in.h"

enum { FAILURE_SPARES_MAX = 1 << 20, FAILURE_EVENTS_MAX = 1 << 20 };

struct failure_event {
    double at_s, for_s;
    uint32_t device;
    double factor; /* 0: it is away; else how many times as long a step takes */
};

struct failures {
    double mtbf_s;  /* HUGE_VAL: never */
    double shape;   /* of the Weibull distribution */
    double repair_s, restart_s;
    uint32_t spares;
    double checkpoint_every_s; /* of work; HUGE_VAL: never */
    double checkpoint_s;
    bool elastic;
    uint32_t least;
    double straggle_every_s;   /* HUGE_VAL: never */
    double straggle_s, straggle_factor;
    double work_s;             /* 0: not given */
    struct failure_event *events; /* by at_s */
    uint32_t event_count;
};

/* For `devices` of them. Lives as long as `arena`. An object inside another file needs no version.
 * Errors: STATUS_BAD_INPUT with file, line and column; STATUS_IO, STATUS_LIMIT, STATUS_NO_MEMORY. */
MUST_CHECK enum status failures_read(const char *path, uint32_t devices, struct arena *arena, struct failures *out,
                                     struct error *err);
MUST_CHECK enum status failures_parse(const struct json_input *in, const json_t *value, uint32_t devices,
                                      struct arena *arena, struct failures *out, struct error *err);

/* How long a new device lives, by an exponential random number of mean 1; HUGE_VAL where none fails. */
double failures_life_s(const struct failures *failures, double exponential);

/*
 * The interval between checkpoints (seconds of work) that is best for failures of `rate` a second (all devices
 * together) with exponential gaps, each of which loses what came behind the last checkpoint: the minimum of
 * (e^(rate (interval + cost)) - 1) / interval, where (1 - rate interval) e^(rate (interval + cost)) = 1. HUGE_VAL
 * where rate or cost is 0 or nothing can be gained.
 * Source: Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 22(3),
 * 2006, whose equation is solved here instead of expanded.
 */
double failures_best_interval_s(double rate, double cost_s);

#endif
