/*
 * A graph of activities in virtual time: what execution traces are simulated as.
 *
 * A node begins when those have ended that name it as next, and when its turn comes: nodes that have a queue
 * in common (a device's computations, its copies in, a process group) go one at a time, in the order in
 * which they became ready. Copies are flows that share links, computations are slowed by what runs beside
 * them, as in sim.h; all other nodes take their seconds, and those of no queue none at all.
 */
#ifndef SPILLWAY_SIM_GRAPH_H
#define SPILLWAY_SIM_GRAPH_H

#include "models/hardware/hardware.h"
#include "sim/sim.h"

#define SIM_GRAPH_NONE UINT32_MAX

struct sim_graph_node {
    double seconds;  /* when nothing else runs */
    uint64_t bytes;  /* of copies and collectives */
    uint32_t queue;  /* or SIM_GRAPH_NONE: it takes no time */
    uint32_t pair;   /* of a copy between devices */
    uint32_t waits;  /* how many name it as next; counted down by sim_graph_run() */
    uint32_t first_next, next_count; /* in graph->next */
};

/* What runs one at a time. The kind says how: copies of H2D, D2H, READ and WRITE take the device's or the
 * storage's own way, those of P2P their pair's; COMPUTE and CPU are slowed; others are not. */
struct sim_graph_queue {
    const char *name; /* of its stream in the trace; borrowed */
    uint32_t kind;    /* enum plan_stream_kind */
    uint32_t device;  /* of kinds that are a device's; else PLAN_NONE ... */
    uint32_t host;    /* ... and whose host's it is */
};

struct sim_graph_pair {
    uint32_t from, to;
};

struct sim_graph {
    const char *name;                /* of the trace's one job */
    const struct hardware *hardware;
    struct sim_graph_node *nodes;
    uint32_t *next;
    struct sim_graph_queue *queues;  /* at most one of each kind and device, but for collectives and host */
    struct sim_graph_pair *pairs;    /* hardware_reaches() is true of each */
    uint32_t node_count, queue_count, pair_count;
};

struct sim_graph_options {
    bool record_spans;
    void (*on_progress)(void *context, double done, double total); /* nodes; may be NULL */
    void *context;
};

/*
 * `result` and `trace` as sim_run() fills them, without memory; streams are the queues. *never: a node that
 * never began, as what it waits for waits for it; then nothing is filled. SIM_GRAPH_NONE: there is none.
 * Errors: STATUS_LIMIT, STATUS_NO_MEMORY.
 */
MUST_CHECK enum status sim_graph_run(struct sim_graph *graph, const struct sim_graph_options *options,
                                     struct sim_result *result, struct trace *trace, uint32_t *never,
                                     struct error *err);

#endif
