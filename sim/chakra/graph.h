/*
 * A graph of activities in virtual time, for execution traces.
 *
 * A node begins when its predecessors have ended and its queue is free: a queue's nodes (a device's computations, its
 * copies in, a process group) are sequential, in the order in which they became ready. Copies are flows, and concurrent
 * operations slow computations, as in sim.h. Others take their given seconds, without a queue none.
 */
#ifndef SPILLWAY_SIM_CHAKRA_GRAPH_H
#define SPILLWAY_SIM_CHAKRA_GRAPH_H

#include "models/hardware/hardware.h"
#include "sim/sim.h"

#define SIM_GRAPH_NONE UINT32_MAX

struct sim_graph_node {
    double seconds;  /* without contention */
    uint64_t bytes;  /* of copies and collectives */
    uint32_t queue;  /* or SIM_GRAPH_NONE: it takes no time */
    uint32_t pair;   /* for copies between devices */
    uint32_t waits;  /* number of predecessors; sim_graph_run() counts it down */
    uint32_t first_next, next_count; /* in graph->next */
};

/* A queue of sequential nodes. Its kind decides the speed: H2D, D2H, READ and WRITE use the links of the device or
 * storage, P2P the links of its pair; COMPUTE and CPU are slowed; others are not. */
struct sim_graph_queue {
    const char *name; /* of its stream in the trace; borrowed */
    uint32_t kind;    /* enum plan_stream_kind */
    uint32_t device;  /* of kinds that belong to a device; else PLAN_NONE ... */
    uint32_t host;    /* ... and the host of a queue that belongs to a host */
};

struct sim_graph_pair {
    uint32_t from, to;
};

struct sim_graph {
    const char *name;                /* of the trace's one job */
    const struct hardware *hardware;
    struct sim_graph_node *nodes;
    uint32_t *next;
    struct sim_graph_queue *queues;  /* at most one of each kind and device, except for collectives and host */
    struct sim_graph_pair *pairs;    /* hardware_reaches() holds for each */
    uint32_t node_count, queue_count, pair_count;
};

struct sim_graph_options {
    bool record_spans;
    void (*on_progress)(void *context, double done, double total); /* nodes; may be NULL */
    void *context;
};

/*
 * `result` and `trace` are filled as by sim_run(), without memory; streams are the queues. *never: a node that never
 * began, because its predecessors wait for it; then nothing is filled. SIM_GRAPH_NONE: all began. Errors: STATUS_LIMIT.
 */
MUST_CHECK enum status sim_graph_run(struct sim_graph *graph, const struct sim_graph_options *options,
                                     struct sim_result *result, struct trace *trace, uint32_t *never,
                                     struct error *err);

#endif
