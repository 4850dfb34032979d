/* Types shared only by chakra_import.c and chakra_match.c. */
#ifndef SPILLWAY_SIM_CHAKRA_CHAKRA_STATE_H
#define SPILLWAY_SIM_CHAKRA_CHAKRA_STATE_H

#include "models/cost/collective.h"
#include "sim/chakra/chakra_import.h"

/* A node that is one end of a message or a collective. Sorted by key, then order. */
struct chakra_end {
    uint64_t key[3]; /* message: from, to, tag; collective: group and index in it */
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
    struct chakra_group *groups; /* the groups of the trace, then the group of all ranks */
    const uint32_t **members;    /* by group */
    uint32_t group_count;
};

/* Fails with STATUS_BAD_INPUT and "PREFIX.2.et: byte 17: node 5 message". */
enum status chakra_import_fail(const struct chakra_import *import, uint32_t rank, uint32_t node,
                               struct error *err, const char *format, ...) PRINTF_LIKE(5, 6);

/* Fills import->activity: matching nodes become one activity. Numbers follow ranks and nodes, up to
 * import->graph.node_count. */
MUST_CHECK enum status chakra_match(struct chakra_import *import, struct error *err);

/* Finds the index of the process group of a rank's collective. */
MUST_CHECK enum status chakra_group_of(const struct chakra_import *import, uint32_t rank, uint32_t node,
                                       uint32_t *out, struct error *err);

/* Returns source and target of a message. */
static inline void chakra_message_ranks(const struct chakra_node *node, uint32_t rank, uint32_t *from,
                                        uint32_t *to)
{
    *from = node->comm_src == CHAKRA_NONE ? rank : node->comm_src;
    *to = node->comm_dst == CHAKRA_NONE ? rank : node->comm_dst;
}

/* Returns the bytes of a message; generators disagree on the field. */
static inline uint64_t chakra_message_bytes(const struct chakra_node *node)
{
    return node->comm_size > 0 ? node->comm_size : node->tensor_size;
}

#endif
