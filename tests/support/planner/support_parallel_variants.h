/* Small plans of one parallel job that are carried out, and damages of them that several test programs do. */
#ifndef SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_PARALLEL_VARIANTS_H
#define SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_PARALLEL_VARIANTS_H

#include "planner/plan.h"

enum { VARIANT_MINIBATCHES = 3, VARIANT_RANGE = 100 };

/* A variant is the first number of a range + 10 * (replicas - 1) + stages. There are 2 stages or more, because a job on
 * one device is planned as such; BELOW, BELOW_SHARES and SWAPS have one stage of that many chunks. */
enum {
    VARIANT_PLAIN = 0,              /* 1F1B */
    VARIANT_HELD_OUT = 100,         /* evaluated on two minibatches after the second and the last */
    VARIANT_HALVES = 200,           /* backward passes in two units */
    VARIANT_CLIPS = 300,            /* clips */
    VARIANT_TREES = 400,            /* adds up gradients as trees */
    VARIANT_GROUPS = 500,           /* each stage is a tensor group of two */
    VARIANT_VERSIONS = 600,         /* two versions of the weights, and no tied table */
    VARIANT_GROUPS_CLIP = 700,      /* tensor groups of two; clips */
    VARIANT_HOSTS = 800,            /* the host updates, each replica a share of the states */
    VARIANT_SHARES_CLIP = 900,      /* devices update shares of the states; clips */
    VARIANT_HOSTS_CLIP = 1000,      /* as HOSTS; clips; one replica is of tensor groups of two */
    VARIANT_BELOW = 1100,           /* weights come up whole, for one microbatch of each replica */
    VARIANT_BELOW_SHARES = 1200,    /* weights come up in shares */
    VARIANT_SWAPS = 1300,           /* as BELOW_SHARES; activations of the first chunks leave */
    VARIANT_SLICES = 1400,          /* sequences in three slices of tokens */
    VARIANT_HALVES_SHARES = 1500,   /* backward passes in two units; replicas split weights */
    VARIANT_SLICES_HELD_OUT = 1600, /* as SLICES; evaluated */
    VARIANT_DELAYS = 1700,          /* the host updates a minibatch later, flushed after two */
    VARIANT_STORES = 1800,          /* the host updates states in storage */
    VARIANT_CODES = 1900,           /* boundaries compressed to bf16, gradients to int8 */
    VARIANT_CODES_SHARES = 2000,    /* boundaries compressed; replicas split gradients, exchanged in 16 bits */
    VARIANT_TURNS = 2100,           /* two versions of the weights, and a tied table */
    VARIANT_TURNS_CLIP = 2200,      /* as TURNS; clips */
    VARIANT_ROWS = 2300,            /* as GROUPS; groups cut rows */
    VARIANT_VALLEY = 2400,          /* zb-v: chunks go down the stages and up again */
    VARIANT_END = 2500
};

/* Makes a plan of this variant, with four microbatches where nothing else is said. Fails the test with the planner's
 * message. */
void test_parallel_variant(struct plan *out, uint32_t variant);

/* --- damages ------------------------------------------------------------------------------------ */

void damage_data_late(struct plan *p);
void damage_loss_short(struct plan *p);
void damage_loss_elsewhere(struct plan *p);
void damage_state_short(struct plan *p);
void damage_state_small(struct plan *p);
void damage_workspace_small(struct plan *p);
void damage_reduced_short(struct plan *p);
void damage_norms_small(struct plan *p);
void damage_held_out_loss_lost(struct plan *p);
void damage_held_out_ends_late(struct plan *p);
void damage_shares_gathered_short(struct plan *p);

#endif
