/*
 * Exports a plan as execution traces of MLCommons Chakra (traces/exchange/chakra.h).
 *
 * Rank r is device r. Computations and copies between host and device are nodes of their task's device; host
 * computations too, with is_cpu_op. A copy from another device is a RECV at its target and a SEND at its source. A
 * collective is a node per member and round. Stream order and rule 2 of plan.h become data dependencies, as in
 * MLCommons' own converter, because ASTRA-sim reads no others. If an operation waits for another rank's, a message of
 * one byte, a signal, is sent between them. Nodes are in plan order.
 */
#ifndef SPILLWAY_SIM_CHAKRA_CHAKRA_EXPORT_H
#define SPILLWAY_SIM_CHAKRA_CHAKRA_EXPORT_H

#include "planner/plan.h"

struct sim_chakra_written {
    uint32_t ranks, groups; /* numbers of files and of process groups */
    uint64_t nodes, signals; /* signals: messages of one byte, two nodes each */
};

/*
 * Writes PREFIX.0.et and so on, and PREFIX.groups.json if there are groups. `plan` is checked; durations are for its
 * machine. Each file is there whole or not at all. An earlier export's files with this prefix, of further ranks or
 * groups, are removed. Errors: STATUS_LIMIT, STATUS_IO, STATUS_BAD_INPUT (a collective joins devices without a route).
 */
MUST_CHECK enum status sim_chakra_export(const struct plan *plan, const char *prefix,
                                         struct sim_chakra_written *out, struct error *err);

#endif
