/*
 * Before the first event, one pass over the plan counts operations per stream, for finished streams (sim.c) and
 * lookahead limits (sim/lookahead.h), and ACQUIREs, which bound the trace's memory levels, so that nothing is allocated
 * later.
 */
#include "base/try.h"
#include "planner/plan_hosts.h"
#include "sim/sim_state.h"

#include <inttypes.h>

#include "sim/engine/allocate.h"
#include "sim/network/machine.h"

static_assert((int)HARDWARE_DEVICES_MAX * STREAM_KIND_COUNT <= (int)SIM_STREAMS_MAX, "a stream's number fits sim_op");
static_assert((int)HARDWARE_DEVICES_MAX <= (int)SIM_JOINED_MAX, "members of a collective are counted in sim_op");

/* --- the plan ------------------------------------------------------------------------------- */

struct unit_counts {
    uint32_t operations[STREAM_KIND_COUNT];
    uint32_t accesses;
    bool limited; /* one of its operations concerns the maker of limits */
};

static void count_unit(const struct plan *plan, const struct plan_unit *unit,
                       struct unit_counts *out)
{
    for (uint32_t o = 0; o < unit->op_count; o++) {
        out->operations[plan->ops[unit->first_op + o].stream]++;
        out->accesses += plan->ops[unit->first_op + o].access_count;
    }
}

static void note_limited(const struct plan *plan, const struct sim_lookahead_maker *maker, struct unit_counts *counts)
{
    for (uint32_t u = 0; u < plan->unit_count; u++)
        for (uint32_t o = 0; o < plan->units[u].op_count; o++)
            counts[u].limited |= sim_lookahead_maker_concerns(maker, &plan->ops[plan->units[u].first_op + o]);
}

/* Counts a gang's task of which only `device` is simulated. */
static enum status count_sole(struct sim *sim, const struct plan_task *task, uint32_t device, uint64_t times,
                              const struct unit_counts *counts, uint64_t *acquires, struct sim_lookahead_maker *maker,
                              struct error *err)
{
    const struct plan *plan = sim->plan;
    const struct plan_unit *unit = &plan->units[task->unit];
    uint32_t passed[STREAM_KIND_COUNT] = {0};
    enum status status = STATUS_OK;
    for (uint32_t o = 0; o < unit->op_count && counts->limited && times == 1 && status == STATUS_OK; o++) {
        const struct plan_op *op = &plan->ops[unit->first_op + o];
        uint64_t before = passed[op->stream]++;
        if (!sim_lookahead_maker_concerns(maker, op)) continue;
        uint32_t stream = plan_stream(plan, device, op->stream);
        struct plan_walk_member member = plan_walk_member(sim->walk, task, op, 0);
        status = sim_lookahead_maker_note(maker, task, op, device, member.place, stream,
                                          sim->streams[stream].unissued + before, err);
    }
    sim->total += unit->op_count * times;
    *acquires += counts->accesses * times; /* at most */
    for (uint32_t k = 0; k < STREAM_KIND_COUNT; k++)
        if (counts->operations[k] > 0)
            sim_stream_at(sim, plan_stream(plan, device, k))->unissued += counts->operations[k] * times;
    return status;
}

/* Counts any task. `maker`: of lookahead limits, or NULL. */
static enum status count_gang(struct sim *sim, const struct plan_task *task, uint64_t times, uint64_t *acquires,
                              struct sim_lookahead_maker *maker, struct error *err)
{
    const struct plan *plan = sim->plan;
    enum status status = STATUS_OK;
    const struct plan_unit *unit = &plan->units[task->unit];
    for (uint32_t o = 0; o < unit->op_count; o++) {
        const struct plan_op *op = &plan->ops[unit->first_op + o];
        uint32_t members = plan_walk_members(sim->walk, task, op);
        sim->total += members * times;
        *acquires += (uint64_t)members * op->access_count * times; /* at most */
        for (uint32_t i = 0; i < members; i++) {
            struct plan_walk_member member = plan_walk_member(sim->walk, task, op, i);
            uint32_t index = plan_stream(plan, member.device, op->stream);
            struct sim_stream *stream = sim_stream_at(sim, index);
            if (maker && times == 1)
                status = sim_lookahead_maker_note(maker, task, op, member.device, member.place, index,
                                                  stream->unissued, err);
            if (status != STATUS_OK) return status;
            stream->unissued += times;
        }
    }
    return STATUS_OK;
}

