#include "planner/plan_charges.h"

#include "base/extreme.h"
#include "base/try.h"
#include "models/job/parallel_memory.h"

uint64_t plan_charges_bytes(const struct job *job, uint32_t stage)
{
    struct rank_state state = parallel_stage_state(job, stage);
    return state.weight_bytes + state.state_bytes;
}

void plan_charges_add(const struct hardware *hardware, uint32_t device, uint64_t bytes, double *link_bytes)
{
    const struct hardware_device *d = &hardware->devices[device];
    for (uint32_t i = 0; i < d->path_count; i++) link_bytes[d->path[i]] += (double)bytes;
}

void plan_charges_clear(const struct hardware *hardware, uint32_t device, double *link_bytes)
{
    const struct hardware_device *d = &hardware->devices[device];
    for (uint32_t i = 0; i < d->path_count; i++) link_bytes[d->path[i]] = 0;
}

double plan_charges_s(const struct hardware *hardware, uint32_t device, enum copy_direction direction, uint64_t bytes,
                 const double *link_bytes)
{
    const struct hardware_device *d = &hardware->devices[device];
    if (bytes == 0) return 0;
    double latency_s = cost_copy_latency_s(hardware, device, direction);
    double seconds = cost_copy_s(hardware, device, direction, bytes);
    for (uint32_t i = 0; i < d->path_count; i++)
        seconds = max_s(seconds, latency_s + link_bytes[d->path[i]] / hardware->links[d->path[i]].bandwidth.value);
    return seconds;
}

enum status plan_charges_first_stage(struct arena *arena, const struct hardware *hardware, const struct job *job,
                                double *in_s, double *out_s, struct error *err)
{
    const struct parallel *p = &job->parallel;
    uint32_t device = p->first_device;
    *in_s = *out_s = 0;
    if (!plan_charges_count(hardware) || parallel_devices(p) + device > hardware->device_count) return STATUS_OK;
    double *link_bytes;
    TRY(ARENA_NEW(arena, hardware->link_count, link_bytes, err));
    for (uint32_t stage = 0; stage < p->pipeline; stage++) {
        uint64_t bytes = plan_charges_bytes(job, stage);
        for (uint32_t rank = 0; rank < p->tensor * parallel_replicas(p, stage); rank++)
            plan_charges_add(hardware, device++, bytes, link_bytes);
    }
    uint64_t bytes = plan_charges_bytes(job, 0);
    for (uint32_t rank = 0; rank < p->tensor * parallel_replicas(p, 0); rank++) {
        *in_s = max_s(*in_s, plan_charges_s(hardware, p->first_device + rank, COPY_H2D, bytes, link_bytes));
        *out_s = max_s(*out_s, plan_charges_s(hardware, p->first_device + rank, COPY_D2H, bytes, link_bytes));
    }
    return STATUS_OK;
}
