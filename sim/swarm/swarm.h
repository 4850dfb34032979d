/*
 * Training by peers that differ in speed, are far apart, and come and go.
 *
 * A network is cut into *stages*. Each *peer* holds one stage at a time, and a stage has several peers. A *trainer*
 * sends microbatches forward and backward, and chooses each stage's peer when the microbatch gets there (the *wiring*).
 *
 * Semantics. A peer works on one pass at a time, in order of arrival. Activations go directly from peer to peer. A
 * stage's backward pass runs on the peer with its activations. A peer accumulates gradients until every stage has those
 * of `batch` microbatches on present peers. When no gradient is under way, each stage's peers average theirs (a ring
 * all-reduce) and take a step, all stages at once: training is synchronous. A failed peer's state and gradients are
 * lost, and other microbatches replace its own; stages without a loss then have more than `batch`.
 *
 * A trainer that gets no answer in time (`timeout_s`) does not ask the peer for `ban_s`, and sends the pass to another
 * peer of the stage, from where its input still is: the previous stage's peer, or an earlier stage. A microbatch whose
 * gradient was lost on its way is dropped and replaced.
 *
 * A peer that returns, or moves to another stage, first fetches the stage's state (in SWARM_PIECES pieces, each from
 * the peer with the fewest queued transfers, or from storage without peers). With rebalancing it joins the stage whose
 * peers have the least capacity. At an interval, after a step, one peer moves from the stage with the least load per
 * peer to the stage with the most.
 *
 * Links. Each peer has one link up and one down, which carry one transfer at a time, in order. Both ends of a transfer
 * start together, and it is done when both are done, plus both latencies. Trainers' data (tokens, losses) costs only
 * latency.
 *
 * Source: Ryabinin, Dettmers, Diskin, Borzunov, "SWARM parallelism: training large models can be surprisingly
 * communication-efficient", ICML 2023, arXiv 2301.11913. Not modelled: delayed updates that overlap with averaging,
 * memory, and compressing activations.
 */
#ifndef SPILLWAY_SIM_SWARM_SWARM_H
#define SPILLWAY_SIM_SWARM_SWARM_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "models/hardware/failures.h"

enum {
    SWARM_STAGES_MAX = 64,
    SWARM_GROUPS_MAX = 64,
    SWARM_PEERS_MAX = 4096,
    SWARM_TRAINERS_MAX = 256,
    SWARM_UNDER_WAY_MAX = 1 << 16, /* microbatches of all trainers */
    SWARM_BATCH_MAX = 1 << 20,     /* microbatches */
    SWARM_STEPS_MAX = 1 << 20,
    SWARM_PIECES = 16
};
#define SWARM_NONE UINT32_MAX /* no peer, no stage */

/* How a trainer chooses a peer of the next stage. */
enum swarm_wiring {
    SWARM_STOCHASTIC,     /* interleaved weighted round robin by measured response times (swarm_route.c) */
    SWARM_ROUND_ROBIN,    /* in turn */
    SWARM_SHORTEST_QUEUE, /* the peer with the fewest passes under way, which real trainers cannot know */
    SWARM_FIXED,          /* the k-th peers of all stages form a pipeline, which works only while all are present */
    SWARM_WIRING_COUNT
};
extern const char *const swarm_wiring_names[SWARM_WIRING_COUNT + 1]; /* "stochastic", ...; NULL at the end */

struct swarm_stage {
    double boundary_bytes; /* to the next stage for a microbatch, and equally back; 0 for the last stage */
    double gradient_bytes; /* averaged per step */
    double state_bytes;    /* fetched by a peer before it can work on the stage */
};

/* Seconds of a peer for a microbatch's passes over a stage, and for a step. */
struct swarm_passes {
    double forward_s, backward_s, update_s;
};

/* Equal peers. */
struct swarm_group {
    const char *name;
    uint32_t first, count; /* peers [first, first + count) */
    double up_bytes_per_s, down_bytes_per_s, latency_s;
    uint32_t stage;        /* of all of them at the start; SWARM_NONE: the stages that need them */
    const struct swarm_passes *passes; /* (stage_count) */
    struct failures failures;          /* their mtbf, shape, repair, stragglers and events */
};

/* A swarm problem; open. A zeroed one is empty. */
struct swarm {
    struct arena arena; /* owns every array below */
    const char *name;
    struct swarm_stage *stages;
    uint32_t stage_count;
    struct swarm_group *groups;
    uint32_t group_count, peer_count;
    uint64_t microbatch;   /* samples */
    uint32_t batch;        /* microbatches per step */
    uint32_t trainers;
    uint32_t under_way;    /* maximum number of microbatches of each trainer */
    uint32_t wiring;       /* enum swarm_wiring */
    double smoothing;      /* weight of the newest response time in the average */
    double timeout_s, ban_s;
    double rebalance_s;    /* HUGE_VAL: never */
    uint32_t steps;        /* the run ends after this number of steps, or */
    double time_s;         /* after this time */
};
void swarm_release(struct swarm *in);

/* Returns the group of a peer. O(groups). */
uint32_t swarm_group_of(const struct swarm *in, uint32_t peer);

/*
 * Returns the microbatches per second for which a peer of the group can do both passes and transfer inputs and outputs:
 * the least limit of processor and links.
 */
double swarm_rate(const struct swarm *in, uint32_t group, uint32_t stage);

/* Places peers at the start: (peer_count) stages. Peers of groups without a stage go, one by one, to the least sum of
 * rates. */
void swarm_place(const struct swarm *in, uint32_t *stages);

#endif
