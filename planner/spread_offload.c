/* See spread_offload.h. */
#include "planner/spread_offload.h"

#include <inttypes.h>

/* How many of a stage's devices are on the node. */
static uint32_t count_on(const struct hardware *hardware, const struct parallel *p, uint32_t stage, uint32_t node)
{
    uint32_t size = p->tensor * p->data, first = p->first_device + stage * size, count = 0;
    for (uint32_t i = 0; i < size; i++) count += (first + i) / hardware->node_devices == node;
    return count;
}

static enum status check_nodes(const struct hardware *hardware, const struct job *job, struct error *err)
{
    const struct parallel *p = &job->parallel;
    for (uint32_t stage = 0; stage < p->pipeline; stage++)
        for (uint32_t node = 0; node < hardware->host_nodes; node++) {
            uint32_t here = count_on(hardware, p, stage, node);
            if (here * hardware->host_nodes == p->tensor * p->data) continue;
            return error_set(err, STATUS_BAD_INPUT,
                             "job '%s' offloads, and stage %" PRIu32 " has %" PRIu32 " of its %" PRIu32
                             " devices on node %" PRIu32 " of machine '%s' (expected as many on each of its %" PRIu32
                             " nodes)",
                             job->name, stage, here, p->tensor * p->data, node, hardware->name, hardware->host_nodes);
        }
    return STATUS_OK;
}

enum status spread_offload_check(const struct hardware *hardware, const struct job *job, struct error *err)
{
    if (!parallel_offloads(&job->parallel)) return STATUS_OK;
    if (!hardware_has_cpu(hardware))
        return error_set(err, STATUS_BAD_INPUT,
                         "job '%s' offloads, and machine '%s' does not say how fast its host is (expected "
                         "\"memory_bandwidth\" of the host)",
                         job->name, hardware->name);
    if (job->parallel.storage && !hardware_has_storage(hardware))
        return error_set(err, STATUS_BAD_INPUT,
                         "job '%s' offloads to storage, and machine '%s' has none (--storage-memory and --storage-rate "
                         "give it some)",
                         job->name, hardware->name);
    return hardware->host_nodes > 1 ? check_nodes(hardware, job, err) : STATUS_OK;
}
