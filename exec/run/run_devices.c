/* Opens the devices of a run, links them, and pins the host memory that they copy from. */
#include "exec/run/run_devices.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/text/quantity.h"
#include "base/try.h"
#include "exec/device/device_p2p.h"
#include "exec/group/run_library.h"
#include "exec/run/run_attention.h"
#include "exec/state/run_faults.h"
#include "exec/state/run_peers.h"
#include "models/cost/cost.h"
#include "models/hardware/hardware_dilate.h"

/* --- pinned memory ------------------------------------------------------------------------------ */

/* A copy by the processor is added without overlap. Assumed, not measured. */
static const double PAGEABLE_FACTOR = 3;

/* Returns seconds of all the plan's copies to and from the host, one after the other. */
static double planned_copies_s(const struct plan *plan)
{
    double total_s = 0;
    for (uint32_t s = 0; s < plan->segment_count; s++) {
        const struct plan_segment *const segment = &plan->segments[s];
        double once_s = 0;
        for (uint32_t i = 0; i < segment->task_count; i++) {
            const struct plan_task *const task =
                &plan->tasks[segment->first_task + i];
            const struct plan_unit *const unit = &plan->units[task->unit];
            for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
                if (plan->ops[o].kind == OP_COPY && plan->ops[o].stream != STREAM_P2P)
                    once_s += cost_copy_s(&plan->hardware, task->device,
                                          plan->ops[o].stream == STREAM_H2D ? COPY_H2D : COPY_D2H,
                                          plan->ops[o].bytes);
        }
        total_s += once_s * segment->repeat_count;
    }
    return total_s;
}

void run_devices_pin(struct run *run)
{
    char why[160];
    if (!run->backend->pin || run->host_bytes == 0) return;
    run->pinned = run->backend->pin(run->host, run->host_bytes, why, sizeof why);
    if (run->pinned) return;
    char text[3][QUANTITY_TEXT_BYTES];
    const double planned_s = planned_copies_s(run->plan);
    run_note(run, "%s of host memory could not be pinned (%s): the driver copies it once more, so that "
             "%s of copies will take some %s, and begin only when the host gets to them",
             quantity_text((double)run->host_bytes, DIMENSION_BYTES, text[0]), why,
             quantity_text(planned_s, DIMENSION_SECONDS, text[1]),
             quantity_text(planned_s * PAGEABLE_FACTOR, DIMENSION_SECONDS, text[2]));
}

/* --- devices ----------------------------------------------------------------------------------- */

/* Returns the slowest paced link on a path; 0: none. Streams are paced separately, so copies on one link do not slow
 * each other down. A copy between devices is paced by the fetching device's links. */
static double paced_rate(const struct hardware *hardware, const uint32_t *path, uint32_t count)
{
    double rate = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct hardware_link *const link = &hardware->links[path[i]];
        if (link->paced && (rate == 0 || link->bandwidth.value < rate)) rate = link->bandwidth.value;
    }
    return rate;
}

static bool computes_on_host(const struct plan_op *op)
{
    return op->kind == OP_COMPUTE && op->stream == STREAM_HOST && op->pass != PLAN_BATCH &&
           op->pass != PLAN_KEEP;
}

/* Opens the host's processor: the computing part of a host device, with all cores, or as slow as dilated devices. */
static enum status open_cpu(struct run *run, struct error *err)
{
    const struct plan *const plan = run->plan;
    bool used = false;
    for (uint32_t i = 0; i < plan->op_count && !used; i++)
        used = plan->ops[i].stream == STREAM_CPU || computes_on_host(&plan->ops[i]);
    if (!used) return STATUS_OK;
    const struct device_options options = {
        .index = hardware_cpu(&plan->hardware),
        .threads = hardware_dilation(&plan->hardware) > 1 ? plan->hardware.threads : plan->hardware.host_cores,
        .compute_only = true,
        .dilation = hardware_dilation(&plan->hardware),
        .delay_seed = run->options->delay_seed,
    };
    const enum status status = device_open_host(&options, &run->cpu, err);
    if (status != STATUS_OK) return error_add(err, "the host's processor");
    for (uint32_t d = 0; d < plan->hardware.device_count; d++)
        run->streams[plan_stream(plan, d, STREAM_CPU)] = device_stream(run->cpu, STREAM_COMPUTE);
    run->gather = *device_kernels(run->cpu);
    run->gather.threads = 1;
    run->gather_half = *run->gather.half;
    run->gather_half.threads = 1;
    run->gather.half = &run->gather_half;
    return STATUS_OK;
}

/* Back ends need not have the kernels of every family. */
static enum status check_kernels(const struct plan *plan, const struct kernels *kernels,
                                 struct error *err)
{
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const struct job *const job = &plan->jobs.jobs[j];
        const char *const missing = unit_missing_kernel(kernels, job);
        if (missing)
            return error_set(err, STATUS_BAD_INPUT,
                             "job '%s' cannot be trained here: networks of family '%s' take the "
                             "kernel '%s', which the back end '%s' does not have",
                             job->name, network_family_names[job->network.family], missing,
                             kernels->name);
    }
    return STATUS_OK;
}

