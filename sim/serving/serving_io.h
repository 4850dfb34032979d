/*
 * Serving problems and placements as JSON files.
 *
 *     {"spillway_serving": 1, "name": "two kinds", "devices": 16, "memory": "13GiB", "horizon": "200s",
 *      "models": [
 *          {"name": "bert", "count": 24, "latency": "238ms", "layers": 32, "weights": "5.4GB", "hop": "1ms",
 *           "tensor": {"2": "140ms", "4": "92ms"}, "objective_scale": 5,
 *           "arrivals": {"process": "gamma", "rate": 40, "cv": 4}, "skew": 0.5},
 *          {"name": "chat", "network": "gpt2-xl", "sequence": 512, "precision": "bf16", "objective": "200ms",
 *           "arrivals": {"times": [0, 0.25, 0.5]}}]}
 *
 * An entry is "count" models (default 1), named bert-0, bert-1 ..., which share the requests: "rate" is the total, and
 * model i's share is proportional to (i + 1)^-skew (0: equal). Defaults are in parentheses.
 *
 *   latency         of a request on one device; total "weights", in "layers" (1) equal layers
 *   tensor          latencies on several devices per layer, each with its share of the weights
 *   hop             seconds from one stage to the next (0)
 *   batch           requests answered as one: at most "most", and "base", the part of "latency" that does not depend on
 *                   the number of requests (b take base + b (latency - base)); or "latency" of larger batches, with
 *                   linear interpolation: {"2": "300ms", "8": "900ms"}. (1)
 *   network         instead of latency: a name, a config.json relative to this file or an object like it, whose times
 *                   follow from the machine; "sequence" (all its positions), "precision" ("bf16"), "batch" (only
 *                   "most")
 *   objective       maximum latency of a request; or "objective_scale" times its latency on one device (or on its least
 *                   degree). (none)
 *   arrivals        "process": "poisson", "gamma" (with "cv") or "even", and "rate"; or "times"; or "file", a text
 *                   relative to this file (arrivals_file.h) with the requests of all models of the entry
 *
 * If a machine is named, "devices" and "memory" are its own; "overhead" (0) is added to every latency.
 *
 *     {"spillway_placement": 1, "groups": [{"tensor": 1, "pipeline": 8, "models": ["bert-0", "chat"]}]}
 */
#ifndef SPILLWAY_SIM_SERVING_SERVING_IO_H
#define SPILLWAY_SIM_SERVING_SERVING_IO_H

#include "base/json/json_in.h"
#include "models/hardware/hardware.h"
#include "sim/serving/serving.h"

struct json_out;

/* `hardware` NULL: networks are refused. Errors: STATUS_BAD_INPUT with file, line and column; STATUS_LIMIT. */
MUST_CHECK enum status serving_read(const char *path, const struct hardware *hardware, struct serving *out,
                                    struct error *err);
MUST_CHECK enum status serving_parse(const struct json_input *in, const struct hardware *hardware,
                                     struct serving *out, struct error *err);

/* Reads a placement of the models of `of`, in whose arena it lives; a group's models may be in any order.
 * placement_check() checks that it fits. */
MUST_CHECK enum status placement_read(const char *path, struct serving *of, struct serving_placement *out,
                                      struct error *err);
MUST_CHECK enum status placement_parse(const struct json_input *in, struct serving *of,
                                       struct serving_placement *out, struct error *err);

void placement_write_json(const struct serving *of, const struct serving_placement *placement,
                          struct json_out *out);

#endif
