/*
 * A swarm: training by peers that are unlike each other, far apart, and come and go.
 *
 * A network is cut into *stages*. Each *peer* holds one stage at a time, and a stage has several peers; none is
 * a member of a fixed pipeline. A *trainer* sends microbatches through the stages, forward and back, and chooses
 * the peer of each stage when the microbatch gets there (the *wiring*).
 *
 * Semantics. A peer works on one pass at a time, in the order in which they reach it. What a stage passes on goes
 * straight from peer to peer; the backward pass of a stage is done by the peer that has its activations. A peer's
 * gradients are added up until every stage has the gradients of `batch` microbatches on peers that are there;
 * when none is under way, the peers of each stage average theirs (a ring all-reduce) and take a step, all stages
 * at the same time: synchronous training, nothing is stale. What a failed peer had is lost, its gradients too,
 * and others take their place: then stages where nothing was lost have more than `batch`.
 *
 * A trainer learns that a peer is away when it did not answer in time (`timeout_s`), asks it nothing for `ban_s`,
 * and sends the pass to another peer of the stage from where its input still is: from the peer of the stage in
 * front, or through more stages again where that is away too. A microbatch whose gradient was lost on its way is
 * given up, and another one takes its place.
 *
 * A peer that comes back, or moves to another stage, first fetches the stage's state from its peers (in
 * SWARM_PIECES pieces, each from the one with the fewest transfers in line, or from storage where the stage has none).
 * With rebalancing it comes back where peers can do the least, and every so often, after a step, one peer moves
 * from the stage with the least to do for each peer to the one with the most.
 *
 * Links. Each peer has one link up and one down. A link carries one transfer at a time, in their order; both ends
 * of a transfer are at work from its start, neither held up by the other, and it is over when both are, and both
 * latencies later. What trainers exchange (tokens, losses) costs latency alone.
 *
 * Source: Ryabinin, Dettmers, Diskin, Borzunov, "SWARM parallelism: training large models can be surprisingly
 * communication-efficient", ICML 2023, arXiv 2301.11913. Not modelled: delayed updates that overlap with
 * averaging, memory, the seconds of compressing what is passed on.
 */
#ifndef SPILLWAY_SWARM_SWARM_H
#define SPILLWAY_SWARM_SWARM_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "models/hardware/failures.h"

enum {
    SWARM_STAGES_MAX = 64,
    SWARM_GROUPS_MAX = 64,
    SWARM_PEERS_MAX = 4096,
    SWARM_TRAINERS_MAX = 256,
    SWARM_UNDER_WAY_MAX = 1 << 16, /* microbatches, of all trainers */
    SWARM_BATCH_MAX = 1 << 20,     /* microbatches */
    SWARM_STEPS_MAX = 1 << 20,
    SWARM_PIECES = 16
};
#define SWARM_NONE UINT32_MAX /* no peer, no stage */

/* How a peer of the next stage is chosen. */
enum swarm_wiring {
    SWARM_STOCHASTIC,     /* interleaved weighted round robin by measured response times (swarm_route.c) */
    SWARM_ROUND_ROBIN,    /* in turn */
    SWARM_SHORTEST_QUEUE, /* the one with the fewest passes under way, which no trainer could know in fact */
    SWARM_FIXED,          /* the k-th peers of all stages are a pipeline, and work only while all are there */
    SWARM_WIRING_COUNT
};
extern const char *const swarm_wiring_names[SWARM_WIRING_COUNT + 1]; /* "stochastic", ...; NULL behind them */

struct swarm_stage {
    double boundary_bytes; /* to the next stage for a microbatch, and as many back; 0 of the last */
    double gradient_bytes; /* that are averaged */
    double state_bytes;    /* that a peer fetches before it can work here */
};

/* A peer's passes over a stage for one microbatch, and a step. */
struct swarm_passes {
    double forward_s, backward_s, update_s;
};

/* Peers that are alike. */
struct swarm_group {
    const char *name;
    uint32_t first, count; /* peers [first, first + count) */
    double up_bytes_per_s, down_bytes_per_s, latency_s;
    uint32_t stage;        /* of all of them at the start; SWARM_NONE: where they are needed */
    const struct swarm_passes *passes; /* (stage_count) */
    struct failures failures;          /* mtbf, shape, repair, stragglers and events of them */
};

/* Open; zeroed it is empty. */
struct swarm {
    struct arena arena; /* owns every array below */
    const char *name;
    struct swarm_stage *stages;
    uint32_t stage_count;
    struct swarm_group *groups;
    uint32_t group_count, peer_count;
    uint64_t microbatch;   /* samples */
    uint32_t batch;        /* microbatches of a step */
    uint32_t trainers;
    uint32_t under_way;    /* microbatches of each trainer, at most */
    uint32_t wiring;       /* enum swarm_wiring */
    double smoothing;      /* weight of the newest response time in the average */
    double timeout_s, ban_s;
    double rebalance_s;    /* HUGE_VAL: never */
    uint32_t steps;        /* the run ends after so many, or */
    double time_s;         /* after so long */
};
void swarm_release(struct swarm *in);

/* The group of a peer. O(groups). */
uint32_t swarm_group_of(const struct swarm *in, uint32_t peer);

/*
 * Microbatches a second for which a peer of the group can do both passes over the stage and carry what they take
 * in and give out: the least of what its processor and its links allow.
 */
double swarm_rate(const struct swarm *in, uint32_t group, uint32_t stage);

/* Where peers are at the start: (peer_count) stages. Groups without one go, peer by peer, where the rates of those
 * there add up to the least. */
void swarm_place(const struct swarm *in, uint32_t *stages);

#endif
