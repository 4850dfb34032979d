/*
 * Plans have two minibatches, which use every buffer of a run.
 *
 * The plan takes machine and job over, so each gets views that borrow strings, links and profiles.
 */
#include "planner/capacity/feasibility.h"

#include <math.h>
#include <stdio.h>

#include "base/extreme.h"
#include "base/try.h"
#include "models/hardware/hardware.h"
#include "models/job/job.h"
#include "planner/plan_hosts.h"

enum { MINIBATCHES = 2 };

/* More than any need, and small enough for sums over all nodes. */
static const uint64_t unlimited_bytes = UINT64_C(1) << 60;
static const double unlimited_in_all = 0x1p62;
static const uint64_t hardly_bytes = 256;

/* --- views ------------------------------------------------------------------------------------ */

static enum status view_machine(const struct hardware *from, uint32_t devices, struct feasibility_memory memory,
                                struct hardware *out, struct error *err)
{
    struct hardware view = *from;
    view.arena = (struct arena){0};
    TRY(ARENA_NEW(&view.arena, devices, view.devices, err));
    view.device_count = devices;
    for (uint32_t d = 0; d < devices; d++) {
        view.devices[d] = from->devices[d];
        view.devices[d].memory_bytes = memory.device_bytes;
    }
    uint32_t hosts = hardware_host_count(&view);
    view.host_bytes.value = fmin(hosts * (double)memory.host_bytes, unlimited_in_all);
    if (hardware_has_storage(&view))
        view.storage.capacity_bytes.value = fmin(hosts * (double)memory.storage_bytes, unlimited_in_all);
    hardware_note_p2p(&view);
    *out = view;
    return STATUS_OK;
}

static enum status view_job(const struct job *from, const struct parallel *parallel, struct job_set *out,
                            struct error *err)
{
    struct job_set set = {.count = 1};
    TRY(ARENA_NEW(&set.arena, 1, set.jobs, err));
    set.jobs[0] = *from;
    set.jobs[0].parallel = *parallel;
    set.jobs[0].minibatches = MINIBATCHES;
    *out = set;
    return STATUS_OK;
}

/* --- plans ------------------------------------------------------------------------------------ */

/* Plans a way, with two minibatches and this much memory. The caller releases the plan, also after an error. Errors: as
 * planner_plan(); `missing_bytes` as in planner.h. */
static enum status fit_plan(const struct hardware *hardware, const struct job *job, const struct feasibility_way *way,
                            struct feasibility_memory memory, uint64_t *missing_bytes, struct plan *out,
                            struct error *err)
{
    struct hardware machine = {0};
    struct job_set jobs = {0};
    struct planner_options options = {.policy = way->policy,
                                      .activations = way->activations,
                                      .optimizer = way->optimizer,
                                      .storage = way->storage,
                                      .last = way->last,
                                      .missing_bytes = missing_bytes};
    TRY(view_machine(hardware, way->devices, memory, &machine, err));
    enum status status = view_job(job, &way->parallel, &jobs, err);
    if (status) {
        hardware_release(&machine);
        return status;
    }
    return planner_plan(&machine, &jobs, &options, out, err);
}

uint64_t feasibility_usable_bytes(const struct hardware *hardware, const struct feasibility_way *way)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t d = 0; d < way->devices; d++)
        if (hardware->devices[d].memory_bytes < least) least = hardware->devices[d].memory_bytes;
    return least;
}

struct feasibility_memory feasibility_memory_of(const struct hardware *hardware, const struct feasibility_way *way)
{
    return (struct feasibility_memory){.device_bytes = feasibility_usable_bytes(hardware, way),
                                       .host_bytes = hardware_host_bytes(hardware),
                                       .storage_bytes = hardware_storage_bytes(hardware)};
}

/* Finds the fullest device. If all devices do the same, only the first devices of gangs are simulated. */
static enum status fullest_device(const struct plan *plan, struct feasibility *out, struct error *err)
{
    uint32_t fullest = 0, count = plan->gang_count > 0 ? plan->gang_count : plan->hardware.device_count;
    out->device_bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t device = plan->gang_count > 0 ? plan->gang_devices[plan->gangs[i].first] : i;
        uint64_t bytes = plan_device_bytes(plan, device);
        if (bytes <= out->device_bytes) continue;
        out->device_bytes = bytes;
        fullest = device;
    }
    return memory_breakdown_of_device(plan, fullest, &out->device, err);
}

static enum status measure_plan(const struct plan *plan, struct feasibility *out, struct error *err)
{
    char text[PLAN_MOMENT_BYTES];
    TRY(fullest_device(plan, out, err));
    snprintf(out->moment, sizeof out->moment, "%s", memory_breakdown_moment(plan, &out->device, text));
    out->host = memory_breakdown_of_host(plan);
    const struct plan_host_use host = plan_host_fullest(plan);
    out->host_bytes = host.memory_bytes;
    out->stored_bytes = host.stored_bytes;
    return STATUS_OK;
}

