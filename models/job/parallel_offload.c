#include "models/job/parallel_offload.h"

#include <inttypes.h>

#include "base/try.h"
#include "models/network/network_trained.h"

/* Returns true if several ranks each have all state on their hosts, and weights that come up whole. */
static bool come_whole(const struct parallel *p)
{
    return p->offload == OFFLOAD_WEIGHTS && p->zero == ZERO_NOTHING && p->data > 1;
}

/* Returns true if a carried-out job's gradients have nothing to meet on the devices. */
static bool meets_nothing(const struct job *job)
{
    const struct parallel *p = &job->parallel;
    return p->offload == OFFLOAD_WEIGHTS && !parallel_splits(p, ZERO_STATES) && job->microbatches == p->data &&
           parallel_slices(p) == 1 && !job_clips(job) && !(job->network.tied_head && p->pipeline > 1) &&
           !pipeline_has_halves(p->schedule);
}

bool parallel_drains(const struct job *job)
{
    return parallel_offloads(&job->parallel) && (!parallel_is_carried_out(&job->parallel) || meets_nothing(job));
}

bool parallel_joins_on_hosts(const struct job *job)
{
    return come_whole(&job->parallel) && parallel_drains(job);
}

bool parallel_sums_on_host(const struct job *job)
{
    const struct parallel *p = &job->parallel;
    return parallel_drains(job) && job->microbatches / p->data * parallel_slices(p) > 1;
}

struct rank_state parallel_host_state(const struct job *job, struct parallel_layers layers)
{
    if (!parallel_offloads(&job->parallel)) return (struct rank_state){0};
    const uint64_t frozen = parallel_frozen_parameters(job, layers), ranks = job->parallel.data;
    const bool whole = come_whole(&job->parallel);
    struct rank_state state = parallel_zero_state(parallel_parameters(job, layers), parallel_parameter_bytes(job),
                                                  job->parallel.data, whole ? ZERO_NOTHING : ZERO_WEIGHTS);
    if (job->parallel.offload == OFFLOAD_WEIGHTS)
        state.weight_bytes += (whole ? frozen : (frozen + ranks - 1) / ranks) * precision_weight_bytes(job->precision);
    return state;
}

uint64_t parallel_host_sum_bytes(const struct job *job, struct parallel_layers layers)
{
    if (!parallel_sums_on_host(job)) return 0;
    struct parameter_bytes each = {.gradient = precision_bytes(PRECISION_FP32)};
    return parallel_zero_state(parallel_parameters(job, layers), each, job->parallel.data, ZERO_WEIGHTS).gradient_bytes;
}

uint64_t parallel_host_gradient_bytes(const struct job *job, struct parallel_layers layers)
{
    return parallel_sums_on_host(job) ? parallel_host_sum_bytes(job, layers)
                                      : parallel_host_state(job, layers).gradient_bytes;
}

bool parallel_fetches_again(const struct job *job, uint32_t chunk)
{
    const struct parallel_layers layers = parallel_layers(job, chunk);
    if (!parallel_is_carried_out(&job->parallel) || !pipeline_has_halves(job->parallel.schedule)) return false;
    for (uint64_t layer = layers.first; layer < layers.first + layers.count; layer++)
        if (network_layer_rank(&job->network, layer) > 0) return true;
    return chunk == 0;
}

/* Checks that each replica makes one pass over each chunk per minibatch, as `what` requires. */
static enum status check_once(const struct job *job, const char *what, struct error *err)
{
    const struct parallel *p = &job->parallel;
    if (p->schedule == PIPELINE_TERAPIPE)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s with schedule 'terapipe' (expected one whose microbatches are in one piece)", what);
    if (job->microbatches == p->data) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "%s with %" PRIu64 " microbatches of a replica (expected 1)", what,
                     job->microbatches / p->data);
}

/* Checks hosts that have all state and add up gradients as they arrive. */
static enum status check_whole(const struct job *job, struct error *err)
{
    const struct parallel *p = &job->parallel;
    if (pipeline_is_asynchronous(p->schedule))
        return error_set(err, STATUS_BAD_INPUT, "schedule '%s' with 'offload' (expected none: weights have versions)",
                         pipeline_schedule_names[p->schedule]);
    if (compression_is_set(&job->compression[COMPRESSION_GRADIENTS]))
        return error_set(err, STATUS_BAD_INPUT,
                         "'compression' of gradients with 'offload' (expected none: "
                         "hosts add up uncompressed gradients)");
    if (p->data == 1 || p->offload == OFFLOAD_STATES) return STATUS_OK;
    return check_once(job, "'offload' of weights (with 'zero' 0)", err);
}

