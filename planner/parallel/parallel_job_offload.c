#include "planner/parallel/parallel_job_offload.h"

#include "models/hardware/hardware_dilate.h"

enum status parallel_job_offload_check(const struct hardware *hardware, const struct job *job, struct error *err)
{
    if (!parallel_offloads(&job->parallel)) return STATUS_OK;
    if (!hardware_has_cpu(hardware) && hardware_dilation(hardware) <= 1)
        return error_set(err, STATUS_BAD_INPUT,
                         "job '%s' offloads, and machine '%s' does not say how fast its host is (expected "
                         "\"memory_bandwidth\" of the host)",
                         job->name, hardware->name);
    if (job->parallel.storage && !hardware_has_storage(hardware))
        return error_set(err, STATUS_BAD_INPUT,
                         "job '%s' offloads to storage, and machine '%s' has none (--storage-memory and --storage-rate "
                         "give it some)",
                         job->name, hardware->name);
    return STATUS_OK;
}