/* Counts operations by kind of stream over all tasks. */
static void count_kinds(const struct plan *plan, const struct unit_counts *counts, uint64_t kinds[STREAM_KIND_COUNT])
{
    for (uint32_t i = 0; i < plan->task_count; i++)
        for (uint32_t k = 0; k < STREAM_KIND_COUNT; k++) kinds[k] += counts[plan->tasks[i].unit].operations[k];
}

static enum status make_lookahead(struct sim *sim, struct sim_lookahead_maker *maker, struct error *err)
{
    struct arena scratch = {0};
    enum status status = STATUS_OK;
    uint64_t *totals = sim_allocate(&scratch, sim->stream_count, sizeof *totals, &status, err);
    for (uint32_t s = 0; status == STATUS_OK && s < sim->stream_count; s++) totals[s] = sim->streams[s].unissued;
    if (status == STATUS_OK) status = sim_lookahead_make(maker, &sim->arena, totals, &sim->lookahead, err);
    arena_release(&scratch);
    return status;
}

/* Sets all streams' counts before any limit: a stream's first operation may wait for a later stream. */
static void begin_streams(struct sim *sim)
{
    for (uint32_t s = 0; s < sim->stream_count; s++) {
        if (sim->live) sim->streams[s].unissued = 0; /* unknown in advance */
        sim->streams[s].opens = UINT64_MAX;
    }
    for (uint32_t s = 0; s < sim->stream_count; s++) sim_stream_lacks(sim, s);
}

/* *acquires: number of ACQUIREs, which bounds the memory levels. */
static enum status count_operations(struct sim *sim, uint64_t *acquires, struct error *err)
{
    const struct plan *plan = sim->plan;
    struct arena scratch = {0};
    enum status status = STATUS_OK;
    struct unit_counts *counts = sim_allocate(&scratch, plan->unit_count, sizeof *counts, &status, err);
    struct sim_lookahead_maker *maker = NULL;
    uint64_t kinds[STREAM_KIND_COUNT] = {0};
    for (uint32_t u = 0; status == STATUS_OK && u < plan->unit_count; u++)
        count_unit(plan, &plan->units[u], &counts[u]);
    if (status == STATUS_OK) count_kinds(plan, counts, kinds);
    if (status == STATUS_OK && !sim->live) status = sim_lookahead_maker_create(plan, kinds, &maker, err);
    if (status == STATUS_OK && maker) note_limited(plan, maker, counts);
    *acquires = 0;
    for (uint32_t s = 0; status == STATUS_OK && s < plan->segment_count; s++) {
        const struct plan_segment *segment = &plan->segments[s];
        if (maker && segment->repeat_count > 1) sim_lookahead_maker_forget(maker);
        for (uint32_t i = 0; status == STATUS_OK && i < segment->task_count; i++) {
            const struct plan_task *task = &plan->tasks[segment->first_task + i];
            const struct plan_unit *unit = &plan->units[task->unit];
            uint32_t sole = task->gang == PLAN_NONE ? PLAN_NONE : plan_walk_sole(sim->walk, task->gang);
            if (sole != PLAN_NONE) {
                status = count_sole(sim, task, sole, segment->repeat_count, &counts[task->unit], acquires,
                                    maker, err);
                continue;
            }
            if (task->gang != PLAN_NONE) {
                status = count_gang(sim, task, segment->repeat_count, acquires, maker, err);
                continue;
            }
            if (maker) sim_lookahead_maker_forget(maker);
            *acquires += (uint64_t)unit->acquire_count * segment->repeat_count;
            sim->total += (uint64_t)unit->op_count * segment->repeat_count;
            for (uint32_t k = 0; k < STREAM_KIND_COUNT; k++)
                if (plan_has_stream(plan, k))
                    sim_stream_at(sim, plan_stream(plan, task->device, k))->unissued +=
                        (uint64_t)counts[task->unit].operations[k] * segment->repeat_count;
        }
    }
    if (status == STATUS_OK && maker) status = make_lookahead(sim, maker, err);
    sim_lookahead_maker_destroy(maker);
    arena_release(&scratch);
    return status;
}

/* --- creation ------------------------------------------------------------------------------- */

/* Fills the host places, which do not change during the run. */
static enum status fill_hosts(struct sim *sim, struct trace *trace, struct error *err)
{
    struct arena scratch = {0};
    enum status status = STATUS_OK;
    uint32_t hosts = hardware_host_count(sim->hardware);
    struct plan_host_use *uses = sim_allocate(&scratch, hosts, sizeof *uses, &status, err);
    if (status == STATUS_OK) status = plan_host_uses(sim->plan, uses, err);
    for (uint32_t h = 0; h < hosts && status == STATUS_OK; h++) {
        uint32_t place = trace_host_place(trace, h);
        trace->places[place].capacity_bytes = hardware_host_bytes(sim->hardware);
        trace->places[place].peak_bytes = uses[h].memory_bytes;
        const struct trace_level level = {.place = place, .bytes = uses[h].memory_bytes};
        if (sim->options->record_spans) trace->levels[trace->level_count++] = level;
        if (sim->options->writer) trace_writer_level(sim->options->writer, &level);
    }
    arena_release(&scratch);
    return status;
}

