/* See part.h. */
#include "planner/strategy/part.h"

#include <math.h>
#include <stdio.h>

#include "base/try.h"
#include "planner/strategy/direct.h"

enum status part_hosts_begin(struct arena *arena, const struct hardware *hardware, struct part_hosts *out,
                             struct error *err)
{
    uint32_t hosts = hardware_host_count(hardware);
    *out = (struct part_hosts){.hardware = hardware};
    TRY(ARENA_NEW(arena, hosts, out->left_bytes, err));
    TRY(ARENA_NEW(arena, hosts, out->uses, err));
    for (uint32_t h = 0; h < hosts; h++) out->left_bytes[h] = hardware_of_host(hardware, hardware->host_bytes.value);
    return STATUS_OK;
}

double part_hosts_left(const struct part_hosts *hosts, const struct part *part)
{
    double least = HUGE_VAL;
    for (uint32_t i = 0; i < part->device_count; i++)
        least = fmin(least, hosts->left_bytes[hosts->hardware->devices[part->devices[i]].host]);
    return least * hardware_host_count(hosts->hardware);
}

enum status part_hosts_take(struct part_hosts *hosts, const struct plan *plan, struct error *err)
{
    TRY(plan_host_uses(plan, hosts->uses, err));
    for (uint32_t h = 0; h < hardware_host_count(hosts->hardware); h++)
        hosts->left_bytes[h] -= (double)hosts->uses[h].memory_bytes;
    return STATUS_OK;
}

static enum status take_devices(const struct hardware *all, const struct part *part, double host_bytes,
                                struct hardware *out, struct error *err)
{
    *out = *all;
    out->arena = (struct arena){0};
    TRY(ARENA_NEW(&out->arena, part->device_count, out->devices, err));
    out->device_count = part->device_count;
    out->host_bytes.value = host_bytes;
    for (uint32_t i = 0; i < part->device_count; i++) out->devices[i] = all->devices[part->devices[i]];
    hardware_note_p2p(out);
    return STATUS_OK;
}

static enum status take_jobs(const struct job *from, const struct part *part, const struct parallel *how,
                             struct job_set *out, struct error *err)
{
    TRY(ARENA_NEW(&out->arena, part->job_count, out->jobs, err));
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
    status = direct_plan(&hardware, &jobs, options, out, err);
    devices_text(part, text, sizeof text);
    return status ? error_add(err, "on %s, counted from 0", text) : STATUS_OK;
}
