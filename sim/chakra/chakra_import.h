/*
 * Execution traces of MLCommons Chakra (traces/chakra.h) on a machine: what ranks do becomes a graph of
 * activities (sim/chakra/graph.h).
 *
 * Rank r is device r. Its computations go one at a time, likewise its copies in, its copies out, what it
 * receives, and what its host thread computes; collectives of a process group go one at a time, in the order
 * of the files. Where a node says which queue of the machine it is on (spillway_stream), it is on that.
 *
 *     computation   its duration; where there is none, num_ops at the device's highest peak
 *     copy          tensor_size over the device's links, shared with all else
 *     message       comm_size (or tensor_size) over the links between the devices; begins when both ends are
 *                   ready. The i-th SEND of a tag from one rank to another meets the i-th RECV
 *     collective    by models/cost/collective.h; begins when all members are ready. The i-th of a group on one
 *                   rank is the i-th on all. Groups of one family, and those of equal size and no common
 *                   member, are taken to communicate at the same time
 *     metadata      nothing
 *
 * Durations of messages and collectives in the file are not looked at, for they are those of another
 * network. A REDUCE costs what a BROADCAST does, a BARRIER what an ALL_REDUCE of one byte does; GATHER and
 * SCATTER are refused.
 */
#ifndef SPILLWAY_SIM_CHAKRA_IMPORT_H
#define SPILLWAY_SIM_CHAKRA_IMPORT_H

#include "sim/chakra/graph.h"
#include "traces/chakra.h"

/*
 * `hardware` has as many devices as there are ranks, or more. Result and trace as sim_graph_run() fills them,
 * to be released by the caller also after an error.
 * Errors: STATUS_BAD_INPUT with file and byte of the node that cannot be, or never begins; STATUS_LIMIT;
 * STATUS_NO_MEMORY.
 */
MUST_CHECK enum status sim_chakra_run(const struct chakra_trace *trace, const struct hardware *hardware,
                                      const struct sim_graph_options *options, struct sim_result *result,
                                      struct trace *out, struct error *err);

#endif
