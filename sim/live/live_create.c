/* All that a run needs is in one arena, sized by the instance and the machine and not by the run's length. */
#include "sim/live/live_state.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "base/try.h"
#include "models/cost/cost.h"
#include "planner/plan.h"
#include "sim/engine/allocate.h"
#include "sim/network/machine.h"

/* --- checks ---------------------------------------------------------------------------------- */

static enum status check_policy(const struct live *live, struct error *err)
{
    const struct policy *policy = live->options->policy;
    if (!policy->choose && !policy->rank)
        return error_set(err, STATUS_INFEASIBLE, "policy '%s' is a search and cannot decide live", policy->name);
    if (policy->resident)
        return error_set(err, STATUS_INFEASIBLE,
                         "policy '%s' keeps states on devices, which instances know nothing of", policy->name);
    for (uint32_t u = 0; policy->one_device && u < live->in->unit_count; u++)
        if (!instance_fits(live->in, u, live->in->device_class[0]))
            return error_set(err, STATUS_INFEASIBLE,
                             "policy '%s' uses only device 0, which has no room for job '%.80s'",
                             policy->name, live->in->jobs[live->in->units[u].job].name);
    return STATUS_OK;
}

static enum status check_instance(const struct live *live, struct error *err)
{
    const struct instance *in = live->in;
    if (live->hardware->device_count != in->device_count)
        return error_set(err, STATUS_BAD_INPUT,
                         "machine '%s' has %" PRIu32 " devices, but the instance has %" PRIu32,
                         live->hardware->name, live->hardware->device_count, in->device_count);
    for (uint32_t u = 0; u < in->unit_count && !live->options->timed_copies; u++) {
        const struct instance_unit *unit = &in->units[u];
        bool out = unit->in == 0 || unit->in_bytes > 0;
        if (out && (unit->out == 0 || unit->out_bytes > 0)) continue;
        return error_set(err, STATUS_BAD_INPUT,
                         "job '%.80s', unit %u: copies for %" PRId64 " ticks, but says no '%s' (a machine "
                         "with links needs the bytes)", in->jobs[unit->job].name,
                         u - in->jobs[unit->job].first_unit, out ? unit->out : unit->in,
                         out ? "out_bytes" : "in_bytes");
    }
    return STATUS_OK;
}

/* --- devices and links ----------------------------------------------------------------------- */

/* Returns true if computations and copies without contention take equal time on both devices. */
static bool same_kind(const struct live *live, uint32_t a, uint32_t b)
{
    const struct live_device *d = &live->devices[a], *e = &live->devices[b];
    const struct hardware_device *x = &live->hardware->devices[a], *y = &live->hardware->devices[b];
    return live->in->device_class[a] == live->in->device_class[b] && x->type == y->type &&
           !(d->in_rate < e->in_rate) && !(d->in_rate > e->in_rate) && !(d->out_rate < e->out_rate) &&
           !(d->out_rate > e->out_rate) && !(d->in_latency_s < e->in_latency_s) &&
           !(d->in_latency_s > e->in_latency_s) && !(d->out_latency_s < e->out_latency_s) &&
           !(d->out_latency_s > e->out_latency_s);
}

/* Numbers the owners of events. Devices whose copies are one bundle (flow.h) are neighbours in a block of the queue if
 * it has room, with computations and latencies, because they change together. */