/* Finds each job's devices: all with live dispatch. */
static enum status find_users(struct run *run, struct error *err)
{
    const struct plan *const plan = run->plan;
    const uint32_t devices = plan->hardware.device_count;
    TRY(ARENA_NEW(&run->arena, devices, run->device_noted, err));
    TRY(ARENA_NEW(&run->arena, (size_t)plan->jobs.count * devices, run->uses_device, err));
    const uint32_t count = run_is_live(run->options) ? plan->task_count : plan_first_choice(plan);
    for (uint32_t i = 0; i < count; i++) {
        const struct plan_task *const task = &plan->tasks[i];
        bool *const uses = &run->uses_device[(size_t)plan->units[task->unit].job * devices];
        for (uint32_t m = 0; m < plan_task_members(plan, task); m++)
            uses[plan_task_device(plan, task, m)] = true;
    }
    return STATUS_OK;
}

/* Returns true where devices have streams for copies from each other. */
static bool copies_between_devices(const struct plan *plan)
{
    return plan_device_streams(plan) > STREAM_P2P;
}

static enum status link_pair(struct run *run, uint32_t to, uint32_t from, struct error *err)
{
    enum p2p_way way;
    char why[P2P_WHY_BYTES];
    TRY(device_link(run->devices[to], run->devices[from], &way, why, err));
    if (way == P2P_STAGED)
        run_note(run, "direct copies from device %" PRIu32 " to device %" PRIu32 " do not work (%s): "
                 "they go through host memory, which takes longer than planned",
                 from, to, why);
    return STATUS_OK;
}

static enum status link_devices(struct run *run, struct error *err)
{
    const struct plan *const plan = run->plan;
    const size_t devices = plan->hardware.device_count;
    if (!copies_between_devices(plan)) return STATUS_OK;
    bool *const tried = alloc_zeroed(devices * devices, sizeof *tried);
    if (!tried) return error_memory(err, "the links between devices", devices * devices);
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < plan->task_count && status == STATUS_OK; i++) {
        const struct plan_task *const task = &plan->tasks[i];
        const uint32_t members = task->peer == PLAN_NONE ? 0 : plan_task_members(plan, task);
        for (uint32_t m = 0; m < members && status == STATUS_OK; m++) {
            const uint32_t to = plan_task_device(plan, task, m), from = plan_task_peer(plan, task, m);
            if (!tried[to * devices + from] && run_has_device(run, to) && run_has_device(run, from))
                status = link_pair(run, to, from, err);
            tried[to * devices + from] = true;
        }
    }
    free(tried);
    return status;
}

/* Opens what represents another process's device: streams that keep the order of its work. */
static enum status open_stand_in(struct run *run, uint32_t d, struct error *err)
{
    const struct device_options options = {.index = d,
                                           .threads = 1,
                                           .stands_in = true,
                                           .p2p = copies_between_devices(run->plan),
                                           .poison = run->options->poison,
                                           .delay_seed = run->options->delay_seed};
    const enum status status = device_open_host(&options, &run->devices[d], err);
    if (status != STATUS_OK) return error_add(err, "device %" PRIu32 " of another rank", d);
    for (uint32_t kind = STREAM_COMPUTE; kind < plan_device_streams(run->plan); kind++)
        run->streams[plan_stream(run->plan, d, kind)] =
            device_stream(run->devices[d], kind == STREAM_P2P ? STREAM_P2P : STREAM_COMPUTE);
    return STATUS_OK;
}

enum status run_devices_open(struct run *run, struct error *err)
{
    const struct plan *const plan = run->plan;
    const uint32_t device_count = plan->hardware.device_count;
    TRY(ARENA_NEW(&run->arena, device_count, run->devices, err));
    TRY(ARENA_NEW(&run->arena, plan_stream_count(plan), run->streams, err));
    TRY(ARENA_NEW(&run->arena, (size_t)plan->slot_count * device_count, run->slot_uses, err));
    enum status status = find_users(run, err);
    if (status != STATUS_OK) return status;
    for (uint32_t d = 0; d < device_count; d++) {
        if (!run_has_device(run, d)) {
            TRY(open_stand_in(run, d, err));
            continue;
        }
        const struct hardware_device *const about = &plan->hardware.devices[d];
        const double rate = paced_rate(&plan->hardware, about->path, about->path_count);
        const struct device_options options = {
            .index = d,
            .arena_bytes = plan_device_bytes(plan, d),
            .threads = run->threads,
            .h2d_bytes_per_s = rate,
            .d2h_bytes_per_s = rate,
            .p2p = copies_between_devices(plan),
            .gangs = plan->gang_count > 0,
            .p2p_bytes_per_s = /* without direct links, through host memory */
                about->network_count == 0
                    ? rate
                    : paced_rate(&plan->hardware, about->networks[0].path, about->networks[0].path_count),
            .dilation = hardware_dilation(&plan->hardware),
            .poison = run->options->poison,
            .delay_seed = run->options->delay_seed,
            .tf32 = run->options->tf32,
            .pageable = run->backend->pin && !run->pinned,
        };
        status = run->backend->open(&options, &run->devices[d], err);
        if (status == STATUS_OK) status = check_kernels(plan, device_kernels(run->devices[d]), err);
        if (status != STATUS_OK) return error_add(err, "device %" PRIu32, d);
        if (run->peers) run->peers->p2p_rates[d] = options.p2p_bytes_per_s;
        run_prepare_attention(run, d);
        for (uint32_t kind = STREAM_COMPUTE; kind < plan_device_streams(plan); kind++)
            run->streams[plan_stream(plan, d, kind)] = device_stream(run->devices[d], kind);
    }
    for (uint32_t d = 0; d < device_count; d++) /* of all nodes */
        run->streams[plan_stream(plan, d, STREAM_HOST)] = device_stream(run->devices[0], STREAM_HOST);
    TRY(link_devices(run, err));
    TRY(run_library_open(run, err));
    return open_cpu(run, err);
}
