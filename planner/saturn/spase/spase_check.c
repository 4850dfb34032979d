/*
 * The judge of spase_schedule.h writes spase.h's rules out again. Each job is checked by itself, then each device's
 * intervals in the order of their starts.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/try.h"
#include "planner/saturn/spase/spase_schedule.h"

struct spase_check_held { /* a device, by a job */
    uint32_t device, job;
    int64_t start, end;
};

static int compare_held(const void *a, const void *b)
{
    const struct spase_check_held *x = a, *y = b;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static enum status check_job(const struct spase *in, const struct spase_schedule *s, uint32_t index,
                             struct error *err)
{
    const struct spase_job *job = &in->jobs[index];
    const struct spase_task *task = &s->tasks[index];
    if (task->config < job->first_config || task->config >= job->first_config + job->config_count)
        return error_set(err, STATUS_CHECK, "job '%.80s' has no configuration %u", job->name, task->config);
    const struct spase_config *config = &in->configs[task->config];
    uint32_t first = s->device_first[index], count = s->device_first[index + 1] - first, home = 0;
    if (count != config->devices)
        return error_set(err, STATUS_CHECK, "job '%.80s' has %u devices (its configuration asks for %u)",
                         job->name, count, config->devices);
    if (task->start < 0) return error_set(err, STATUS_CHECK, "job '%.80s' starts before time 0", job->name);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t device = s->devices[first + i];
        if (device >= in->device_count)
            return error_set(err, STATUS_CHECK, "job '%.80s': there is no device %u", job->name, device);
        uint32_t node = spase_node_of(in, device);
        if (i == 0) home = node;
        if (in->nodes[node].class != in->nodes[home].class)
            return error_set(err, STATUS_CHECK, "job '%.80s' has devices of two classes", job->name);
        if (node != home && !config->spans)
            return error_set(err, STATUS_CHECK, "job '%.80s' spans nodes, and '%.80s' may not", job->name,
                             config->parallelism);
    }
    int64_t ticks = in->ticks[(size_t)task->config * in->class_count + in->nodes[home].class];
    if (ticks == SPASE_NOWHERE)
        return error_set(err, STATUS_CHECK, "job '%.80s': '%.80s' does not run on class '%.80s'", job->name,
                         config->parallelism, in->class_names[in->nodes[home].class]);
    if (task->ticks != ticks)
        return error_set(err, STATUS_CHECK,
                         "job '%.80s' holds its devices for %" PRId64 " ticks (expected %" PRId64 ")", job->name,
                         task->ticks, ticks);
    return STATUS_OK;
}

enum status spase_check(const struct spase *in, const struct spase_schedule *s, struct error *err)
{
    int64_t makespan = 0;
    for (uint32_t j = 0; j < in->job_count; j++) {
        if (s->device_first[j + 1] < s->device_first[j] || s->device_first[0] != 0)
            return error_set(err, STATUS_CHECK, "the devices are not listed job by job");
        TRY(check_job(in, s, j, err));
        if (s->tasks[j].start > INT64_MAX - s->tasks[j].ticks)
            return error_set(err, STATUS_CHECK, "job '%.80s' ends past all time", in->jobs[j].name);
        int64_t end = s->tasks[j].start + s->tasks[j].ticks;
        if (end > makespan) makespan = end;
    }
    uint32_t count = s->device_first[in->job_count];
    struct spase_check_held *held = alloc_zeroed(count, sizeof *held);
    if (!held) return error_memory(err, "checking a schedule", count * sizeof *held);
    for (uint32_t j = 0; j < in->job_count; j++)
        for (uint32_t i = s->device_first[j]; i < s->device_first[j + 1]; i++)
            held[i] = (struct spase_check_held){s->devices[i], j, s->tasks[j].start,
                                                s->tasks[j].start + s->tasks[j].ticks};
    qsort(held, count, sizeof *held, compare_held);
    for (uint32_t i = 1; i < count; i++) {
        const struct spase_check_held *a = &held[i - 1], *b = &held[i];
        if (a->device != b->device || b->start >= a->end) continue;
        error_set(err, STATUS_CHECK, "device %u: job '%.80s' starts at %" PRId64 ", before '%.80s' ends at %" PRId64,
                  b->device, in->jobs[b->job].name, b->start, in->jobs[a->job].name, a->end);
        goto out;
    }
    if (s->makespan != makespan)
        error_set(err, STATUS_CHECK, "the makespan is %" PRId64 ", not %" PRId64, makespan, s->makespan);
out:
    free(held);
    return err->status;
}
