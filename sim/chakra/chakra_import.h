/*
 * Execution traces of MLCommons Chakra (traces/exchange/chakra.h), simulated as a graph of activities
 * (sim/chakra/graph.h).
 *
 * Rank r is device r. Its computations are sequential; so are its copies in, copies out, receives and its host thread's
 * computations. A process group's collectives are sequential, in the files' order. A node that names its queue
 * (spillway_stream) uses it.
 *
 *     computation   its duration; if there is none, num_ops at the device's highest peak
 *     copy          tensor_size over the device's links, with contention
 *     message       comm_size (or tensor_size) over the links between the devices; begins when both ends are
 *                   ready. The i-th SEND of a tag from one rank to another matches the i-th RECV
 *     collective    by models/cost/collective.h; begins when all members are ready. The i-th one of a group on
 *                   one rank matches the i-th on all ranks. Groups of one family, and disjoint groups of equal
 *                   size, are assumed to communicate at the same time
 *     metadata      no time
 *
 * The file's durations of messages and collectives are ignored: they belong to another network. A REDUCE costs as much
 * as a BROADCAST, a BARRIER as an ALL_REDUCE of one byte; GATHER and SCATTER are refused.
 */
#ifndef SPILLWAY_SIM_CHAKRA_CHAKRA_IMPORT_H
#define SPILLWAY_SIM_CHAKRA_CHAKRA_IMPORT_H

#include "sim/chakra/graph.h"
#include "traces/exchange/chakra.h"

/*
 * `hardware` has at least one device per rank. Result and trace are filled as by sim_graph_run(); the caller releases
 * them, also after an error. Errors: STATUS_BAD_INPUT with file and byte of a node that is invalid or never begins;
 * STATUS_LIMIT.
 */
MUST_CHECK enum status sim_chakra_run(const struct chakra_trace *trace, const struct hardware *hardware,
                                      const struct sim_graph_options *options, struct sim_result *result,
                                      struct trace *out, struct error *err);

#endif
