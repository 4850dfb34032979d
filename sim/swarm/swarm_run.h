/*
 * A swarm (swarm.h) event by event: passes, transfers, failures, joins, averaging.
 *
 * A peer's random events depend only on the seed and its number, so runs of one seed differ only by their options.
 * Equal inputs give equal bytes.
 */
#ifndef SPILLWAY_SIM_SWARM_SWARM_RUN_H
#define SPILLWAY_SIM_SWARM_SWARM_RUN_H

#include <stdbool.h>

#include "sim/swarm/swarm.h"

struct swarm_peer_result {
    uint32_t stage;     /* at the end */
    double present_s;   /* time present, joining or ready */
    double working_s;   /* part of present_s without averaging */
    double busy_s;
    uint64_t passes;    /* finished forward and backward passes */
};

struct swarm_stage_result {
    double present_s;   /* sum over its peers */
    double busy_s;
    uint64_t passes;    /* finished passes */
};

/* useful + lost + open are all computed seconds of peers; open: not yet used by a step at the end. */
struct swarm_result {
    double elapsed_s;      /* until the last step, or the time limit */
    bool ended;            /* all steps were done */
    uint32_t steps;
    double averaging_s;    /* with updates, and with averaging that a failure interrupted */
    double useful_s, lost_s, open_s;
    uint64_t failures;     /* peers that failed */
    uint64_t unanswered;   /* requests that ran into the timeout */
    uint64_t repeated;     /* repeated forward passes */
    uint64_t given_up;     /* dropped microbatches */
    uint64_t moves;        /* changes of stage, also of returning peers */
    struct swarm_peer_result *peers;   /* (peer_count) */
    struct swarm_stage_result *stages; /* (stage_count) */
};

/* One pass for a timeline; `lost`: interrupted. */
struct swarm_span {
    uint32_t peer, stage, microbatch;
    bool backward, lost;
    double begin_s, end_s;
};

struct swarm_options {
    uint32_t wiring;    /* enum swarm_wiring; replaces the swarm's */
    double rebalance_s; /* likewise */
    uint64_t seed;
    void (*on_span)(void *context, const struct swarm_span *span); /* may be NULL */
    void *context;
    void (*on_progress)(void *context, double share); /* finished share of the run, 0 to 1; may be NULL */
    void *progress_context;
};

/*
 * Simulates one run. The arrays of *out live as long as `arena`. Cost: O(peers) per pass, and O(microbatches under way
 * times stages) per failure.
 */
MUST_CHECK enum status swarm_run(struct arena *arena, const struct swarm *in, const struct swarm_options *options,
                                 struct swarm_result *out, struct error *err);

#endif
