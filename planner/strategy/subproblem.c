#include "planner/strategy/subproblem.h"

#include <math.h>
#include <stdio.h>

#include "base/extreme.h"
#include "base/size.h"
#include "base/text/quantity.h"
#include "base/try.h"
#include "planner/strategy/direct.h"

struct subproblem_run subproblem_run_of(const struct hardware *hardware, const uint32_t *devices, uint32_t count)
{
    struct subproblem_run longest = {0}, run = {0};
    for (uint32_t i = 0; i < count; i++) {
        if (hardware->devices[devices[i]].host != hardware->devices[devices[0]].host) return (struct subproblem_run){0};
        if (run.count == 0 || devices[i] != run.first + run.count) run = (struct subproblem_run){.first = devices[i]};
        run.count++;
        if (run.count > longest.count) longest = run;
    }
    return longest;
}

uint64_t subproblem_run_enlarge(struct subproblem_run run, uint64_t bytes, uint64_t *ranges)
{
    uint64_t have = 0, added = 0;
    for (uint32_t d = run.first; d < run.first + run.count; d++) have += ranges[d];
    const uint64_t lack = bytes > have ? bytes - have : 0;
    for (uint32_t i = 0; i < run.count; i++) { /* equal parts */
        const uint64_t part = size_align((lack - min_u64(lack, added) + run.count - i - 1) / (run.count - i),
                                         PLAN_HOST_ALIGNMENT);
        ranges[run.first + i] += part;
        added += part;
    }
    return added;
}

enum status subproblem_hosts_begin(struct arena *arena, const struct hardware *hardware, struct subproblem_hosts *out,
                                   struct error *err)
{
    uint32_t hosts = hardware_host_count(hardware);
    *out = (struct subproblem_hosts){.hardware = hardware};
    TRY(ARENA_NEW(arena, hosts, out->left_bytes, err));
    TRY(ARENA_NEW(arena, hosts, out->uses, err));
    TRY(ARENA_NEW(arena, hardware->device_count, out->turns_bytes, err));
    for (uint32_t h = 0; h < hosts; h++) out->left_bytes[h] = hardware_of_host(hardware, hardware->host_bytes.value);
    return STATUS_OK;
}

double subproblem_hosts_left(const struct subproblem_hosts *hosts, const struct subproblem *subproblem, bool turns)
{
    double least = HUGE_VAL;
    for (uint32_t i = 0; i < subproblem->device_count; i++)
        least = fmin(least, hosts->left_bytes[hosts->hardware->devices[subproblem->devices[i]].host]);
    const struct subproblem_run run = subproblem_run_of(hosts->hardware, subproblem->devices, subproblem->device_count);
    for (uint32_t d = run.first; turns && d < run.first + run.count; d++) least += (double)hosts->turns_bytes[d];
    return least * hardware_host_count(hosts->hardware);
}

enum status subproblem_hosts_reserve(struct subproblem_hosts *hosts, const struct subproblem *subproblem,
                                     const struct plan *plan, struct error *err)
{
    TRY(plan_host_uses(plan, hosts->uses, err));
    const struct subproblem_run run = subproblem_run_of(hosts->hardware, subproblem->devices, subproblem->device_count);
    if (run.count > 0) {
        const uint64_t ranges = plan_ranges_bytes(plan),
                       added = subproblem_run_enlarge(run, ranges, hosts->turns_bytes);
        hosts->left_bytes[hosts->hardware->devices[run.first].host] += (double)ranges - (double)added;
    }
    for (uint32_t h = 0; h < hardware_host_count(hosts->hardware); h++)
        hosts->left_bytes[h] -= (double)hosts->uses[h].memory_bytes;
    return STATUS_OK;
}

static enum status copy_devices(const struct hardware *all, const struct subproblem *subproblem, double host_bytes,
                                struct hardware *out, struct error *err)
{
    *out = *all;
    out->arena = (struct arena){0};
    TRY(ARENA_NEW(&out->arena, subproblem->device_count, out->devices, err));
    out->device_count = subproblem->device_count;
    out->host_bytes.value = host_bytes;
    for (uint32_t i = 0; i < subproblem->device_count; i++) out->devices[i] = all->devices[subproblem->devices[i]];
    hardware_note_p2p(out);
    return STATUS_OK;
}

static enum status copy_jobs(const struct job *from, const struct subproblem *subproblem, const struct parallel *how,
                             struct job_set *out, struct error *err)
{
    TRY(ARENA_NEW(&out->arena, subproblem->job_count, out->jobs, err));
    out->count = subproblem->job_count;
    for (uint32_t i = 0; i < subproblem->job_count; i++) {
        struct job *job = &out->jobs[i];
        *job = from[subproblem->jobs[i]];
        if (how) job->parallel = *how;
        job->parallel.first_device = 0;
        job->devices = NULL;
        job->device_count = 0;
    }
    return STATUS_OK;
}

/* Writes "devices 4, 5, 7", with "..." after a few. */
static void devices_text(const struct subproblem *subproblem, char *text, size_t bytes)
{
    enum { SHOWN = 8 };
    size_t used = (size_t)snprintf(text, bytes, subproblem->device_count == 1 ? "device" : "devices");
    for (uint32_t i = 0; i < subproblem->device_count && i < SHOWN; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s %u", i > 0 ? "," : "", subproblem->devices[i]);
    if (subproblem->device_count > SHOWN) snprintf(text + used, bytes - used, ", ...");
}

/* Returns true if the subproblem numbers its devices as the whole machine does. */
static bool numbers_alike(const struct subproblem *subproblem)
{
    uint32_t d = 0;
    while (d < subproblem->device_count && subproblem->devices[d] == d) d++;
    return d == subproblem->device_count;
}

enum status subproblem_plan(const struct hardware *all, const struct job *from, const struct subproblem *subproblem,
                            const struct parallel *how, double host_bytes, const struct planner_options *options,
                            struct plan *out, struct error *err)
{
    struct hardware hardware = {0};
    struct job_set jobs = {0};
    char text[128], left[QUANTITY_TEXT_BYTES];
    enum status status = copy_devices(all, subproblem, host_bytes, &hardware, err);
    if (!status) status = copy_jobs(from, subproblem, how, &jobs, err);
    if (status) {
        hardware_release(&hardware);
        job_set_release(&jobs);
        return status;
    }
    status = direct_plan(&hardware, &jobs, options, out, err);
    devices_text(subproblem, text, sizeof text);
    if (!status) return STATUS_OK;
    if (status == STATUS_INFEASIBLE && host_bytes < all->host_bytes.value)
        return error_add(err, "on %s, counted from 0, where other jobs leave %s of host memory", text,
                         quantity_text(host_bytes / hardware_host_count(all), DIMENSION_BYTES, left));
    return numbers_alike(subproblem) ? status : error_add(err, "on %s, counted from 0", text);
}
