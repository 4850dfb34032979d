/*
 * Instances as JSON files.
 *
 *     {"spillway_instance": 1, "name": "two", "objective": "makespan", "bridge_bytes_per_tick": 0,
 *      "tick_s": 1e-6, "devices": [{"name": "fast", "count": 2, "memory": 100, "slots": 2, "speed": 1.5}],
 *      "jobs": [{"name": "a", "repeat": 4, "weight": 1, "deadline": 90,
 *                "units": [{"compute": 7, "in": 3, "out": 3, "memory": 40, "shard": 0,
 *                           "writes": true, "in_bytes": 8, "out_bytes": 8, "after": 1}, ...]}]}
 *
 * Durations are whole numbers of ticks, of "tick_s" seconds each. "compute" is one number, divided by the class's
 * "speed" and rounded up, or an array with one per class of devices. Defaults: 0, false, 1 ("repeat", "weight",
 * "count", "speed"), 2 ("slots"), 1e-6 ("tick_s"), none ("deadline"), the unit's number ("shard"). Units run in the
 * array's order, except after a unit's "after", the number of the unit before it.
 *
 * With "streams": true, units may also have "edge_in", "edge_out", "host_before", "host_after", "update", "table"
 * (ticks), "after_host", "in_apart" and "out_apart", jobs "load" and "store", devices "edges" (dispatch_streams.h).
 */
#ifndef SPILLWAY_PLANNER_SOLVE_INSTANCE_INSTANCE_IO_H
#define SPILLWAY_PLANNER_SOLVE_INSTANCE_INSTANCE_IO_H

#include "base/json/json_in.h"
#include "planner/solve/instance/instance.h"

struct json_out;
struct json_stream;

/* Reads an instance. Errors: STATUS_BAD_INPUT with file, line and column; errors of instance_finish(), with the
 * file's name. */
MUST_CHECK enum status instance_read(const char *path, struct instance *out, struct error *err);
MUST_CHECK enum status instance_parse(const struct json_input *in, struct instance *out,
                                      struct error *err);

/* Works as instance_read() on a file that was opened with these long arrays. Memory holds one job of the file at a
 * time. */
extern const char *const instance_long_arrays[];
MUST_CHECK enum status instance_parse_stream(struct json_stream *stream, struct instance *out, struct error *err);

/* Writes an instance that instance_read() reads as the same instance. */
void instance_write_json(const struct instance *in, struct json_out *out);
MUST_CHECK enum status instance_write(const struct instance *in, const char *path, struct error *err);

#endif
