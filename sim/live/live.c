/*
 * A unit takes a slot, is copied in, waits to compute, is copied out, and frees the slot.
 *
 *     slot 0   [ in ][ compute ][ out ][ in ][ comp ...
 *     slot 1   [  in  ]         [ compute  ][ out ][ ...        both copies in share the links
 *
 * As in sim.c, the queue holds an event per bundle of flows, computing device and copy in its latency; a unit takes
 * three events on any machine. Handling one:
 *
 *     a copy in has ended     the device computes the unit, or queues it
 *     a computation has       the copy out begins, and the next loaded unit's computation
 *     a copy out has          the slot is free and the job ready: the policy is asked, and if it chooses,
 *                             the next copy in begins at once
 *
 * Then rates are settled, once. No array depends on the number of units or minibatches.
 *
 * Cost of an activity (a copy or a computation; bench_engine.c, whole runs): 68 to 105 ns with 8 devices, 89 to 131
 * with 64, 135 to 216 with 512 and 2048 jobs, on an EPYC. An additional activity takes 850, 970 and 1050 instructions.
 * The growth comes from misses of a 32 KB cache: 0.3, 8 and 20 (cachegrind). An event's data lies in about twenty cache
 * lines, with many devices all evicted since the last use. Hence slots, devices, paths, bottlenecks and places have
 * records of one cache line. With 512 devices part of the time makes the tables of units: 187 ns with 2 minibatches
 * become 148 with 16. In a 1 MB cache a unit then misses about twice, when its job becomes ready and when it is chosen;
 * both are prefetched.
 *
 * Prefetching the following event's data, found by replaying the queue without the current one, was rejected: it costs
 * more than it saves, with 64 devices and with 512. Ending the way up in the queue where nothing changes, and one loop
 * less for a bottleneck's first end, gave 2 to 4 % fewer instructions, and no time.
 */
#include "sim/live/live.h"

#include <string.h>

#include "base/process/clock.h"
#include "base/try.h"
#include "planner/plan.h"
#include "sim/engine/allocate.h"
#include "sim/limit.h"
#include "sim/live/live_state.h"

/* The order of events at equal times. */
enum event_kind { EVENT_END, EVENT_FLOW };

enum { PROGRESS_UNITS = 1 << 16 };

/* Handles an event in one inlined function: calls and returns were a twentieth of its instructions. */
#define HOT inline __attribute__((always_inline))

static inline uint64_t event_order(enum event_kind kind, const struct live_slot *slot)
{
    return sim_order(kind, slot->number * 3 + slot->phase);
}

/* --- activities ------------------------------------------------------------------------------ */

static HOT void begin_activity(struct live *live, struct live_slot *slot, enum live_phase phase)
{
    slot->phase = (uint8_t)phase;
    slot->began_s = live->now_s;
    if (live->spanned) live->spanned[slot - live->slots].span = live->operations;
    live->operations++;
}

static void record_span(struct live *live, uint32_t number, uint32_t stream)
{
    const struct live_slot *slot = &live->slots[number];
    bool copies = slot->phase != LIVE_COMPUTE;
    live->trace->spans[live->spans++] = (struct trace_span){
        .start_s = slot->began_s,
        .end_s = live->now_s,
        .number = live->spanned[number].span,
        .bytes = !copies ? 0 : slot->phase == LIVE_IN ? slot->unit->in_bytes : slot->out_bytes,
        .minibatch = live->spanned[number].minibatch,
        .stream = stream,
        .job = slot->job,
        .shard = slot->unit->shard,
        .kind = copies ? OP_COPY : OP_COMPUTE,
        .op_index = slot->phase,
    };
}

static HOT void end_activity(struct live *live, uint32_t number)
{
    const struct live_slot *slot = &live->slots[number];
    uint32_t stream = live_stream(live, slot->device, number - slot->device * live->slot_limit, slot->phase);
    live->uses[stream].busy_s += live->now_s - slot->began_s;
    live->uses[stream].operations++;
    if (live->options->record_spans) record_span(live, number, stream);
}

static void copies_changed(struct live *live, uint32_t device)
{
    live->flows_changed = true;
    if (!live->slowed || !live->devices[device].slowed) return;
    sim_interference_copies_changed(live->interference, device);
    live->slowing_changed = true;
}

static HOT void begin_flow(struct live *live, uint32_t number)
{
    const struct live_slot *slot = &live->slots[number];
    bool out = slot->phase == LIVE_OUT;
    double volume = out ? slot->out_volume : slot->unit->in_volume;
    if (volume < 0) volume = 0;
    uint32_t flow = (slot->device + out) * live->slot_limit + number; /* of path 2 device + out */
    sim_flows_begin(live->flows, flow, volume, out ? slot->out_bytes : slot->unit->in_bytes,
                    event_order(EVENT_END, slot), live->now_s);
    copies_changed(live, slot->device);
}

