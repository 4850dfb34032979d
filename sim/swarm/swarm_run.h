/*
 * The simulation of a swarm (swarm.h), event by event: passes, transfers, failures, joining, averaging.
 *
 * What happens to a peer by chance depends on the seed and its number alone, so that runs of one seed differ by
 * what is asked and not by chance. Equal input gives equal bytes.
 */
#ifndef SPILLWAY_SWARM_SWARM_RUN_H
#define SPILLWAY_SWARM_SWARM_RUN_H

#include <stdbool.h>

#include "sim/swarm/swarm.h"

struct swarm_peer_result {
    uint32_t stage;     /* at the end */
    double present_s;   /* while it was there, joining or ready */
    double working_s;   /* of these, while no averaging went on */
    double busy_s;
    uint64_t passes;    /* forward and backward, that came to their end */
};

struct swarm_stage_result {
    double present_s;   /* of its peers, together */
    double busy_s;
    uint64_t passes;    /* that came to their end */
};

/* Of the seconds that peers computed, useful + lost + open are all; open is what no step had used yet at the end. */
struct swarm_result {
    double elapsed_s;      /* until the last step, or all the time there was */
    bool ended;            /* with the last step */
    uint32_t steps;
    double averaging_s;    /* with the updates, also where a failure interrupted it */
    double useful_s, lost_s, open_s;
    uint64_t failures;     /* peers that went */
    uint64_t unanswered;   /* requests that ran into the timeout */
    uint64_t repeated;     /* forward passes that had been done before */
    uint64_t given_up;     /* microbatches */
    uint64_t moves;        /* peers from stage to stage, also on their return */
    struct swarm_peer_result *peers;   /* (peer_count) */
    struct swarm_stage_result *stages; /* (stage_count) */
};

/* One pass, for a timeline; `lost`: it was interrupted. */
struct swarm_span {
    uint32_t peer, stage, microbatch;
    bool backward, lost;
    double begin_s, end_s;
};

struct swarm_options {
    uint32_t wiring;    /* enum swarm_wiring, instead of the swarm's */
    double rebalance_s; /* likewise */
    uint64_t seed;
    void (*on_span)(void *context, const struct swarm_span *span); /* may be NULL */
    void *context;
    void (*on_progress)(void *context, double share); /* of the run that is over, 0 to 1; may be NULL */
    void *progress_context;
};

/*
 * One run. What *out points to lives as long as `arena`.
 * Cost: O(peers) a pass, and O(microbatches under way times stages) for a peer that goes. Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status swarm_run(struct arena *arena, const struct swarm *in, const struct swarm_options *options,
                                 struct swarm_result *out, struct error *err);

#endif
