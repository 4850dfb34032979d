/* See parallel_offload.h. */
#include "models/parallel_offload.h"

#include <inttypes.h>

bool parallel_sums_on_host(const struct job *job)
{
    const struct parallel *p = &job->parallel;
    return parallel_offloads(p) && job->microbatches / p->data * parallel_slices(p) > 1;
}

struct rank_state parallel_host_state(const struct job *job, struct parallel_layers layers)
{
    if (!parallel_offloads(&job->parallel)) return (struct rank_state){0};
    return parallel_zero_state(parallel_parameters(job, layers), parallel_parameter_bytes(job), job->parallel.data,
                               ZERO_WEIGHTS);
}

enum status parallel_offload_check(const struct parallel *p, struct error *err)
{
    if (p->offload == OFFLOAD_NOTHING) {
        if (!p->storage && !p->delayed) return STATUS_OK;
        return error_set(err, STATUS_BAD_INPUT, "'%s' without 'offload' (expected \"states\"%s)",
                         p->storage ? "storage" : "delayed", p->storage ? " or \"weights\"" : "");
    }
    if (p->offload == OFFLOAD_STATES && p->zero < ZERO_GRADIENTS)
        return error_set(err, STATUS_BAD_INPUT,
                         "'offload' of states with 'zero' %" PRIu32 " (expected 2 or 3: gradients go down in shares)",
                         p->zero);
    if (p->offload == OFFLOAD_WEIGHTS && p->zero < ZERO_WEIGHTS)
        return error_set(err, STATUS_BAD_INPUT,
                         "'offload' of weights with 'zero' %" PRIu32 " (expected 3: weights come up in shares)",
                         p->zero);
    if (p->offload == OFFLOAD_WEIGHTS && p->delayed)
        return error_set(err, STATUS_BAD_INPUT,
                         "'delayed' with 'offload' of weights (expected of states: older weights stay on the devices)");
    if (p->sequence)
        return error_set(err, STATUS_BAD_INPUT,
                         "'offload' with sequence parallelism (expected none: tensor groups add up gradients of norms)");
    return STATUS_OK;
}
