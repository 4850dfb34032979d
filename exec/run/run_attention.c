/*
 * A library may compile code for a shape, or find that it does not support it. This happens here, on the thread that
 * opened the device, so that all steps use the same implementation without delay. Only bf16 jobs have a choice.
 */
#include "exec/run/run_attention.h"

#include <stdio.h>
#include <string.h>

#include "exec/state/run_faults.h"
#include "models/job/job.h"

static struct kernel_attention shape_of(const struct job *job)
{
    const struct network *const n = &job->network;
    return (struct kernel_attention){.b = (int64_t)job->microbatch,
                                     .t = (int64_t)job->sequence,
                                     .h = (int64_t)n->heads,
                                     .kv = (int64_t)network_kv_heads(n),
                                     .d = (int64_t)n->head_width,
                                     .causal = n->causal,
                                     .rounded = true};
}

/* Appends once: "cuDNN 9.19.0; Spillway's own kernels (...)". */
static bool add_once(char *list, size_t size, const char *text)
{
    if (strstr(list, text)) return false;
    const size_t used = strlen(list);
    snprintf(list + used, size - used, "%s%s", used > 0 ? "; " : "", text);
    return true;
}

void run_prepare_attention(struct run *run, uint32_t device)
{
    const struct kernels *const kernels = device_kernels(run->devices[device]);
    const struct job_set *const jobs = &run->plan->jobs;
    const uint32_t devices = run->plan->hardware.device_count;
    if (!kernels->prepare_attention) return;
    for (uint32_t j = 0; j < jobs->count; j++) {
        const struct job *const job = &jobs->jobs[j];
        if (job->precision != PRECISION_BF16_WEIGHTS || !run->uses_device[(size_t)j * devices + device])
            continue;
        char by[sizeof run->attention_by / 2];
        const struct kernel_attention shape = shape_of(job);
        const bool best = kernels->prepare_attention(kernels, &shape, by, sizeof by);
        if (add_once(run->attention_by, sizeof run->attention_by, by) && !best)
            run_note(run, "attention of job '%s' is computed by %s", job->name, by);
    }
}