static enum status number_owners(struct live *live, bool latency, struct error *err)
{
    enum status status = STATUS_OK;
    uint32_t count = live->in->device_count, each = 1 + latency * live->slot_limit, next = 0, end;
    uint32_t bundles = sim_flows_bundle_count(live->flows);
    size_t most = (size_t)count * (each + 2 + SIM_QUEUE_BLOCK);
    live->owner_events = sim_allocate(&live->arena, most, sizeof(uint32_t), &status, err);
    live->bundle_owners = sim_allocate(&live->arena, bundles, sizeof(uint32_t), &status, err);
    live->latency_owners =
        sim_allocate(&live->arena, latency ? (size_t)count * live->slot_limit : 0, sizeof(uint32_t), &status, err);
    if (status != STATUS_OK) return status;
    for (uint32_t b = 0; b < bundles; b++) live->bundle_owners[b] = UINT32_MAX;
    for (uint32_t first = 0; first < count; first = end) {
        uint32_t bundle = sim_flows_bundle(live->flows, 2 * first * live->slot_limit), used = next % SIM_QUEUE_BLOCK;
        for (end = first + 1; end < count && sim_flows_bundle(live->flows, 2 * end * live->slot_limit) == bundle;)
            end++;
        if (used > 0 && used + (end - first) * each + 2 > SIM_QUEUE_BLOCK) next += SIM_QUEUE_BLOCK - used;
        for (uint32_t d = first; d < end; d++) {
            live->devices[d].owner = next;
            live->owner_events[next++] = LIVE_COMPUTING << LIVE_EVENT_SHIFT | d;
            for (uint32_t p = 2 * d; p < 2 * d + 2; p++) {
                uint32_t b = sim_flows_bundle(live->flows, p * live->slot_limit);
                if (live->bundle_owners[b] != UINT32_MAX) continue; /* it has an owner, from another path */
                live->bundle_owners[b] = next;
                live->owner_events[next++] = LIVE_FLOWS << LIVE_EVENT_SHIFT | b;
            }
            for (uint32_t s = d * live->slot_limit; latency && s < (d + 1) * live->slot_limit; s++) {
                live->latency_owners[s] = next;
                live->owner_events[next++] = (uint32_t)LIVE_LATENCY << LIVE_EVENT_SHIFT | s;
            }
        }
    }
    return sim_queue_create(&live->arena, next, &live->queue, err);
}

static enum status create_flows(struct live *live, struct arena *scratch, struct error *err)
{
    enum status status = STATUS_OK;
    const struct hardware *hw = live->hardware;
    uint32_t paths = hw->device_count * 2, flows = paths * live->slot_limit;
    struct sim_link *links = sim_allocate(scratch, hw->link_count, sizeof *links, &status, err);
    struct sim_path *path = sim_allocate(scratch, paths, sizeof *path, &status, err);
    uint32_t *devices = sim_allocate(scratch, paths, sizeof *devices, &status, err);
    live->flow_paths = sim_allocate(&live->arena, flows, sizeof *live->flow_paths, &status, err);
    if (status == STATUS_OK)
        status = sim_interference_create(&live->arena, hw, &live->interference, err);
    if (status != STATUS_OK) return status;
    sim_machine_links(hw, links);
    sim_machine_paths(hw, live->interference, links, live->slot_limit, path);
    for (uint32_t f = 0; f < flows; f++) live->flow_paths[f] = f / live->slot_limit;
    for (uint32_t p = 0; p < paths; p++) devices[p] = p / 2;
    struct sim_flows_setup setup = {
        .links = links, .link_count = hw->link_count, .paths = path, .path_count = paths};
    TRY(sim_flows_create(&live->arena, &setup, &live->flows, err));
    bool latency = false;
    for (uint32_t d = 0; d < hw->device_count; d++) {
        struct live_device *device = &live->devices[d];
        device->slowed = sim_interference_affects(live->interference, d);
        live->slowed |= device->slowed;
        device->in_rate = path[2 * d].cap_bytes_per_s;
        device->out_rate = path[2 * d + 1].cap_bytes_per_s;
        device->in_latency_s = cost_copy_latency_s(hw, d, COPY_H2D);
        device->out_latency_s = cost_copy_latency_s(hw, d, COPY_D2H);
        latency |= device->in_latency_s > 0 || device->out_latency_s > 0;
    }
    TRY(number_owners(live, latency, err));
    sim_flows_attach(live->flows, live->queue, live->bundle_owners);
    return sim_interference_attach(live->interference, &live->arena, live->flows, live->queue, devices, paths,
                                   err);
}

