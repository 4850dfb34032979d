/*
 * SPASE instances as JSON files.
 *
 *     {"spillway_spase": 1, "name": "two models",
 *      "nodes": [{"name": "p4d", "class": "a100", "devices": 8, "count": 2},
 *                {"name": "p3", "class": "v100", "devices": 4}],
 *      "jobs": [{"name": "gpt2-b16",
 *                "configurations": [
 *                    {"parallelism": "ddp", "devices": 1, "ticks": 900},
 *                    {"parallelism": "fsdp", "devices": 4, "ticks": {"a100": 250, "v100": 610}},
 *                    {"parallelism": "pipeline", "devices": 12, "ticks": {"a100": 120}, "spans": true}]}]}
 *
 * "ticks" is one whole number, or an object with one per class on which the configuration runs. Defaults: "count" 1,
 * "class" "device", "spans" false. A node with a "count" above 1 stands for nodes named p4d-0, p4d-1 ... Classes are
 * the ones that nodes name.
 */
#ifndef SPILLWAY_PLANNER_SATURN_SPASE_SPASE_IO_H
#define SPILLWAY_PLANNER_SATURN_SPASE_SPASE_IO_H

#include "base/json/json_in.h"
#include "planner/saturn/spase/spase.h"

/* Errors: STATUS_BAD_INPUT with file, line and column; as spase_finish(), with the file's name. */
MUST_CHECK enum status spase_read(const char *path, struct spase *out, struct error *err);
MUST_CHECK enum status spase_parse(const struct json_input *in, struct spase *out, struct error *err);

#endif
