/* What chakra_import.c and chakra_match.c share; nobody else includes this. */
#ifndef SPILLWAY_SIM_CHAKRA_STATE_H
#define SPILLWAY_SIM_CHAKRA_STATE_H

#include "models/cost/collective.h"
#include "sim/chakra/chakra_import.h"

/* A node that is part of something that ranks do together. Sorted by key, then order. */
struct chakra_end {
    uint64_t key[3]; /* of a message from, to, tag; of a collective its group and which of its */
    uint32_t rank, node;
    bool receives;
};

struct chakra_import {
    const struct chakra_trace *trace;
    const struct hardware *hardware;
    struct arena arena;
    struct sim_graph graph;
    uint32_t *first;      /* by rank: its first entry in `activity` */
    uint32_t *activity;   /* by rank and node: the node of the graph */
    struct chakra_group *groups; /* those of the trace, then that of all ranks */
    const uint32_t **members;    /* by group */
    uint32_t group_count;
};

/* "PREFIX.2.et: byte 17: node 5 message", STATUS_BAD_INPUT. */
enum status chakra_import_fail(const struct chakra_import *import, uint32_t rank, uint32_t node,
                               struct error *err, const char *format, ...) PRINTF_LIKE(5, 6);

/* import->activity: nodes that meet are one activity. Activities are numbered in the order of ranks and
 * nodes; import->graph.node_count of them. */
MUST_CHECK enum status chakra_match(struct chakra_import *import, struct error *err);

/* Index of the process group of a collective of a rank. */
MUST_CHECK enum status chakra_group_of(const struct chakra_import *import, uint32_t rank, uint32_t node,
                                       uint32_t *out, struct error *err);

/* From whom and to whom a message goes. */
static inline void chakra_message_ranks(const struct chakra_node *node, uint32_t rank, uint32_t *from,
                                        uint32_t *to)
{
    *from = node->comm_src == CHAKRA_NONE ? rank : node->comm_src;
    *to = node->comm_dst == CHAKRA_NONE ? rank : node->comm_dst;
}

/* Bytes of a message; generators differ about where these stand. */
static inline uint64_t chakra_message_bytes(const struct chakra_node *node)
{
    return node->comm_size > 0 ? node->comm_size : node->tensor_size;
}

#endif
