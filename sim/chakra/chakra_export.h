/*
 * A plan as execution traces of MLCommons Chakra (traces/chakra.h), for simulators that take these.
 *
 * Rank r is device r. Computations and copies between host and device are nodes of the device whose
 * instance they belong to, those of the host as well, with is_cpu_op. A copy from another device is a RECV
 * there and a SEND at its source; a collective is a node of each member for every round. Stream order and
 * what plan.h's rule 2 says are data dependencies alike, as MLCommons' own converter has it: ASTRA-sim looks at
 * no others. Where an operation waits for one of another rank, a message of a byte goes from there to here: a
 * signal. Nodes stand in plan order.
 */
#ifndef SPILLWAY_SIM_CHAKRA_EXPORT_H
#define SPILLWAY_SIM_CHAKRA_EXPORT_H

#include "planner/plan.h"

struct sim_chakra_written {
    uint32_t ranks, groups; /* files, and process groups */
    uint64_t nodes, signals; /* signals: messages of one byte, two nodes each */
};

/*
 * PREFIX.0.et and on, and PREFIX.groups.json if there are groups. `plan` is checked; durations are those of
 * its own machine. Each file is there whole or not at all. Ranks that follow on these at the prefix, and groups where
 * there are none, are an earlier plan's and are removed.
 * Errors: STATUS_LIMIT, STATUS_NO_MEMORY, STATUS_IO, STATUS_BAD_INPUT (devices without a way that a
 * collective joins).
 */
MUST_CHECK enum status sim_chakra_export(const struct plan *plan, const char *prefix,
                                         struct sim_chakra_written *out, struct error *err);

#endif
