#include "planner/solve/search/local_split.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

enum status local_split_init(const struct instance *in, struct local_split *c, struct error *err)
{
    c->in = in;
    setup_table_make(in, &c->setups);
    c->units = alloc_zeroed(in->unit_count, sizeof *c->units);
    c->steps = alloc_zeroed(in->task_count, sizeof *c->steps);
    c->jobs = alloc_zeroed(in->job_count, sizeof *c->jobs);
    c->devices = alloc_zeroed(in->device_count, sizeof *c->devices);
    c->device_of = alloc_zeroed(in->device_count, sizeof *c->device_of);
    c->sequence_of = alloc_zeroed(in->device_count, sizeof *c->sequence_of);
    if (!c->units || !c->steps || !c->jobs || !c->devices || !c->device_of || !c->sequence_of)
        return error_memory(err, "a search", in->task_count * sizeof *c->steps);
    for (uint32_t u = 0; u < in->unit_count; u++) {
        const struct instance_job *job = &in->jobs[in->units[u].job];
        uint32_t next = u + 1 < job->first_unit + job->unit_count ? u + 1 : job->first_unit;
        c->units[u] = (struct local_unit){in->units[u].in, in->units[u].out, instance_through_host(in, u, next), next};
        c->through |= c->units[u].through > 0;
    }
    for (int i = 0; i < 2 * LOCAL_EXPONENT_MAX * LOCAL_EXPONENT_STEPS; i++)
        c->exponential[i] = (float)exp((double)i / LOCAL_EXPONENT_STEPS - LOCAL_EXPONENT_MAX);
    return STATUS_OK;
}

void local_split_release(struct local_split *c)
{
    setup_table_release(&c->setups);
    free(c->units);
    free(c->steps);
    free(c->jobs);
    free(c->devices);
    free(c->device_of);
    free(c->sequence_of);
    *c = (struct local_split){0};
}

void local_split_clear(struct local_split *c)
{
    const struct instance *in = c->in;
    for (uint32_t i = 0; i < in->job_count; i++)
        c->jobs[i] = (struct local_job){.unit = in->jobs[i].first_unit, .left = instance_length(&in->jobs[i]),
                                        .device = TIMETABLE_NONE, .next = TIMETABLE_NONE};
    for (uint32_t g = 0; g < in->device_count; g++) {
        c->devices[g] = (struct local_device){.job = TIMETABLE_NONE, .next = TIMETABLE_NONE};
        c->device_of[g] = c->sequence_of[g] = g;
    }
}

void local_split_set_tails(struct local_split *c, uint32_t first, uint32_t last)
{
    const struct instance *in = c->in;
    for (uint32_t t = last + 1; t-- > first;) {
        struct local_step *step = &c->steps[t];
        struct local_job *j = &c->jobs[step->job];
        uint32_t device = c->device_of[step->sequence], class = in->device_class[device];
        struct local_device *d = &c->devices[device];
        const struct instance_job *chain = &in->jobs[step->job];
        uint32_t after = j->next == TIMETABLE_NONE ? chain->first_unit : c->steps[j->next].unit;
        step->unit = after > chain->first_unit ? after - 1 : chain->first_unit + chain->unit_count - 1;
        step->next_of_job = j->next;
        step->next_in_sequence = d->next;
        int64_t compute = instance_compute(in, step->unit, class);
        step->tail = compute + in->units[step->unit].out;
        if (j->next != TIMETABLE_NONE) {
            int64_t tail = compute + c->steps[j->next].tail;
            if (in->units[step->unit].writes && j->next != d->next)
                tail += instance_through_host(in, step->unit, after);
            if (tail > step->tail) step->tail = tail;
        }
        if (d->next != TIMETABLE_NONE) {
            int64_t tail = setup_table_at(&c->setups, step->unit, c->steps[d->next].unit, class) +
                           c->steps[d->next].tail;
            if (tail > step->tail) step->tail = tail;
        }
        j->next = d->next = t;
    }
}

void local_split_count_bytes(struct local_split *c)
{
    const struct instance *in = c->in;
    c->bytes = 0;
    if (in->bridge_bytes_per_tick == 0) return;
    for (uint32_t g = 0; g < in->device_count; g++) {
        struct local_device d = c->devices[g];
        for (uint32_t t = d.next; t != TIMETABLE_NONE; t = c->steps[t].next_in_sequence) {
            const struct local_step *step = &c->steps[t];
            c->bytes += local_split_copy(c, &d, step->unit);
            if (in->units[step->unit].writes) c->bytes += in->units[step->unit].out_bytes;
            d.job = step->job;
            d.unit = step->unit;
        }
    }
}
