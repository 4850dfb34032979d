/*
 * Jobs that are spread and whose optimizer's states are not on the devices: ZeRO-Offload and ZeRO-Infinity.
 *
 * Each of d data-parallel ranks (1 is one) has a share of states, gradients and, with `zero` 3, weights. Of P
 * parameters of a run, ceil(P / d) each, with a job of precision "bf16" and AdamW 2 + 12 bytes and 2 of gradient:
 *
 *                      on the device                              on the host (or storage)
 *   nothing            shares, as `zero` says                     -
 *   offload "states"   weights, whole or a share (zero 3)         weights and states of the share
 *   offload "weights"  places for the weights of prefetch + 1     the same
 *                      passes
 *
 * and the share's gradient in host memory. No sums of gradients are on the device: each run's of a microbatch is made
 * in one of two places, reduced to shares, and copied down at once. Where a minibatch has one microbatch on a replica
 * that is its gradient; where it has more, the host's processor adds what has arrived to a sum in fp32 (4 bytes a
 * parameter of the share more there), which is 0 in front of the first.
 *
 * What the host's memory has of the weights is what is copied up: the processor rounds its master to it. Gradients
 * are made, reduced and sent down in the job's precision, as the sources have it: of "bf16" 2 bytes a parameter cross
 * the links for each microbatch and 2 for each step. The processor is taken to read them as fast as fp32.
 *
 * With `zero` 0 (KARMA's data parallelism) every rank's host has all: weights come up whole, gradients go down whole,
 * and hosts add them up, run by run as they arrive, in front of the step, which each makes by itself. Their all-reduce
 * takes what one between the devices takes by the closed form of models/cost/collective.h: exact where every device is a
 * node of its own with its own NIC, an approximation where several of a node have faster links between them than
 * their host has to itself. One microbatch on each replica: sums of several are not joined.
 *
 * With `storage` weights and states are stored, each rank's share for itself; a pass's weights, and for a step both,
 * are read into host memory first, and written back behind the step. Weights that stay on the devices (offload
 * "states") are read once more to go up.
 *
 * Each node has a host: its processor and its storage work for one of the node's ranks at a time, which is as good as
 * for all of them together.
 *
 * Semantics: synchronous, but with `delayed`, where passes over a minibatch find the weights of the update before the
 * last (parallel_staleness()). A published run begins without a delay; a plan delays from the first step.
 *
 * Sources: ZeRO-Offload, arXiv 2101.06840, sections 4 and 5; ZeRO-Infinity, arXiv 2104.07857, sections 5 and 6; KARMA,
 * arXiv 2008.11421, its pipeline over several devices.
 */
#ifndef SPILLWAY_MODELS_PARALLEL_OFFLOAD_H
#define SPILLWAY_MODELS_PARALLEL_OFFLOAD_H

#include "models/job/parallel_memory.h"

static inline bool parallel_offloads(const struct parallel *parallel)
{
    return parallel->offload != OFFLOAD_NOTHING;
}

/* Do hosts that have everything whole add up gradients between ranks? */
static inline bool parallel_joins_on_hosts(const struct parallel *parallel)
{
    return parallel->offload == OFFLOAD_WEIGHTS && parallel->zero == ZERO_NOTHING && parallel->data > 1;
}

/* Does the host add up gradients? Where a minibatch has several passes. */
bool parallel_sums_on_host(const struct job *job);

/* The sum that the host adds them up in, of each rank's share; 0 where it adds up nothing. */
uint64_t parallel_host_sum_bytes(const struct job *job, struct parallel_layers layers);

/* What the host steps by: that sum, or what arrived. */
uint64_t parallel_host_gradient_bytes(const struct job *job, struct parallel_layers layers);

/* What each rank has of layers on the host, weights and states on storage instead; 0 of a job that does not
 * offload. */
struct rank_state parallel_host_state(const struct job *job, struct parallel_layers layers);

/* Do these parts fit together, swapping included? Errors: STATUS_BAD_INPUT, in words, without a place. */
MUST_CHECK enum status parallel_offload_check(const struct job *job, struct error *err);

#endif
