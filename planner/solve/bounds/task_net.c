/* The net is made forwards; mirroring it is a second step. */
#include "planner/solve/bounds/task_net.h"

#include <assert.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/extreme.h"

bool task_net_takes(const struct instance *in)
{
    return in->objective == OBJECTIVE_MAKESPAN && !in->streams && in->bridge_bytes_per_tick == 0 &&
           in->job_count <= TASK_NET_JOBS_MAX && in->device_count <= TASK_NET_DEVICES_MAX &&
           in->task_count <= TASK_NET_TASKS_MAX && in->horizon <= INT32_MAX / 4;
}

static void number_tasks(struct task_net *net)
{
    const struct instance *in = net->in;
    for (uint32_t i = 0; i < in->job_count; i++) {
        const struct instance_job *job = &in->jobs[i];
        uint32_t first = net->task_count;
        int32_t at = (int32_t)in->units[job->first_unit].in;
        for (uint32_t t = 0; t < instance_length(job); t++) {
            uint32_t k = net->task_count++, unit = instance_unit_at(job, t);
            net->unit[k] = unit;
            net->job[k] = (uint8_t)i;
            net->step[k] = (int32_t)instance_compute_min(in, unit);
            net->head[k] = at;
            at += net->step[k];
            if (t > 0) net->through[k - 1] = (int32_t)instance_through_host(in, net->unit[k - 1], unit);
        }
        int32_t tail = (int32_t)in->units[net->unit[net->task_count - 1]].out;
        for (uint32_t k = net->task_count; k-- > first;) {
            tail += net->step[k];
            net->tail[k] = max_i32(tail, net->step[k] + (int32_t)in->units[net->unit[k]].out);
        }
        net->first[i + 1] = net->task_count;
    }
}

static void fill_class(struct task_net *net, uint32_t c)
{
    const struct instance *in = net->in;
    struct task_net_class *class = &net->classes[c];
    for (uint32_t k = 0; k < net->task_count; k++) {
        class->fits[k] = instance_fits(in, net->unit[k], c);
        class->step[k] = (int32_t)instance_compute(in, net->unit[k], c);
        class->setup[net->task_count][k] = (int32_t)in->units[net->unit[k]].in;
        for (uint32_t j = 0; j < net->task_count; j++)
            class->setup[j][k] = (int32_t)instance_setup(in, net->unit[j], net->unit[k], c);
    }
}

static void mirror(struct task_net *net)
{
    struct task_net as = *net, *to = net;
    struct task_net_class class = net->classes[0];
    uint32_t n = net->task_count;
    for (uint32_t i = 0; i < net->job_count; i++) {
        uint32_t sum = as.first[i] + as.first[i + 1] - 1; /* k is mirrored by sum - k */
        for (uint32_t k = as.first[i]; k < as.first[i + 1]; k++) {
            uint32_t m = sum - k;
            to->unit[m] = as.unit[k];
            to->head[m] = as.tail[k];
            to->tail[m] = as.head[k];
            to->finish[m] = class.setup[n][k];
            to->step[m] = k > as.first[i] ? as.step[k - 1] : 0;
            to->through[m] = k > as.first[i] ? as.through[k - 1] : 0;
            to->classes[0].fits[m] = class.fits[k];
            to->classes[0].step[m] = to->step[m];
            to->classes[0].setup[n][m] = 0;
            for (uint32_t o = 0; o < net->job_count; o++)
                for (uint32_t j = as.first[o]; j < as.first[o + 1]; j++)
                    to->classes[0].setup[m][as.first[o] + as.first[o + 1] - 1 - j] = class.setup[j][k];
        }
    }
}

static int32_t distance(const struct task_net *net, uint32_t j, uint32_t k)
{
    int32_t least = INT32_MAX;
    if (j < net->task_count && net->job[j] == net->job[k] && k <= j) return TASK_NET_FORBIDDEN;
    for (uint32_t c = 0; c < net->class_count; c++) {
        const struct task_net_class *class = &net->classes[c];
        if (class->fits[k] && (j == net->task_count || class->fits[j]) && class->setup[j][k] < least)
            least = class->setup[j][k];
    }
    if (least == INT32_MAX) return TASK_NET_FORBIDDEN;
    if (j < net->task_count && net->job[j] == net->job[k] && k > j + 1) {
        int32_t chain = net->through[j] + net->through[k - 1];
        for (uint32_t t = j; t < k; t++) chain += net->step[t];
        least = max_i32(least, chain);
    }
    return least;
}

enum status task_net_create(const struct instance *in, bool mirrored, struct task_net **out, struct error *err)
{
    assert(task_net_takes(in));
    assert(!mirrored || in->class_count == 1);
    struct task_net *net = alloc_zeroed(1, sizeof *net);
    struct task_net_class *classes = alloc_zeroed(in->class_count, sizeof *classes);
    if (!net || !classes) {
        free(net);
        free(classes);
        return error_memory(err, "the tasks of an instance", in->class_count * sizeof *classes);
    }
    net->in = in;
    net->mirrored = mirrored;
    net->job_count = in->job_count;
    net->device_count = in->device_count;
    net->class_count = in->class_count;
    net->classes = classes;
    number_tasks(net);
    for (uint32_t c = 0; c < in->class_count; c++) fill_class(net, c);
    if (mirrored) mirror(net);
    for (uint32_t j = 0; j <= net->task_count; j++)
        for (uint32_t k = 0; k < net->task_count; k++) net->distance[j][k] = distance(net, j, k);
    *out = net;
    return STATUS_OK;
}

void task_net_destroy(struct task_net *net)
{
    if (!net) return;
    free(net->classes);
    free(net);
}

void task_net_order(const struct task_net *net, struct dispatch_step *steps)
{
    for (uint32_t a = 0, b = net->task_count - 1; net->mirrored && a < b; a++, b--) {
        struct dispatch_step step = steps[a];
        steps[a] = steps[b];
        steps[b] = step;
    }
}
