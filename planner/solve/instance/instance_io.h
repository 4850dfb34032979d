/*
 * Instances as JSON files.
 *
 *     {"spillway_instance": 1, "name": "two", "objective": "makespan", "bridge_bytes_per_tick": 0,
 *      "tick_s": 1e-6, "devices": [{"name": "fast", "count": 2, "memory": 100, "slots": 2, "speed": 1.5}],
 *      "jobs": [{"name": "a", "repeat": 4, "weight": 1, "deadline": 90,
 *                "units": [{"compute": 7, "in": 3, "out": 3, "memory": 40, "shard": 0,
 *                           "writes": true, "in_bytes": 8, "out_bytes": 8, "after": 1}, ...]}]}
 *
 * Durations are ticks: whole numbers, of "tick_s" seconds each. "compute" is one number, divided by the class's "speed" and
 * rounded up, or an array with one for each class of devices. Absent are 0, false, 1 ("repeat",
 * "weight", "count", "speed"), 2 ("slots"), 1e-6 ("tick_s") or none ("deadline"); "shard" is the unit's number. Units follow each
 * other as they stand, or, where one of a job's units has "after", as that says: the number of the
 * unit in front of it.
 */
#ifndef SPILLWAY_PLANNER_INSTANCE_IO_H
#define SPILLWAY_PLANNER_INSTANCE_IO_H

#include "base/json/json_in.h"
#include "planner/solve/instance/instance.h"

struct json_out;

/*
 * Zeroed struct in; release with instance_release(), also after an error.
 * Errors: STATUS_BAD_INPUT with file, line and column; those of instance_finish(), the file's name
 * in front.
 */
MUST_CHECK enum status instance_read(const char *path, struct instance *out, struct error *err);
MUST_CHECK enum status instance_parse(const struct json_input *in, struct instance *out,
                                      struct error *err);

/* What reads back as the same instance. */
void instance_write_json(const struct instance *in, struct json_out *out);
MUST_CHECK enum status instance_write(const struct instance *in, const char *path, struct error *err);

#endif