static HOT void begin_copy(struct live *live, uint32_t number, enum live_phase phase)
{
    struct live_slot *slot = &live->slots[number];
    const struct live_device *device = &live->devices[slot->device];
    bool out = phase == LIVE_OUT;
    double volume = out ? slot->out_volume : slot->unit->in_volume;
    double latency_s = volume < 0 ? -volume : out ? device->out_latency_s : device->in_latency_s;
    begin_activity(live, slot, phase);
    if (latency_s > 0)
        sim_queue_set(live->queue, live->latency_owners[number], live->now_s + latency_s,
                      event_order(EVENT_FLOW, slot));
    else
        begin_flow(live, number);
}

static HOT void begin_compute(struct live *live, uint32_t number)
{
    struct live_slot *slot = &live->slots[number];
    struct live_device *device = &live->devices[slot->device];
    device->computing = number;
    begin_activity(live, slot, LIVE_COMPUTE);
    if (device->slowed) {
        sim_interference_compute(live->interference, slot->device, device->owner, slot->compute_s,
                                 event_order(EVENT_END, slot), live->now_s);
        live->slowing_changed = true;
    } else {
        sim_queue_set(live->queue, device->owner, live->now_s + slot->compute_s,
                      event_order(EVENT_END, slot));
    }
}

/* --- phases of a unit ------------------------------------------------------------------------ */

static HOT void is_loaded(struct live *live, uint32_t number)
{
    uint32_t d = live->slots[number].device;
    struct live_device *device = &live->devices[d];
    if (device->computing == LIVE_NO_SLOT) {
        begin_compute(live, number);
        return;
    }
    uint32_t at = device->first_loaded + device->loaded++;
    if (at >= live->slot_limit) at -= live->slot_limit;
    live->loaded[d * live->slot_limit + at] = number;
}

static HOT void choose(struct live *live, struct policy_choice choice)
{
    struct live_job *job = &live->jobs[choice.job];
    const struct live_device *device = &live->devices[choice.device];
    const struct policy_device *shown = &live->devices_shown[choice.device];
    const struct live_unit *unit =
        &live->units[(size_t)device->kind * live->in->unit_count + job->first_unit + job->unit];
    bool there = shown->job == choice.job && shown->shard == unit->shard;
    uint32_t number = live_acquire_slot(live, choice.job, choice.device, unit);
    struct live_slot *slot = &live->slots[number];
    slot->number = live->chosen++;
    slot->unit = unit;
    slot->compute_s = unit->compute_s;
    slot->out_volume = unit->out_volume;
    slot->out_bytes = unit->out_bytes;
    slot->memory = unit->memory;
    slot->job = choice.job;
    if (live->spanned) live->spanned[number].minibatch = job->minibatch;
    if (job->minibatch == 0 && job->unit == 0) live->trace->jobs[choice.job].start_s = live->now_s;
    if (++job->unit == job->unit_count) {
        job->unit = 0;
        job->repeats--;
        job->minibatch++;
    }
    if (there || !live_copies(unit->in_volume))
        is_loaded(live, number);
    else
        begin_copy(live, number, LIVE_IN);
}

static HOT enum status dispatch(struct live *live, struct error *err)
{
    while (live->ready_count > 0 && live->open_slots > 0) {
        struct policy_choice choice;
        bool waits;
        TRY(live_ask(live, &choice, &waits, err));
        if (waits) return STATUS_OK;
        choose(live, choice);
    }
    return STATUS_OK;
}

static HOT enum status is_over(struct live *live, uint32_t number, struct error *err)
{
    uint32_t job = live->slots[number].job;
    live_give_slot(live, number);
    live->done++;
    if (live->jobs[job].repeats == 0) live->trace->jobs[job].end_s = live->now_s;
    else if (live_show_ready(live, job, err) != STATUS_OK) return err->status;
    TRY(dispatch(live, err));
    live_expect(live);
    return STATUS_OK;
}

static HOT enum status computed(struct live *live, uint32_t d, struct error *err)
{
    struct live_device *device = &live->devices[d];
    uint32_t number = device->computing;
    if (device->slowed) {
        sim_interference_computed(live->interference, d);
        live->slowing_changed = true;
    }
    end_activity(live, number);
    device->computing = LIVE_NO_SLOT;
    const struct live_slot *slot = &live->slots[number];
    const struct live_job *job = &live->jobs[slot->job];
    bool copies = live_copies(slot->out_volume);
    if (copies) begin_copy(live, number, LIVE_OUT);
    __builtin_prefetch(&live->units[job->first_unit + job->unit]); /* used when this unit ends */
    if (device->loaded > 0) {
        uint32_t next = live->loaded[d * live->slot_limit + device->first_loaded];
        device->loaded--;
        if (++device->first_loaded == live->slot_limit) device->first_loaded = 0;
        begin_compute(live, next);
    }
    return copies ? STATUS_OK : is_over(live, number, err);
}

