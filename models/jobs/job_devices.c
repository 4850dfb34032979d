/* The planner checks that the devices exist. */
#include "models/jobs/job_devices.h"

#include <inttypes.h>

#include "base/json/json_out.h"
#include "base/try.h"
#include "models/hardware/hardware.h"

static enum status read_numbers(const struct json_input *in, const json_t *array, uint32_t *devices,
                                struct error *err)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        uint64_t device;
        TRY(json_item_u64(in, array, i, 0, HARDWARE_DEVICES_MAX - 1, &device, err));
        devices[i] = (uint32_t)device;
        for (size_t k = 0; k < i; k++)
            if (devices[k] == device) return json_fail_index(in, array, i, err, "device %" PRIu64 " twice", device);
    }
    return STATUS_OK;
}

enum status job_devices_read(const struct json_input *in, const json_t *owner, const json_t *array,
                             struct arena *arena, struct job *job, struct error *err)
{
    const struct parallel *p = &job->parallel;
    size_t count = json_array_size(array);
    uint32_t *devices;
    if (!array) return STATUS_OK;
    if (count == 0 || count > HARDWARE_DEVICES_MAX)
        return json_fail_key(in, owner, "devices", err, "%zu devices (expected 1 to %d)", count, HARDWARE_DEVICES_MAX);
    if (parallel_is_set(p) && count != parallel_devices(p))
        return json_fail_key(in, owner, "devices", err, "%zu device%s for a job that runs on %" PRIu64, count,
                             count == 1 ? "" : "s", parallel_devices(p));
    if (p->first_device > 0)
        return json_fail_key(in, owner, "devices", err, "'devices' and a 'first_device' (expected one of them)");
    TRY(ARENA_NEW(arena, count, devices, err));
    TRY(read_numbers(in, array, devices, err));
    job->devices = devices;
    job->device_count = (uint32_t)count;
    return STATUS_OK;
}

void job_devices_write(const struct job *job, struct json_out *out)
{
    if (!job->devices) return;
    json_out_array_begin(out, "devices", true);
    for (uint32_t i = 0; i < job->device_count; i++) json_out_u64(out, NULL, job->devices[i]);
    json_out_array_end(out);
}
