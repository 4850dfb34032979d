/*
 * SPASE schedules as JSON files: decisions, in the words of their instance.
 *
 *     {"spillway_spase_schedule": 1, "instance": "two models", "makespan": 260, "bound": 255,
 *      "proof": "makespan 260 is within 1.96 % of the optimum (scaled bound 255)",
 *      "jobs": [{"name": "gpt2-b16", "parallelism": "fsdp", "node": "p4d-0", "devices": [0, 1, 2, 3],
 *                "start": 0, "end": 250}]}
 *
 * "devices" are numbered node by node, in the instance's order; a gang that spans nodes has its first device's "node".
 * "bound" is the best proven bound.
 */
#ifndef SPILLWAY_PLANNER_SATURN_SPASE_SPASE_SCHEDULE_IO_H
#define SPILLWAY_PLANNER_SATURN_SPASE_SPASE_SCHEDULE_IO_H

#include "planner/saturn/spase/spase_schedule.h"

struct json_out;

/* Writes only the array "jobs". */
void spase_schedule_write_jobs(const struct spase *in, const struct spase_schedule *schedule, struct json_out *out);

/* Writes the file atomically. `proof` is one sentence. Errors: STATUS_IO. */
MUST_CHECK enum status spase_schedule_write(const struct spase *in, const struct spase_schedule *schedule,
                                            int64_t bound, const char *proof, const char *path,
                                            struct error *err);

#endif
