/*
 * Chains as JSON files.
 *
 *     {"spillway_chain": 1, "name": "vgg", "memory": 4000,
 *      "out_bytes_per_tick": 12, "in_bytes_per_tick": 12,
 *      "layers": [{"forward": 7, "backward": 14, "saved": 300, "boundary": 40, "count": 2}, ...]}
 *
 * Durations are whole numbers of ticks, sizes of bytes. Defaults: 0 for the boundary and for a link (no layer is
 * swapped), 1 for "count" (the number of equal layers), "forward" for "again" (a second forward pass).
 */
#ifndef SPILLWAY_PLANNER_CHAIN_CHAIN_IO_H
#define SPILLWAY_PLANNER_CHAIN_CHAIN_IO_H

#include "base/json/json_in.h"
#include "planner/chain/chain.h"

struct chain_schedule;

/* Parses a chain. Errors: STATUS_BAD_INPUT with file, line and column; errors of chain_finish(), with the file's
 * name. */
MUST_CHECK enum status chain_parse(const struct json_input *in, struct chain *out, struct error *err);

/*
 * Writes a schedule atomically, with its bound and the sentence about the proof:
 *
 *     {"spillway_chain_schedule": 1, "chain": "vgg", "makespan": 34, "bound": 34, "proof": "...",
 *      "turnaround": 13, "layers": [{"choice": "swap", "forward": 0, "out": 3, "in": 22, "backward": 27}, ...]}
 *
 * Times are starts in ticks; only swapped layers have "out" and "in".
 */
MUST_CHECK enum status chain_schedule_write(const struct chain *chain, const struct chain_schedule *schedule,
                                            int64_t bound, const char *proof, const char *path,
                                            struct error *err);

#endif