static enum status check_choices(const struct parallel *p, struct error *err)
{
    if (!p->choose && p->chosen == 0) return STATUS_OK;
    if (recompute_repeats(p->recompute))
        return error_set(err, STATUS_BAD_INPUT,
                         "'%s' with recomputation of all chunks (expected none or selective: "
                         "recomputed activations are not swapped)",
                         p->choose ? "choose" : "choices");
    if (parallel_chunks(p) > PARALLEL_CUTS_MAX)
        return error_set(err, STATUS_BAD_INPUT, "'%s' for %" PRIu32 " chunks (expected at most %d)",
                         p->choose ? "choose" : "choices", parallel_chunks(p), PARALLEL_CUTS_MAX);
    if (p->chosen == 0 || p->chosen == parallel_chunks(p)) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT,
                     "'choices' of %" PRIu32 " chunks (expected one for each chunk, %" PRIu32 ")", p->chosen,
                     parallel_chunks(p));
}

static enum status check_swap(const struct job *job, struct error *err)
{
    const struct parallel *p = &job->parallel;
    if (!p->swap && (p->choose || p->chosen > 0))
        return error_set(err, STATUS_BAD_INPUT,
                         "'%s' without 'swap' (expected it: activations leave or are computed again)",
                         p->choose ? "choose" : "choices");
    if (!p->swap) return STATUS_OK;
    if (p->offload != OFFLOAD_WEIGHTS)
        return error_set(err, STATUS_BAD_INPUT,
                         "'swap' without 'offload' of weights (expected \"weights\": activations come up with them)");
    if (p->pipeline > 1 || p->tensor > 1)
        return error_set(err, STATUS_BAD_INPUT,
                         "'swap' on %" PRIu32 " stages of tensor groups of %" PRIu32 " (expected only 'data')",
                         p->pipeline, p->tensor);
    TRY(check_choices(p, err));
    return check_once(job, "'swap'", err);
}

enum status parallel_offload_check(const struct job *job, struct error *err)
{
    const struct parallel *p = &job->parallel;
    if (p->offload != OFFLOAD_WEIGHTS && (p->swap || p->choose || p->chosen > 0)) return check_swap(job, err);
    if (p->offload == OFFLOAD_NOTHING) {
        if (!p->storage && !p->delayed) return STATUS_OK;
        return error_set(err, STATUS_BAD_INPUT, "'%s' without 'offload' (expected \"states\"%s)",
                         p->storage ? "storage" : "delayed", p->storage ? " or \"weights\"" : "");
    }
    const bool simulated = p->carrying == PARALLEL_SIMULATED || parallel_only_simulated(NULL, job);
    if (p->offload == OFFLOAD_STATES && p->zero < ZERO_GRADIENTS && p->data > 1 && simulated)
        return error_set(err, STATUS_BAD_INPUT,
                         "'offload' of states with 'zero' %" PRIu32 " (expected 2 or 3: gradients go down in shares)",
                         p->zero);
    if (p->offload == OFFLOAD_WEIGHTS && p->zero != ZERO_NOTHING && p->zero < ZERO_WEIGHTS)
        return error_set(err, STATUS_BAD_INPUT,
                         "'offload' of weights with 'zero' %" PRIu32
                         " (expected 3: weights come up in shares, or 0: whole)",
                         p->zero);
    if (p->offload == OFFLOAD_WEIGHTS && p->delayed)
        return error_set(err, STATUS_BAD_INPUT,
                         "'delayed' with 'offload' of weights (expected 'offload' of states: "
                         "older weights stay on the devices)");
    if (p->sequence && simulated) /* its members add up gradients of norms in updates */
        return error_set(err, STATUS_BAD_INPUT,
                         "'offload' with sequence parallelism (expected none: "
                         "tensor groups add up gradients of norms)");
    if (p->zero == ZERO_NOTHING) TRY(check_whole(job, err));
    return check_swap(job, err);
}