static enum status create_trace(struct sim *sim, uint64_t acquires, struct error *err)
{
    struct trace *trace = sim->trace;
    bool record = sim->options->record_spans;
    TRY(trace_init(trace, sim->plan, TRACE_PREDICTED, record ? sim->total : 0,
                   record ? 2 * acquires + hardware_host_count(sim->hardware) : 0, err));
    enum status status = arena_string(&trace->arena, sim->hardware->name, &trace->hardware, err);
    if (status == STATUS_OK && sim->live)
        status = arena_string(&trace->arena, sim->options->live->policy->name, &trace->policy, err);
    if (status != STATUS_OK) return status;
    if (sim->options->writer) {
        trace->plan_fingerprint = plan_fingerprint(sim->plan);
        TRY(trace_writer_begin(sim->options->writer, trace, err));
    }
    TRY(fill_hosts(sim, trace, err));
    for (uint32_t d = 0; d < sim->hardware->device_count; d++)
        trace->places[1 + d].capacity_bytes = sim->hardware->devices[d].memory_bytes;
    return STATUS_OK;
}

/* Makes collectives' costs, and finds devices that need no simulation. */
static enum status join_devices(struct sim *sim, struct error *err)
{
    enum status status =
        sim_collectives_create(&sim->arena, sim->plan, sim->hardware, &sim->collectives, err);
    if (status == STATUS_OK)
        status = sim_collective_flows_create(&sim->arena, sim->plan, sim->hardware, sim->collectives,
                                             sim->options->collectives, &sim->collective_flows, err);
    const struct sim_options *options = sim->options;
    bool all = options->no_fold || sim_records(sim) || options->caching || options->noise > 0;
    if (status != STATUS_OK || all) return status;
    const struct sim_symmetry_setup setup = {.plan = sim->plan, .hardware = sim->hardware, .slow = options->slow,
                                             .collectives = sim->collectives, .flows = sim->collective_flows};
    status = sim_symmetry_find(&sim->arena, &setup, &sim->symmetry, err);
    if (status != STATUS_OK || sim->symmetry.represented == 0 || !sim->collective_flows) return status;
    return sim_collective_flows_fold(sim->collective_flows, sim->symmetry.kept, sim->symmetry.link_for, err);
}

enum status sim_create(struct sim *sim, struct error *err)
{
    enum status status = sim_machine_suits(sim->plan, sim->hardware, err);
    if (status == STATUS_OK && sim->plan->gang_count > 0) status = join_devices(sim, err);
    if (status == STATUS_OK && sim->options->live)
        status = sim_dispatch_create(sim->plan, sim->options->live, &sim->live, err);
    if (status == STATUS_OK)
        status = sim->live ? plan_walk_create_open(sim->plan, &sim->walk, err)
                           : plan_walk_create(sim->plan, sim->symmetry.stands_for, &sim->walk, err);
    if (status == STATUS_OK) status = sim_find_pairs(sim, err);
    if (status != STATUS_OK) return status;
    sim->stream_count = plan_stream_count(sim->plan);
    sim->streams =
        sim_allocate(&sim->arena, sim->stream_count, sizeof *sim->streams, &status, err);
    sim->job_started =
        sim_allocate(&sim->arena, sim->plan->jobs.count, sizeof *sim->job_started, &status, err);
    if (status != STATUS_OK) return status;
    uint64_t acquires;
    TRY(count_operations(sim, &acquires, err));
    TRY(create_trace(sim, acquires, err));
    TRY(sim_durations_create(&sim->arena, sim->plan, sim->hardware, sim->options->slow, &sim->durations, err));
    TRY(sim_create_machine(sim, err));
    TRY(sim_lifetimes_create(sim->plan, sim->trace, sim->options->record_spans, sim->options->writer,
                             sim->options->caching ? sim->hardware : NULL, &sim->lifetimes, err));
    TRY(sim_window_create(sim->plan, sim->walk, sim->lifetimes, sim->collectives, &sim->window, err));
    begin_streams(sim);
    return sim_steady_create(sim, err);
}