/* *made is false, with the reason, if the way does not fit or no memory would help. */
static enum status try_plan(const struct hardware *hardware, const struct job *job, const struct feasibility_way *way,
                            struct feasibility_memory memory, uint64_t *missing_bytes, bool *made,
                            struct feasibility *out, struct error *err)
{
    struct plan plan = {0};
    struct error why = {0};
    enum status status = fit_plan(hardware, job, way, memory, missing_bytes, &plan, &why);
    *made = status == STATUS_OK;
    if (*made) status = measure_plan(&plan, out, err);
    else snprintf(out->reason, sizeof out->reason, "%.*s", (int)sizeof out->reason - 1, why.text);
    plan_release(&plan);
    if (status == STATUS_BAD_INPUT) out->verdict = FEASIBILITY_IMPOSSIBLE;
    else if (status != STATUS_OK && status != STATUS_INFEASIBLE) return error_set(err, status, "%s", why.text);
    return STATUS_OK;
}

static enum feasibility_verdict verdict(const struct feasibility *fit, const struct feasibility_memory *have)
{
    if (fit->least_bytes > have->device_bytes) return FEASIBILITY_DEVICE;
    if (fit->host_bytes > have->host_bytes) return FEASIBILITY_HOST;
    return fit->stored_bytes > have->storage_bytes ? FEASIBILITY_STORAGE : FEASIBILITY_YES;
}

/* --- ways without a choice of memory ---------------------------------------------------------- */

/* Corrects the least memory: a plan of resident shards with `bytes` may need a little more, because areas for
 * boundaries are reserved even when unused. */
static enum status least_alone(const struct hardware *hardware, const struct job *job,
                               const struct feasibility_way *way, struct feasibility *out, struct error *err)
{
    uint64_t missing = 0;
    struct plan plan = {0};
    struct error why = {0};
    const struct feasibility_memory just = {out->device_bytes, unlimited_bytes, unlimited_bytes};
    enum status status = fit_plan(hardware, job, way, just, &missing, &plan, &why);
    plan_release(&plan);
    if (status == STATUS_INFEASIBLE) out->least_bytes += missing;
    else if (status) return error_set(err, status, "%s", why.text);
    return STATUS_OK;
}

static enum status find_resident(const struct hardware *hardware, const struct job *job,
                                 const struct feasibility_way *way, struct feasibility *out, struct error *err)
{
    const struct feasibility_memory have = feasibility_memory_of(hardware, way),
                            all = {unlimited_bytes, unlimited_bytes, unlimited_bytes};
    bool made;
    TRY(try_plan(hardware, job, way, all, NULL, &made, out, err));
    out->least_bytes = out->device_bytes;
    if (made && way->policy) TRY(least_alone(hardware, job, way, out, err));
    out->verdict = made ? verdict(out, &have) : FEASIBILITY_IMPOSSIBLE;
    return STATUS_OK;
}

/* Stages are as even as the devices allow, so other memory changes them. */
static enum status find_stages(const struct hardware *hardware, const struct job *job,
                               const struct feasibility_way *way, struct feasibility *out, struct error *err)
{
    const struct feasibility_memory have = feasibility_memory_of(hardware, way),
                            these = {have.device_bytes, unlimited_bytes, unlimited_bytes},
                            all = {unlimited_bytes, unlimited_bytes, unlimited_bytes};
    uint64_t missing = 0;
    bool fits, made = true;
    TRY(try_plan(hardware, job, way, these, &missing, &fits, out, err));
    if (!fits) TRY(try_plan(hardware, job, way, all, NULL, &made, out, err));
    out->least_bytes = fits ? out->device_bytes : have.device_bytes + missing;
    out->verdict = made ? verdict(out, &have) : FEASIBILITY_IMPOSSIBLE;
    return STATUS_OK;
}

/* --- ways that take what there is ------------------------------------------------------------- */

/* Returns the least memory of a device, from the shortage of a nearly empty one. */
static enum status least_spilled(const struct hardware *hardware, const struct job *job,
                                 const struct feasibility_way *way, struct feasibility *out, struct error *err)
{
    bool made;
    uint64_t missing = 0;
    const struct feasibility_memory hardly = {hardly_bytes, unlimited_bytes, unlimited_bytes};
    TRY(try_plan(hardware, job, way, hardly, &missing, &made, out, err));
    out->least_bytes = hardly_bytes + missing;
    return STATUS_OK;
}

static enum status find_spilled(const struct hardware *hardware, const struct job *job,
                                const struct feasibility_way *way, struct feasibility *out, struct error *err)
{
    const struct feasibility_memory have = feasibility_memory_of(hardware, way);
    struct feasibility_memory enough = {.host_bytes = unlimited_bytes, .storage_bytes = unlimited_bytes};
    bool made = false;
    TRY(least_spilled(hardware, job, way, out, err));
    if (out->verdict == FEASIBILITY_IMPOSSIBLE) return STATUS_OK;
    enough.device_bytes = max_u64(have.device_bytes, out->least_bytes);
    if (out->least_bytes <= have.device_bytes) TRY(try_plan(hardware, job, way, have, NULL, &made, out, err));
    if (!made) TRY(try_plan(hardware, job, way, enough, NULL, &made, out, err));
    out->verdict = made ? verdict(out, &have) : FEASIBILITY_IMPOSSIBLE;
    return STATUS_OK;
}

enum status feasibility_find(const struct hardware *hardware, const struct job *job, const struct feasibility_way *way,
                             struct feasibility *out, struct error *err)
{
    struct feasibility fit = {0};
    bool stages = way->policy && way->devices > 1;
    TRY((stages                       ? find_stages
         : feasibility_way_stays(way) ? find_resident
                                      : find_spilled)(hardware, job, way, &fit, err));
    if (fit.verdict != FEASIBILITY_IMPOSSIBLE) fit.reason[0] = '\0';
    *out = fit;
    return STATUS_OK;
}
