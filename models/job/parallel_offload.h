/*
 * Parallel jobs whose optimizer states are not on the devices: ZeRO-Offload and ZeRO-Infinity.
 *
 * Each of d data-parallel ranks (d may be 1) has a share of states, gradients and, with `zero` 3, weights. The share
 * of P parameters of a run is ceil(P / d). With precision "bf16" and AdamW a parameter takes 2 + 12 bytes, and 2 of
 * gradient:
 *
 *                      on the device                              on the host (or storage)
 *   nothing            shares, as `zero` says                     -
 *   offload "states"   weights, whole or a share (zero 3)         weights and states of the share
 *   offload "weights"  room for the weights of prefetch + 1       the same
 *                      passes
 *
 * Host memory also holds the share's gradient. The device stores no sums of gradients. Each run's gradient of a
 * microbatch is made in one of two buffers, reduced to shares, and copied to the host at once. If a minibatch has one
 * microbatch per replica, this is its gradient. If it has more, the host's processor adds arriving gradients to an
 * fp32 sum (4 more bytes per parameter of the share), which is 0 before the first microbatch.
 *
 * The weights in host memory are the copy that goes to the device; the processor rounds its master to it. Gradients
 * are made, reduced and sent in the job's precision, as in the sources: with "bf16", 2 bytes per parameter cross the
 * links for each microbatch and 2 for each step. The processor is assumed to read them as fast as fp32.
 *
 * With `zero` 0 (KARMA's data parallelism) every rank has all state on its host. Weights go up whole, gradients come
 * down whole, and hosts add up gradients, run by run as they arrive, before the step, which each host makes by
 * itself. The all-reduce between hosts takes as long as one between the devices by the closed form of
 * models/cost/collective.h. This is exact if every device is a node with its own NIC. It is an approximation if a
 * node has several devices whose links to each other are faster than the host's. Each replica must have one
 * microbatch: hosts do not join sums of several.
 *
 * With `storage`, weights and states are stored, each rank's share separately. The weights of a pass, and weights and
 * states of a step, are first read into host memory; after the step they are written back. Weights that stay on the
 * devices (offload "states") are read once more to go up.
 *
 * Each node has a host. Its processor and storage serve one of the node's ranks at a time, which takes as long in
 * total as serving all ranks together.
 *
 * Semantics: synchronous, except with `delayed`, where passes over a minibatch use weights that lack the latest
 * update (parallel_staleness()). A published run starts without a delay; a plan delays from the first step.
 *
 * Sources: ZeRO-Offload, arXiv 2101.06840, sections 4 and 5; ZeRO-Infinity, arXiv 2104.07857, sections 5 and 6;
 * KARMA, arXiv 2008.11421, its pipeline over several devices.
 */
#ifndef SPILLWAY_MODELS_JOB_PARALLEL_OFFLOAD_H
#define SPILLWAY_MODELS_JOB_PARALLEL_OFFLOAD_H

#include "models/job/parallel_memory.h"

static inline bool parallel_offloads(const struct parallel *parallel)
{
    return parallel->offload != OFFLOAD_NOTHING;
}

/* Returns true when hosts that have all state add up gradients between ranks. */
static inline bool parallel_joins_on_hosts(const struct parallel *parallel)
{
    return parallel->offload == OFFLOAD_WEIGHTS && parallel->zero == ZERO_NOTHING && parallel->data > 1;
}

/* Returns true when the host adds up gradients: when a minibatch has several passes. */
bool parallel_sums_on_host(const struct job *job);

/* Returns the bytes of each rank's sum of gradients on the host; 0 when the host adds up nothing. */
uint64_t parallel_host_sum_bytes(const struct job *job, struct parallel_layers layers);

/* Returns the bytes of the gradient used by the host's step: the sum, or the gradient that arrived. */
uint64_t parallel_host_gradient_bytes(const struct job *job, struct parallel_layers layers);

/* Returns the state of these layers that each rank has on its host, or for weights and states on storage; 0 for a job
 * that does not offload. */
struct rank_state parallel_host_state(const struct job *job, struct parallel_layers layers);

/* Checks that offloading and swapping fit the job. Errors: STATUS_BAD_INPUT with a message but without a position. */
MUST_CHECK enum status parallel_offload_check(const struct job *job, struct error *err);

#endif
