/*
 * Jobs whose states fit on a device and whose activations do not, each on one device: every layer's activations are
 * kept, swapped to the host and back, or recomputed, by a chain's certificate (planner/chain/chain_certify.h) or
 * another system's rule (planner/chain/chain_rules.h).
 *
 * Training is synchronous: every value is as without swapping. A layer is a shard, with its state on the device from
 * LOAD to STORE. The units of a minibatch are
 *
 *     FORWARD s     forward pass; of a swapped layer followed by copies of its kept data, its input included, to the
 *                   host
 *     LOSS          forward and backward pass of the last layer, whose activations are not kept
 *     BACKWARD s    of a swapped layer preceded by the copies back; for a recomputed layer its second forward pass;
 *                   backward pass; update
 *
 *     access of           FORWARD              LOSS   BACKWARD
 *     state                 r                   rw      rw
 *     boundary s            r (swapped: rx)     rx      rx (swapped: awrx)     x: its life on the device ends
 *     boundary s + 1        aw                                                 a: it begins
 *     activations           aw (swapped: awrx)          rx (swapped: awrx)     not of recomputed layers
 *     gradient of s + 1                                 rx
 *     gradient of s                             aw      aw
 *     workspace             awx                 awx     awx
 *
 * Addresses follow the chain's schedule (planner/swap/swap_places.h), so copies in start when memory is free. A job
 * goes, in the file's order, to the device that is free first.
 *
 * Source: KARMA, arXiv 2008.11421, sec. III; vDNN, arXiv 1602.08124; Checkmate, arXiv 1910.02653.
 */
#ifndef SPILLWAY_PLANNER_SWAP_SWAP_H
#define SPILLWAY_PLANNER_SWAP_SWAP_H

#include "planner/chain/chain_certify.h"
#include "planner/walk/plan_build.h"

/* The origin of the choices: a rule, or the best of the certificate's and all rules'. */
enum { SWAP_BEST = CHAIN_RULES, SWAP_WAYS };

struct swap_options {
    uint32_t way;    /* enum chain_rule, or SWAP_BEST */
    double limit_s;  /* time limit of the search, for each job; 0: SWAP_LIMIT_S */
};
#define SWAP_LIMIT_S 10.0

/* The choices for a job, and their quality. Seconds are of a minibatch. */
struct swap_outcome {
    uint32_t device, layer_count;
    uint32_t way;              /* origin of the choices */
    const uint8_t *choices;    /* (layer_count) enum chain_choice; of the report's arena */
    uint32_t counts[CHAIN_CHOICES];
    double minibatch_s;        /* by the planner's clock (planner/swap/swap_timing.h) */
    double promised_s;         /* by the chain's schedule: at least minibatch_s */
    double compute_s;          /* of all passes, without recomputation */
    double bound_s;            /* lower bound for schedules by chain.h's rules in chain_bytes */
    bool cut_short;            /* a time limit ended the search for the choices */
    char proof[CERTIFICATE_TEXT_BYTES]; /* the proof in a sentence */
    uint64_t chain_bytes;      /* memory that the chain was given */
    uint64_t held_bytes, placed_bytes; /* most live bytes at a time; end of the places */
    double way_s[SWAP_WAYS];   /* minibatch of each way where way_fits[] */
    bool way_fits[SWAP_WAYS];
};

/* Open structure; zeroed it is empty. */
struct swap_report {
    struct swap_outcome *jobs; /* (job_count) */
    uint32_t job_count;
    struct arena arena;
};
void swap_report_release(struct swap_report *report);

/* Returns true when swap_plan() made a plan with this policy; *way: its way. */
bool swap_made(const char *policy, uint32_t *way);

/* Adds all jobs, with estimate and lower bound. Errors: STATUS_INFEASIBLE, naming the job and the missing bytes;
 * STATUS_BAD_INPUT for jobs that clip, are evaluated on held-out data or parallel, STATUS_LIMIT. */
MUST_CHECK enum status swap_plan(struct plan_builder *builder, const struct swap_options *options,
                                 struct swap_report *report, struct error *err);

#endif