static enum status create_devices(struct live *live, struct error *err)
{
    enum status status = STATUS_OK;
    const struct instance *in = live->in;
    uint32_t count = in->device_count;
    for (uint32_t c = 0; c < in->class_count; c++)
        if (in->classes[c].slots > live->slot_limit) live->slot_limit = in->classes[c].slots;
    live->device_count = live->options->policy->one_device ? 1 : count;
    live->word_count = count / 64 + 1;
    size_t slots = (size_t)count * live->slot_limit;
    live->devices = sim_allocate_lines(&live->arena, count, sizeof *live->devices, &status, err);
    live->devices_shown = sim_allocate(&live->arena, count, sizeof *live->devices_shown, &status, err);
    live->slots = sim_allocate_lines(&live->arena, slots, sizeof *live->slots, &status, err);
    if (live->options->record_spans)
        live->spanned = sim_allocate(&live->arena, slots, sizeof *live->spanned, &status, err);
    live->loaded = sim_allocate(&live->arena, slots, sizeof *live->loaded, &status, err);
    live->with_free = sim_allocate(&live->arena, live->slot_limit + 1u, sizeof *live->with_free, &status, err);
    for (uint32_t n = 0; n <= live->slot_limit; n++)
        if (status == STATUS_OK)
            live->with_free[n].words = sim_allocate(&live->arena, live->word_count, sizeof(uint64_t), &status, err);
    if (status != STATUS_OK) return status;
    for (uint32_t d = 0; d < count; d++) {
        const struct instance_class *class = &in->classes[in->device_class[d]];
        live->devices[d].computing = LIVE_NO_SLOT;
        live->devices[d].free_bits = UINT64_MAX >> (64 - class->slots);
        live->devices[d].memory_least = class->memory;
        live->devices_shown[d] = (struct policy_device){.memory = class->memory,
                                                        .slots = class->slots,
                                                        .kind = in->device_class[d],
                                                        .job = POLICY_NONE,
                                                        .shard = POLICY_NONE,
                                                        .asks = d < live->device_count};
        if (d >= live->device_count) continue;
        live->with_free[class->slots].words[d / 64] |= UINT64_C(1) << d % 64;
        live->with_free[class->slots].count++;
        live->open_slots += class->slots;
        for (uint32_t s = 0; s < live->slot_limit; s++) live->slots[d * live->slot_limit + s].device = (uint16_t)d;
    }
    return STATUS_OK;
}

/* --- jobs and units -------------------------------------------------------------------------- */

/* Returns the volume of a copy of `bytes`, or of a number of ticks. As in sim.c, it gives the copy its duration without
 * contention; up to rounding, it is the bytes. */
static double volume_on(const struct live *live, uint32_t device, enum copy_direction direction,
                        int64_t ticks, uint64_t bytes)
{
    const struct live_device *d = &live->devices[device];
    double rate = direction == COPY_H2D ? d->in_rate : d->out_rate;
    double alone_s = (double)ticks / live->ticks_per_s;
    if (!live->options->timed_copies)
        alone_s = bytes > 0 ? cost_copy_s(live->hardware, device, direction, bytes) : 0;
    double latency_s = direction == COPY_H2D ? d->in_latency_s : d->out_latency_s;
    if (alone_s <= latency_s) return -alone_s;
    double volume = (alone_s - latency_s) * rate;
    return fabs(volume - (double)bytes) <= 1e-9 * (double)bytes ? (double)bytes : volume;
}

static struct live_unit unit_on(const struct live *live, uint32_t unit, uint32_t device)
{
    const struct instance *in = live->in;
    const struct instance_unit *u = &in->units[unit];
    uint32_t class = in->device_class[device];
    const double *actual_s = live->options->compute_s;
    struct live_unit made = {
        .compute_s = actual_s ? actual_s[(size_t)unit * in->class_count + class]
                              : (double)instance_compute(in, unit, class) / live->ticks_per_s,
        .in_bytes = u->in_bytes,
        .out_bytes = u->writes ? u->out_bytes : 0,
        .memory = u->memory,
        .compute_ticks = (double)instance_compute_min(in, unit),
        .shard = u->shard};
    made.in_volume = volume_on(live, device, COPY_H2D, u->in, u->in_bytes);
    if (u->writes) made.out_volume = volume_on(live, device, COPY_D2H, u->out, u->out_bytes);
    return made;
}

