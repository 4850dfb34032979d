#include "planner/solve/instance/bridge_bytes.h"

/* Returns true if an earlier unit of this job has the same shard. */
static bool shard_seen(const struct instance *in, uint32_t unit)
{
    for (uint32_t u = in->jobs[in->units[unit].job].first_unit; u < unit; u++)
        if (instance_resident(&in->units[u], &in->units[unit])) return true;
    return false;
}

uint64_t bridge_bytes_least(const struct instance *in)
{
    uint64_t bytes = 0;
    if (in->bridge_bytes_per_tick == 0) return 0;
    for (uint32_t u = 0; u < in->unit_count; u++) {
        const struct instance_unit *unit = &in->units[u];
        if (unit->writes) bytes += in->jobs[unit->job].repeat * unit->out_bytes;
        if (!shard_seen(in, u)) bytes += unit->in_bytes;
    }
    return bytes;
}

uint64_t bridge_bytes_owed(const struct instance *in, uint32_t unit, uint32_t position)
{
    const struct instance_job *job = &in->jobs[in->units[unit].job];
    uint32_t length = instance_length(job), end = position + job->unit_count;
    if (end > length) end = length;
    for (uint32_t t = position; t < end; t++) {
        const struct instance_unit *other = &in->units[instance_unit_at(job, t)];
        if (other->shard == in->units[unit].shard) return other->in_bytes;
    }
    return 0;
}
