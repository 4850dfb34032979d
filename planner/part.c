/* See part.h. */
#include "planner/part.h"

#include <stdio.h>

#include "models/try.h"

static enum status take_devices(const struct hardware *all, const struct part *part, double host_bytes,
                                struct hardware *out, struct error *err)
{
    void *memory;
    *out = *all;
    out->arena = (struct arena){0};
    TRY(arena_array(&out->arena, part->device_count, sizeof *out->devices, &memory, err));
    out->devices = memory;
    out->device_count = part->device_count;
    out->host_bytes.value = host_bytes;
    for (uint32_t i = 0; i < part->device_count; i++) out->devices[i] = all->devices[part->devices[i]];
    hardware_note_p2p(out);
    return STATUS_OK;
}

static enum status take_jobs(const struct job *from, const struct part *part, const struct parallel *how,
                             struct job_set *out, struct error *err)
{
    void *memory;
    TRY(arena_array(&out->arena, part->job_count, sizeof *out->jobs, &memory, err));
    out->jobs = memory;
    out->count = part->job_count;
    for (uint32_t i = 0; i < part->job_count; i++) {
        struct job *job = &out->jobs[i];
        *job = from[part->jobs[i]];
        if (how) job->parallel = *how;
        job->parallel.first_device = 0;
        job->devices = NULL;
        job->device_count = 0;
    }
    return STATUS_OK;
}

/* "devices 4, 5, 7"; more than a few end in "...". */
static void devices_text(const struct part *part, char *text, size_t bytes)
{
    enum { SHOWN = 8 };
    size_t used = (size_t)snprintf(text, bytes, part->device_count == 1 ? "device" : "devices");
    for (uint32_t i = 0; i < part->device_count && i < SHOWN; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s %u", i > 0 ? "," : "", part->devices[i]);
    if (part->device_count > SHOWN) snprintf(text + used, bytes - used, ", ...");
}

enum status part_plan(const struct hardware *all, const struct job *from, const struct part *part,
                      const struct parallel *how, double host_bytes, const struct planner_options *options,
                      struct plan *out, struct error *err)
{
    struct hardware hardware = {0};
    struct job_set jobs = {0};
    char text[128];
    enum status status = take_devices(all, part, host_bytes, &hardware, err);
    if (!status) status = take_jobs(from, part, how, &jobs, err);
    if (status) {
        hardware_release(&hardware);
        job_set_release(&jobs);
        return status;
    }
    status = planner_plan(&hardware, &jobs, options, out, err);
    devices_text(part, text, sizeof text);
    return status ? error_add(err, "on %s, counted from 0", text) : STATUS_OK;
}