static enum status create_units(struct live *live, struct error *err)
{
    const struct instance *in = live->in;
    struct arena scratch = {0};
    enum status status = STATUS_OK;
    uint32_t *first = sim_allocate(&scratch, in->device_count, sizeof *first, &status, err); /* first device of each
                                                                                                kind */
    for (uint32_t d = 0; d < in->device_count && status == STATUS_OK; d++) {
        uint32_t kind = 0;
        while (kind < live->kind_count && !same_kind(live, first[kind], d)) kind++;
        if (kind == live->kind_count) first[live->kind_count++] = d;
        live->devices[d].kind = (uint16_t)kind;
    }
    size_t count = (size_t)in->unit_count * live->kind_count;
    live->units = sim_allocate_lines(&live->arena, count, sizeof *live->units, &status, err);
    live->costs = sim_allocate(&live->arena, (size_t)in->unit_count * in->class_count, sizeof *live->costs,
                               &status, err);
    for (uint32_t k = 0; k < live->kind_count && status == STATUS_OK; k++)
        for (uint32_t u = 0; u < in->unit_count; u++)
            live->units[(size_t)k * in->unit_count + u] = unit_on(live, u, first[k]);
    for (uint32_t u = 0; u < in->unit_count && status == STATUS_OK; u++)
        for (uint32_t c = 0; c < in->class_count; c++)
            live->costs[(size_t)u * in->class_count + c] =
                (struct policy_cost){(double)instance_compute(in, u, c), (double)in->units[u].in,
                                     (double)in->units[u].out};
    arena_release(&scratch);
    return status;
}

static enum status create_jobs(struct live *live, struct error *err)
{
    const struct instance *in = live->in;
    enum status status = STATUS_OK;
    live->jobs = sim_allocate(&live->arena, in->job_count, sizeof *live->jobs, &status, err);
    live->jobs_shown = sim_allocate_lines(&live->arena, in->job_count, sizeof *live->jobs_shown, &status, err);
    live->ranks = live->options->policy->rank && !live->options->scan;
    if (status == STATUS_OK && live->ranks)
        status = sim_ready_create(&live->arena, in->job_count, &live->ranked, err);
    if (status != STATUS_OK) return status;
    for (uint32_t j = 0; j < in->job_count; j++) {
        const struct instance_job *job = &in->jobs[j];
        double once = 0;
        for (uint32_t u = 0; u < job->unit_count; u++)
            once += (double)instance_compute_min(in, job->first_unit + u);
        live->jobs[j] = (struct live_job){
            .first_unit = job->first_unit, .unit_count = job->unit_count, .repeats = job->repeat};
        live->jobs_shown[j] = (struct policy_job){
            .remaining = once * job->repeat,
            .deadline = job->deadline < INSTANCE_HORIZON_MAX ? (double)job->deadline : HUGE_VAL,
            .weight = job->weight,
            .shard = in->units[job->first_unit].shard,
            .memory = in->units[job->first_unit].memory,
            .next = live->costs + (size_t)job->first_unit * in->class_count,
            .last_device = POLICY_NONE,
            .next_device = POLICY_NONE,
            .admitted = true};
    }
    live->total = in->task_count;
    live->view = (struct policy_view){.jobs = live->jobs_shown,
                                      .devices = live->devices_shown,
                                      .job_count = in->job_count,
                                      .device_count = live->device_count,
                                      .kind_count = in->class_count,
                                      .seed = live->options->seed};
    return STATUS_OK;
}

/* --- the trace ------------------------------------------------------------------------------- */

