/*
 * Parallel jobs whose optimizer states are not on the devices: ZeRO-Offload and ZeRO-Infinity.
 *
 * Each of d data-parallel ranks has a share of states, gradients and, with `zero` 3, weights: ceil(P / d) of a chunk's
 * P parameters. With "bf16" and AdamW a parameter takes 2 + 12 bytes, and 2 of gradient:
 *
 *                      on the device                              on the host (or storage)
 *   nothing            shares, as `zero` says                     -
 *   offload "states"   weights, whole or a share (zero 3)         weights and states of the share
 *   offload "weights"  room for the weights of prefetch + 1       the same
 *                      passes
 *
 * Host memory also holds the share's gradient; the device stores no sums. Each chunk's gradient of a microbatch is made
 * in one of two buffers, reduced to shares, and copied to the host. If a replica has several microbatches per
 * minibatch, the host's processor adds gradients to an fp32 sum (4 more bytes per parameter of the share), which is 0
 * before the first.
 *
 * The processor rounds its master to the weights in host memory, which go to the device. Gradients are made, reduced
 * and sent in the job's precision: with "bf16", 2 bytes per parameter cross the links for each microbatch and 2 for
 * each step. The processor is assumed to read them as fast as fp32.
 *
 * With `zero` 0 (KARMA's data parallelism) every rank has all state on its host. Weights and gradients cross whole,
 * and hosts add up gradients, chunk by chunk, before each host makes the step. Their all-reduce takes as long as one
 * between the devices (models/cost/collective.h): exact if every device is a node with its own NIC, an approximation
 * if a node's devices have faster links to each other. Each replica must have one microbatch.
 *
 * With `storage`, each rank's share of weights and states is stored. Weights of a pass, and weights and states of a
 * step, are first read into host memory, and written back after the step. Weights that stay on the devices (offload
 * "states") are read once more to go up.
 *
 * A node's processor and storage serve one of its ranks at a time, which takes as long as serving all together.
 *
 * Jobs that are carried out (models/job/chunk_memory.h) add up gradients on the devices, as without offloading, and so
 * with the same bits. A chunk's sum, or a rank's share of it (`zero` 2 and 3), goes down once per minibatch. With
 * `zero` 0 every host makes the whole step; with 1 and 2 hosts have all weights, whose shares go up and are gathered.
 * Offloaded weights come up for each pass. Where they come whole and each replica has one microbatch, gradients go down
 * after each backward pass, through two buffers, and hosts add them up between ranks, as above; unless the job clips or
 * has a tied table on two stages, whose gradients meet on the devices.
 *
 * Semantics: synchronous, except with `delayed`, where passes lack the latest update (parallel_staleness()), here from
 * the first step on.
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

/* Returns true if gradients go to the hosts microbatch by microbatch, and are added up there. */
bool parallel_drains(const struct job *job);

/* Returns true if hosts that have all state add up gradients between ranks. */
bool parallel_joins_on_hosts(const struct job *job);

/* Returns true if a minibatch has several passes. */
bool parallel_sums_on_host(const struct job *job);

/* Returns each rank's sum on the host; 0 without. */
uint64_t parallel_host_sum_bytes(const struct job *job, struct parallel_layers layers);

/* Returns the gradient of the host's step: the sum, or the one that arrived. */
uint64_t parallel_host_gradient_bytes(const struct job *job, struct parallel_layers layers);

/* Returns the state that each rank has on its host or, for weights and states, on storage; 0 without offloading. */
struct rank_state parallel_host_state(const struct job *job, struct parallel_layers layers);

/* Returns true if the second unit of a carried-out job's backward pass reads weights that passes fetch: of the
 * embedding, and of adapters, whose gradients are products with each other's weights. */
bool parallel_fetches_again(const struct job *job, uint32_t chunk);

/* Checks offloading and swapping. Errors: STATUS_BAD_INPUT with a message but without a position. */
MUST_CHECK enum status parallel_offload_check(const struct job *job, struct error *err);

#endif
