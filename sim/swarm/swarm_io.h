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
 *   stages        seconds of a peer of "speed" 1, bytes of a microbatch; "count" (1) of them are alike. "update",
 *                 "boundary" (ignored of the last stage), "gradients" and "state" are 0 unless given
 *   network       instead, with "cut" into so many stages: a name, a config.json beside this file or an object
 *                 like it; "sequence" (all its positions), "precision" ("fp32"), "recompute" ("full"),
 *                 "boundary_bits" of each number that is passed on (those of the precision), "gradient_bits" of
 *                 each that is averaged (32)
 *   peers         "count" (1) that are alike, "speed" (1) times as fast; with a network the "device" is a machine,
 *                 whose first device they are. "latency" (0) to anywhere; "stage" (where they are needed);
 *                 "failures": an object or a file beside this one (models/hardware/failures.h), of which mtbf, shape, repair,
 *                 stragglers and events are for swarms; "device" there is a number within these peers
 *   batch         samples of a step; "microbatch" (1) of them travel together
 *   trainers      (1), each with "under_way" (8) microbatches at most
 *   wiring        "stochastic" (default), "round-robin", "shortest-queue" or "fixed"; "smoothing" (0.1) is the
 *                 weight of the newest response time
 *   timeout       (1s) until a trainer believes that no answer will come, and "ban" (60s) the peer for so long
 *   rebalance     every so often one peer moves (never)
 *   steps         (10), and the run ends after "time" (30d) at the latest
 */
#ifndef SPILLWAY_SWARM_SWARM_IO_H
#define SPILLWAY_SWARM_SWARM_IO_H

#include "base/json/json_in.h"
#include "sim/swarm/swarm.h"

/* Zeroed struct in; release with swarm_release(), also after an error.
 * Errors: STATUS_BAD_INPUT with file, line and column; STATUS_LIMIT, STATUS_IO, STATUS_NO_MEMORY. */
MUST_CHECK enum status swarm_read(const char *path, struct swarm *out, struct error *err);
MUST_CHECK enum status swarm_parse(const struct json_input *in, struct swarm *out, struct error *err);

#endif