static enum status name_streams(struct live *live, const char *prefix, struct error *err)
{
    struct trace *trace = live->trace;
    char text[64];
    for (uint32_t d = 0; d < live->in->device_count; d++)
        for (uint32_t s = 0; s < live->slot_limit; s++)
            for (enum live_phase phase = LIVE_IN; phase <= LIVE_OUT; phase++) {
                struct trace_stream *stream = &trace->streams[live_stream(live, d, s, phase)];
                uint32_t kind = phase == LIVE_IN ? STREAM_H2D : phase == LIVE_OUT ? STREAM_D2H : STREAM_COMPUTE;
                if (stream->name) continue; /* the slots of a device share one compute stream */
                int length = snprintf(text, sizeof text, "%s%" PRIu32 " %s", prefix, d, plan_stream_names[kind]);
                if (phase != LIVE_COMPUTE && live->slot_limit > 1)
                    snprintf(text + length, sizeof text - (size_t)length, " %" PRIu32, s);
                stream->device = d;
                stream->kind = kind;
                TRY(arena_string(&trace->arena, text, &stream->name, err));
            }
    return STATUS_OK;
}

static enum status name_places(struct live *live, const char *prefix, struct error *err)
{
    struct trace *trace = live->trace;
    char text[64];
    TRY(arena_string(&trace->arena, "host", &trace->places[0].name, err));
    for (uint32_t d = 0; d < live->in->device_count; d++) {
        struct trace_place *place = &trace->places[1 + d];
        snprintf(text, sizeof text, "%s%" PRIu32, prefix, d);
        place->capacity_bytes = live->in->classes[live->in->device_class[d]].memory;
        TRY(arena_string(&trace->arena, text, &place->name, err));
    }
    return STATUS_OK;
}

static enum status create_trace(struct live *live, struct error *err)
{
    enum status status = STATUS_OK;
    const struct instance *in = live->in;
    struct trace *trace = live->trace;
    uint64_t spans = 0;
    const char *prefix = strcmp(live->hardware->backend, "cuda") == 0 ? "gpu" : "dev";
    if (live->options->record_spans && (!size_mul(live->total, 3, &spans) || spans > TRACE_SPANS_MAX))
        return error_set(err, STATUS_LIMIT, "too many spans (limit is %d)", TRACE_SPANS_MAX);
    trace->source = TRACE_PREDICTED;
    trace->stream_count = in->device_count * (1 + 2 * live->slot_limit);
    trace->place_count = in->device_count + 1;
    trace->job_count = in->job_count;
    trace->streams = sim_allocate(&trace->arena, trace->stream_count, sizeof *trace->streams, &status, err);
    trace->places = sim_allocate(&trace->arena, trace->place_count, sizeof *trace->places, &status, err);
    trace->jobs = sim_allocate(&trace->arena, trace->job_count, sizeof *trace->jobs, &status, err);
    trace->spans = sim_allocate(&trace->arena, spans, sizeof *trace->spans, &status, err);
    live->uses = sim_allocate(&live->arena, trace->stream_count, sizeof *live->uses, &status, err);
    if (status == STATUS_OK) status = arena_string(&trace->arena, live->hardware->name, &trace->hardware, err);
    if (status == STATUS_OK)
        status = arena_string(&trace->arena, live->options->policy->name, &trace->policy, err);
    if (status == STATUS_OK) status = name_streams(live, prefix, err);
    if (status == STATUS_OK) status = name_places(live, prefix, err);
    for (uint32_t j = 0; j < in->job_count && status == STATUS_OK; j++) {
        trace->jobs[j].minibatches = in->jobs[j].repeat;
        status = arena_string(&trace->arena, in->jobs[j].name, &trace->jobs[j].name, err);
    }
    return status;
}

/* --- creation ------------------------------------------------------------------------------ */

enum status live_create(struct live *live, struct error *err)
{
    struct arena scratch = {0};
    live->ticks_per_s = 1 / live->in->tick_s;
    enum status status = check_policy(live, err);
    if (status == STATUS_OK) status = check_instance(live, err);
    if (status == STATUS_OK) status = create_devices(live, err);
    if (status == STATUS_OK) status = create_flows(live, &scratch, err);
    if (status == STATUS_OK) status = create_units(live, err);
    if (status == STATUS_OK) status = create_jobs(live, err);
    if (status == STATUS_OK) status = create_trace(live, err);
    arena_release(&scratch);
    return status;
}

void live_release(struct live *live)
{
    policy_session_end(&live->session);
    arena_release(&live->arena);
}
