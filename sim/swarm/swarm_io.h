/*
 * Swarms as JSON files.
 *
 *     {"spillway_swarm": 1, "name": "three stages",
 *      "stages": [{"forward": "50ms", "backward": "100ms", "update": "20ms", "boundary": "4MB", "state": "1.2GB",
 *                  "gradients": "200MB", "count": 3}],
 *      "peers": [{"name": "fast", "count": 8, "speed": 2, "up": "25MB/s", "down": "25MB/s", "latency": "10ms"},
 *                {"name": "spot", "count": 12, "up": "12MB/s", "down": "25MB/s", "stage": 1,
 *                 "failures": {"mtbf": "4h", "repair": "20min"}}],
 *      "batch": 512, "microbatch": 4, "trainers": 4, "under_way": 16, "steps": 20}
 *
 * Defaults are in parentheses.
 *
 *   stages        seconds of a peer of "speed" 1, bytes of a microbatch; "count" (1) equal stages. "update",
 *                 "boundary" (ignored for the last stage), "gradients" and "state" (0)
 *   network       instead of stages, with the number of stages "cut": a name, a config.json relative to this file or an
 *                 object like it; "sequence" (all its positions), "precision" ("fp32"), "recompute" ("full"),
 *                 "boundary_bits" of each activation between stages (as the precision has), "gradient_bits" of
 *                 each averaged gradient (32)
 *   peers         "count" (1) equal peers of "speed" (1); with a network the "device" is a machine, whose first device
 *                 they are. "latency" (0) to any peer; "stage" (the stages that need them); "failures": an object or a
 *                 file relative to this one (models/hardware/failures.h), of which swarms use mtbf, shape, repair,
 *                 stragglers and events; a "device" in it is a number within these peers
 *   batch         samples of a step; "microbatch" (1): samples that move together
 *   trainers      (1), each with at most "under_way" (8) microbatches
 *   wiring        "stochastic" (default), "round-robin", "shortest-queue" or "fixed"; "smoothing" (0.1) is the
 *                 weight of the newest response time
 *   timeout       (1s) after which a trainer gives a peer up, and "ban" (60s), the time for which it does not ask it
 *   rebalance     interval at which one peer moves (never)
 *   steps         (10); the run ends after "time" (30d) at the latest
 */
#ifndef SPILLWAY_SIM_SWARM_SWARM_IO_H
#define SPILLWAY_SIM_SWARM_SWARM_IO_H

#include "base/json/json_in.h"
#include "sim/swarm/swarm.h"

/* Reads a swarm. Errors: STATUS_BAD_INPUT with file, line and column; STATUS_LIMIT, STATUS_IO. */
MUST_CHECK enum status swarm_read(const char *path, struct swarm *out, struct error *err);
MUST_CHECK enum status swarm_parse(const struct json_input *in, struct swarm *out, struct error *err);

#endif