static HOT enum status copied(struct live *live, uint32_t flow, struct error *err)
{
    uint32_t path = live->flow_paths[flow], device = path / 2;
    uint32_t number = flow - (device + path % 2) * live->slot_limit;
    copies_changed(live, device);
    end_activity(live, number);
    if (path % 2) return is_over(live, number, err);
    is_loaded(live, number);
    return STATUS_OK;
}

/* --- the loop -------------------------------------------------------------------------------- */

static HOT enum status handle_event(struct live *live, const struct sim_event *event, struct error *err)
{
    uint32_t what = live->owner_events[event->owner];
    uint32_t number = what & ((UINT32_C(1) << LIVE_EVENT_SHIFT) - 1);
    switch (what >> LIVE_EVENT_SHIFT) {
    case LIVE_FLOWS: return copied(live, sim_flows_finish(live->flows, number, live->now_s), err);
    case LIVE_COMPUTING: return computed(live, number, err);
    default: begin_flow(live, number); return STATUS_OK;
    }
}

static void settle(struct live *live)
{
    sim_interference_settle(live->interference, live->flows, live->flows_changed, live->slowing_changed, live->slowed,
                            live->now_s);
    live->flows_changed = live->slowing_changed = false;
}

static void report_progress(const struct live *live)
{
    if (live->options->on_progress)
        live->options->on_progress(live->options->context, (double)live->done, (double)live->total);
}

static enum status begin(struct live *live, struct error *err)
{
    const struct sim_live_options *options = live->options;
    if (options->state) live->session = (struct policy_session){.policy = options->policy, .state = options->state};
    else if (policy_session_begin(&live->session, options->policy, &live->view, err)) return err->status;
    for (uint32_t j = 0; j < live->in->job_count; j++)
        TRY(live_show_ready(live, j, err));
    return dispatch(live, err);
}

static enum status run_events(struct live *live, struct error *err)
{
    uint64_t next_report = PROGRESS_UNITS;
    TRY(begin(live, err));
    for (;;) {
        struct sim_event event;
        settle(live);
        if (!sim_queue_pop(live->queue, &event)) break;
        live->now_s = event.time_s;
        live->events++;
        TRY(handle_event(live, &event, err));
        if (live->done < next_report) continue;
        report_progress(live);
        next_report += PROGRESS_UNITS;
    }
    if (live->done < live->total) return policy_session_stuck(&live->session, &live->view, err);
    return STATUS_OK;
}

/* --- the result ------------------------------------------------------------------------------ */

static enum status fill_result(struct live *live, struct sim_result *result, struct error *err)
{
    enum status status = STATUS_OK;
    struct trace *trace = live->trace;
    result->streams = sim_allocate(&result->arena, trace->stream_count, sizeof *result->streams, &status, err);
    result->links = sim_allocate(&result->arena, live->hardware->link_count, sizeof *result->links, &status, err);
    if (status != STATUS_OK) return status;
    memcpy(result->streams, live->uses, trace->stream_count * sizeof *result->streams);
    TRY(sim_flows_uses(live->flows, result->links, err));
    result->makespan_s = live->now_s;
    result->operations = live->operations;
    result->events = live->events;
    result->memory_bytes = sizeof *live + live->arena.total_bytes;
    for (uint32_t d = 0; d < live->in->device_count; d++)
        trace->places[1 + d].peak_bytes = trace->places[1 + d].capacity_bytes - live->devices[d].memory_least;
    trace->makespan_s = live->now_s;
    trace->complete = true;
    if (live->options->record_spans) {
        trace->span_count = live->spans;
        trace_finish(trace);
    }
    char text[SIM_LIMIT_TEXT_BYTES];
    sim_limit_text(live->hardware, result, trace, text);
    return arena_string(&result->arena, text, &result->binds, err);
}

enum status sim_live_run(const struct instance *in, const struct sim_live_options *options,
                         struct sim_result *result, struct trace *trace, struct error *err)
{
    struct live live = {
        .in = in, .hardware = options->hardware, .options = options, .trace = trace};
    enum status status = live_create(&live, err);
    if (status == STATUS_OK) {
        double begun_s = clock_s();
        status = run_events(&live, err);
        result->wall_s = clock_s() - begun_s;
    }
    if (status == STATUS_OK) status = fill_result(&live, result, err);
    if (status == STATUS_OK) report_progress(&live);
    live_release(&live);
    return status;
}
