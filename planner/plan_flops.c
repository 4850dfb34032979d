#include "planner/plan_flops.h"

#include "base/extreme.h"
#include "models/job/job.h"
#include "models/job/parallel_work.h"

typedef double count_flops(const struct work_item *items, size_t count);

static double job_flops(const struct job *job, count_flops *flops)
{
    struct work_item items[LAYER_WORK_MAX];
    double minibatch = 0;
    for (uint64_t layer = job_layers_begin(job); layer < job_layers_end(job); layer++)
        for (uint32_t pass = PASS_FORWARD; pass <= PASS_BACKWARD; pass++) {
            uint32_t count = network_layer_work(&job->network, layer, pass, job_samples(job), job->sequence,
                                                job_state_format(job), items);
            minibatch += flops(items, count);
        }
    return minibatch * (double)job->minibatches;
}

static double flops_of(const struct plan *plan, count_flops *flops)
{
    double total = 0;
    for (uint32_t j = 0; j < plan->jobs.count; j++) total += job_flops(&plan->jobs.jobs[j], flops);
    return total;
}

double plan_model_flops(const struct plan *plan)
{
    return flops_of(plan, work_flops);
}

/* Returns the FLOPs of a minibatch, of all replicas: each microbatch passes forward and backward over every chunk, on
 * all devices of a tensor group. */
static double parallel_minibatch_flops(const struct job *job)
{
    struct work_item items[PARALLEL_WORK_MAX];
    double microbatch = 0;
    for (uint32_t c = 0; c < parallel_chunks(&job->parallel); c++)
        for (uint32_t pass = PARALLEL_FORWARD; pass <= PARALLEL_BACKWARD; pass++) {
            const uint32_t count = parallel_work(job, parallel_layers(job, c), (enum parallel_pass)pass, items);
            microbatch += work_flops(items, count);
        }
    return microbatch * job->parallel.tensor * (double)job->microbatches;
}

double plan_hardware_flops(const struct plan *plan)
{
    double total = 0;
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const struct job *job = &plan->jobs.jobs[j];
        if (!parallel_is_set(&job->parallel) || job->parallel.schedule == PIPELINE_TERAPIPE) return 0;
        total += parallel_minibatch_flops(job) * (double)job->minibatches;
    }
    return total;
}

double plan_least_flops(const struct plan *plan, const struct hardware *hardware)
{
    bool scalar = true; /* products in fp32 have no matrix cores */
    for (uint32_t d = 0; d < hardware->device_count; d++)
        scalar &= !(hardware->types[hardware->devices[d].type].peak_tf32.value > 0);
    return flops_of(plan, scalar ? work_least_flops : work_flops);
}

double plan_peak_flops_per_s(const struct plan *plan, const struct device_type *type)
{
    double peak = type->peak_fp32.value;
    if (!(peak > 0)) return 0;
    peak = max_s(peak, type->peak_tf32.value);
    for (uint32_t j = 0; j < plan->jobs.count; j++)
        if (plan->jobs.jobs[j].precision != PRECISION_FP32) peak = max_s(peak, type->peak_bf16.value);
    return peak;
}
