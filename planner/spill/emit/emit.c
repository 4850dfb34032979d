/*
 * From "shard 3 of job 1, backward, on device 0" to copies, a computation and arena ranges.
 *
 * A unit is written once per (shard, pass) and variant (emit_pass.c): whether its input is still on the device from the
 * job's previous unit, and whether the job's next unit will use its output there. An input on another device is fetched
 * directly if there is a link and the schedule says so; it waits in its edge.
 *
 * A task moves its unit's slots to the weight buffer and edge in turn. Rule 2 of plan.h makes the next user of a
 * weight buffer wait for the previous one, all that double buffering needs.
 */
#include "planner/spill/emit/emit.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "models/jobs/job_base.h"
#include "planner/spill/cut/partition_storage.h"
#include "planner/spill/emit/emit_pass.h"
#include "planner/spill/emit/emit_state.h"
#include "planner/spill/emit/emit_unit.h"

/* The variant of a shard's pass: its origin, times VARIANTS_OF_ORIGIN; its output stays; it is its minibatch's last. */
enum { VARIANT_STAYS = 2, VARIANT_ENDS = 1, VARIANTS_OF_ORIGIN = 4 };
enum { UNIT_VARIANTS = EMIT_ORIGINS * VARIANTS_OF_ORIGIN };

/* --- units ----------------------------------------------------------------------------------- */

static uint32_t shard_count_of(const struct emit_context *e, uint32_t job)
{
    const uint32_t *first = e->partition->job_first_shard;
    return first[job + 1] - first[job];
}

static struct partition_units units_of(const struct emit_context *e, uint32_t job)
{
    return partition_job_units(e->partition, job);
}

static struct emit_shard_view view_of(struct emit_context *e, uint32_t job, uint32_t shard,
                                      enum plan_pass pass)
{
    const struct partition *p = e->partition;
    uint32_t first = p->job_first_shard[job];
    struct emit_shard_view v = {.job = &e->plan->jobs.jobs[job],
                                .job_index = job,
                                .shard = shard,
                                .global = first + shard,
                                .shard_count = shard_count_of(e, job),
                                .pass = pass,
                                .resident = p->resident,
                                .persistent = p->persistent[first + shard],
                                .on_cpu = p->on_cpu[first + shard],
                                .activations = partition_activations(p, first + shard),
                                .slice_rows = shard == 0 ? p->slice_rows[job] : 0};
    v.embedding = shard == 0 && footprint_has_embedding(v.job);
    v.base_bytes = job_base_bytes(v.job, p->shards[v.global].first_layer, p->shards[v.global].layer_count);
    v.table_base_bytes = job_base_bytes(v.job, 0, p->shards[first].layer_count);
    v.last = shard + 1 == v.shard_count && !job_makes_outputs(v.job);
    v.makes_outputs = shard + 1 == v.shard_count && job_makes_outputs(v.job);
    v.trains = p->trains[v.global];
    v.goes_back = shard >= p->job_frozen[job];
    v.lowest = shard == p->job_frozen[job];
    v.footprint = footprint_of(e->footprints, job, p->shards[v.global].first_layer,
                               p->shards[v.global].layer_count);
    if (!v.footprint && !e->status)
        e->status = error_memory(e->err, "the table of shard sizes", 1);
    return v;
}

/* Writes the unit of v's pass. Returns PLAN_NONE after an error. */
static uint32_t write_unit(struct emit_context *e, const struct emit_shard_view *v, bool ends_minibatch)
{
    e->current = (struct emit_unit_slots){.first_acquire = (uint32_t)e->acquire_count};
    e->edge_used = e->weight_buffer_used = 0;
    plan_builder_unit_begin(e->builder, v->job_index, v->shard, v->pass, ends_minibatch);
    emit_pass(e, v);
    emit_turn_end(e);
    uint32_t id = plan_builder_unit_end(e->builder);
    if (e->status || id == PLAN_NONE) return id;
    while (!e->status && e->slots_count <= id) {
        e->status = array_reserve(&e->slots, &e->slots_capacity, e->slots_count, sizeof *e->slots,
                                  PLAN_UNITS_MAX, "units", e->err);
        if (!e->status) e->slots[e->slots_count++] = (struct emit_unit_slots){0};
    }
    if (!e->status) e->slots[id] = e->current;
    return id;
}

/* Returns true if weights are kept after the evaluation that ends here. */
static bool keeps_behind(const struct emit_context *e, const struct schedule_unit *unit)
{
    return unit->ends && e->plan->jobs.jobs[unit->job].keep_best &&
           schedule_unit_pass(units_of(e, unit->job), unit->position) == PLAN_EVALUATE;
}

/* Returns true if updates follow this backward pass, the minibatch's last. */
static bool updates_behind(const struct emit_context *e, const struct schedule_unit *unit)
{
    return job_clips(&e->plan->jobs.jobs[unit->job]) &&
           unit->position + 1 == schedule_unit_count(units_of(e, unit->job));
}

/* Returns the unit of a shard's pass in this variant; writes it at the first use. */
static uint32_t unit_of(struct emit_context *e, const struct schedule_unit *unit, const struct schedule_base *base,
                        enum emit_origin origin, bool stays)
{
    const struct partition *p = e->partition;
    const struct partition_units units = units_of(e, unit->job);
    uint32_t first = p->job_first_shard[unit->job];
    uint32_t shard = schedule_unit_shard(units, unit->position);
    enum plan_pass pass = schedule_unit_pass(units, unit->position);
    bool ends = unit->ends && !keeps_behind(e, unit) && !updates_behind(e, unit);
    uint32_t kind = pass == PLAN_FORWARD ? 0 : pass == PLAN_EVALUATE ? 2 : 1;
    uint32_t variant = (uint32_t)origin * VARIANTS_OF_ORIGIN + (stays ? VARIANT_STAYS : 0) +
                       (ends ? VARIANT_ENDS : 0);
    uint32_t *id = &e->unit_ids[((size_t)(first + shard) * 3 + kind) * UNIT_VARIANTS + variant];
    if (*id != PLAN_NONE && !base) return *id; /* of those with a base the builder finds equal ones */
    struct emit_shard_view v = view_of(e, unit->job, shard, pass);
    if (e->status) return PLAN_NONE;
    v.origin = origin;
    v.stays = stays;
    v.base = base;
    *id = write_unit(e, &v, ends);
    return *id;
}

/* --- tasks ------------------------------------------------------------------------------- */

struct emit_turns {
    uint32_t edge, weight_buffer, transient, held, base;
};

static void find_slots(struct emit_context *e, uint32_t id, uint32_t device, uint32_t seat, struct emit_turns turns)
{
    const struct partition *p = e->partition;
    const struct emit_unit_slots *slots = &e->slots[id];
    while (!e->status && e->slot_scratch_capacity < slots->acquire_count)
        e->status = array_reserve(&e->slot_scratch, &e->slot_scratch_capacity,
                                  e->slot_scratch_capacity, sizeof *e->slot_scratch, PLAN_OPS_MAX,
                                  "arena ranges of a unit", e->err);
    if (e->status) return;
    for (uint32_t i = 0; i < slots->acquire_count; i++) {
        const struct emit_acquire *a = &e->acquires[slots->first_acquire + i];
        uint64_t base = 0;
        if (a->area == EMIT_AREA_EDGE) base = partition_edge(p, turns.edge);
        if (a->area == EMIT_AREA_KEEP) base = partition_keep(p, seat);
        if (a->area == EMIT_AREA_PERSISTENT) base = partition_persistent(p);
        if (a->area == EMIT_AREA_TABLE) base = partition_table(p);
        if (a->area == EMIT_AREA_WEIGHT_BUFFER)
            base = partition_weight_buffer(p, p->resident ? seat : turns.weight_buffer + a->turn);
        if (a->area == EMIT_AREA_TRANSIENT)
            base = storage_transient(p, e->host_seat[device], turns.transient + a->turn);
        if (a->area == EMIT_AREA_HELD) base = storage_held(p, e->host_seat[device], turns.held + a->turn);
        if (a->area == EMIT_AREA_BASE) base = partition_base_turn(p, turns.base + a->turn);
        if (a->area == EMIT_AREA_BASE_STAYS) base = partition_base_stays(p);
        e->slot_scratch[i] = plan_builder_slot(e->builder, base + a->offset_bytes, a->bytes);
    }
}

static void add_task(struct emit_context *e, uint32_t id, uint32_t device, uint32_t seat)
{
    if (e->status || id == PLAN_NONE) return;
    const struct emit_unit_slots *slots = &e->slots[id];
    find_slots(e, id, device, seat,
               (struct emit_turns){e->edge_turn[device], e->weight_buffer_turn[device], e->transient_turn[device],
                                   e->held_turn[device], e->base_turn[device]});
    if (e->status) return;
    plan_builder_task(e->builder, id, device, e->slot_scratch, slots->acquire_count);
    if (slots->uses_edge) e->edge_turn[device]++;
    e->weight_buffer_turn[device] += slots->weight_buffer_turns;
    e->transient_turn[device] += slots->transient_turns;
    e->held_turn[device] += slots->held_turns;
    e->base_turn[device] += slots->base_turns;
}

/* Adds each unit on each device of its job's node, with each weight buffer: in any order of units, one choice has a
 * free one. */
static void add_choices(struct emit_context *e, const uint32_t *last_device)
{
    const struct hardware *hardware = &e->plan->hardware;
    for (uint32_t id = 0; id < e->slots_count; id++) {
        const struct emit_unit_slots *slots = &e->slots[id];
        bool turns = slots->uses_edge || slots->weight_buffer_turns + slots->transient_turns + slots->held_turns > 0;
        uint32_t home = hardware->devices[last_device[e->plan->units[id].job]].host;
        for (uint32_t d = 0; d < hardware->device_count; d++)
            for (uint32_t t = 0; hardware->devices[d].host == home &&
                                 t < (turns ? e->partition->weight_buffer_count : 1) && !e->status; t++) {
                find_slots(e, id, d, 0, (struct emit_turns){t, t, t, t, t});
                if (!e->status)
                    plan_builder_choice(e->builder, id, d, e->slot_scratch, slots->acquire_count);
            }
    }
}

/* Adds a unit of this pass for each shard of the job, before or after a scheduled unit. LOAD and STORE are only for
 * states that stay, UPDATE and KEEP for shards that train; the last unit of these ends the minibatch if the scheduled
 * one does. */
static void add_beside(struct emit_context *e, const struct schedule_unit *unit, enum plan_pass pass)
{
    const struct partition *p = e->partition;
    uint32_t first = p->job_first_shard[unit->job], count = shard_count_of(e, unit->job);
    bool moves = pass == PLAN_LOAD || pass == PLAN_STORE, files = pass == PLAN_OPEN || pass == PLAN_CLOSE;
    bool trained = pass == PLAN_UPDATE || pass == PLAN_KEEP;
    uint32_t end = count; /* of those that have the pass */
    while (trained && !p->trains[first + end - 1]) end--;
    for (uint32_t s = 0; s < end; s++) {
        if (moves && !p->persistent[first + s]) continue;
        if (trained && !p->trains[first + s]) continue;
        struct emit_shard_view v = view_of(e, unit->job, s, pass);
        if (e->status) return;
        uint32_t id = write_unit(e, &v, !moves && !files && unit->ends && s + 1 == end);
        add_task(e, id, p->resident ? p->shard_device[first + s] : unit->device, unit->seat);
    }
}

/* Returns true for an embedding on the host's processor, whose data are all in host memory. */
static bool on_host(const struct emit_context *e, const struct schedule_unit *unit)
{
    const struct partition *p = e->partition;
    uint32_t first = p->job_first_shard[unit->job];
    return schedule_unit_shard(units_of(e, unit->job), unit->position) == 0 && p->on_cpu[first] &&
           footprint_has_embedding(&e->plan->jobs.jobs[unit->job]);
}

/* Returns true if the job's next unit is also the device's next, with its input on the device. */
static bool continues(const struct emit_context *e, const struct schedule *schedule,
                      const struct schedule_unit *unit)
{
    if (unit->next_here == PLAN_NONE) return false;
    const struct schedule_unit *next = &schedule->units[unit->next_here];
    return !e->partition->apart && !schedule_unit_begins(units_of(e, unit->job), next->position) &&
           !on_host(e, unit) && !on_host(e, next);
}

struct emission {
    const struct schedule *schedule;
    bool *continued;       /* per unit: its input is on its device */
    uint32_t *last_device; /* per job */
};

static void emit_scheduled(struct emit_context *e, struct emission *on, uint32_t i)
{
    const struct schedule_unit *unit = &on->schedule->units[i];
    bool here_out = continues(e, on->schedule, unit);
    enum emit_origin origin = unit->fetches      ? EMIT_ORIGIN_PEER
                              : on->continued[i] ? EMIT_ORIGIN_HERE
                                                 : EMIT_ORIGIN_HOST;
    if (here_out) on->continued[unit->next_here] = true;
    if (unit->first && plan_has_range(e->plan, unit->job)) add_beside(e, unit, PLAN_OPEN);
    if (unit->first) add_beside(e, unit, PLAN_LOAD);
    const struct schedule_base *base = on->schedule->bases ? &on->schedule->bases[i] : NULL;
    add_task(e, unit_of(e, unit, base, origin, here_out || unit->fetched), unit->device, unit->seat);
    if (unit->fetches && !e->status) plan_builder_peer(e->builder, on->last_device[unit->job]);
    on->last_device[unit->job] = unit->device;
    if (updates_behind(e, unit)) add_beside(e, unit, PLAN_UPDATE);
    if (keeps_behind(e, unit)) add_beside(e, unit, PLAN_KEEP);
    if (unit->last) add_beside(e, unit, PLAN_STORE);
    if (unit->last && plan_has_range(e->plan, unit->job)) add_beside(e, unit, PLAN_CLOSE);
}

/* Returns true if every device has the same turns as in `kept`. */
static bool turns_are_back(const struct emit_context *e, const struct emit_turns *kept)
{
    const struct partition *p = e->partition;
    for (uint32_t d = 0; d < e->plan->hardware.device_count; d++)
        if ((e->edge_turn[d] - kept[d].edge) % p->edge_count != 0 ||
            (e->weight_buffer_turn[d] - kept[d].weight_buffer) % p->weight_buffer_count != 0 ||
            (e->transient_turn[d] != kept[d].transient &&
             (e->transient_turn[d] - kept[d].transient) % p->storage.turns != 0) ||
            (e->held_turn[d] != kept[d].held && (e->held_turn[d] - kept[d].held) % p->storage.turns != 0) ||
            (e->base_turn[d] != kept[d].base && (e->base_turn[d] - kept[d].base) % p->base.turns != 0))
            return false;
    return true;
}

/* Repeats a cycle emitted once: emits it until its tasks would be the same again, repeats these, and emits the
 * rest. `kept`, `tasks`: at the cycle's beginning. */
static void emit_cycle(struct emit_context *e, struct emission *on, const struct schedule_loop *cycle,
                       const struct emit_turns *kept, uint32_t tasks)
{
    uint64_t copies = 1, all = cycle->times + 1;
    while (copies < all && !e->status && !turns_are_back(e, kept)) {
        for (uint32_t i = cycle->first; i < cycle->end; i++) emit_scheduled(e, on, i);
        copies++;
    }
    if (e->status || copies == all) return;
    plan_builder_repeat(e->builder, e->plan->task_count - tasks, all / copies - 1);
    for (uint64_t left = all % copies; left > 0 && !e->status; left--)
        for (uint32_t i = cycle->first; i < cycle->end; i++) emit_scheduled(e, on, i);
}

static void keep_turns(const struct emit_context *e, struct emit_turns *kept)
{
    for (uint32_t d = 0; d < e->plan->hardware.device_count; d++)
        kept[d] = (struct emit_turns){e->edge_turn[d], e->weight_buffer_turn[d], e->transient_turn[d], e->held_turn[d],
                                      e->base_turn[d]};
}

/* Moves a turn on to a multiple of `count`. */
static uint32_t begin_anew(uint32_t turn, uint32_t count) { return (turn + count - 1) / count * count; }

static void join(struct emit_context *e)
{
    const struct partition *p = e->partition;
    for (uint32_t d = 0; d < e->plan->hardware.device_count; d++) {
        e->edge_turn[d] = begin_anew(e->edge_turn[d], p->edge_count);
        e->weight_buffer_turn[d] = begin_anew(e->weight_buffer_turn[d], p->weight_buffer_count);
        if (p->storage.turns == 0) continue;
        e->transient_turn[d] = begin_anew(e->transient_turn[d], p->storage.turns);
        e->held_turn[d] = begin_anew(e->held_turn[d], p->storage.turns);
    }
}

/* `kept`: scratch for each device. */
static void emit_schedule(struct emit_context *e, struct emission *on, struct emit_turns *kept)
{
    const struct schedule *schedule = on->schedule;
    uint32_t tasks = 0, next_cycle = 0, next_joint = 0;
    for (uint32_t i = 0; i < schedule->count && !e->status; i++) {
        const struct schedule_loop *cycle = next_cycle < schedule->cycle_count ? &schedule->cycles[next_cycle] : NULL;
        if (cycle && i == cycle->first) {
            keep_turns(e, kept);
            tasks = e->plan->task_count;
        }
        emit_scheduled(e, on, i);
        for (; next_joint < schedule->joint_count && schedule->joints[next_joint] == i + 1; next_joint++) join(e);
        if (cycle && i + 1 == cycle->end) {
            emit_cycle(e, on, cycle, kept, tasks);
            next_cycle++;
        }
    }
}

/* Returns true for the layers whose kept outputs a job takes. */
static bool is_recalled(const struct emit_context *e, uint32_t global)
{
    const struct plan_shard *shard = &e->partition->shards[global];
    return shard->first_layer < job_layers_begin(&e->plan->jobs.jobs[shard->job]);
}

/* Adds the host's state of a shard that no unit moves: whose job takes the outputs of its layers, or shares a base;
 * then it is of nothing, if all of it is there. */
static void add_home(struct emit_context *e, uint32_t global)
{
    const uint32_t job = e->partition->shards[global].job, shard = global - e->partition->job_first_shard[job];
    const struct emit_shard_view v = view_of(e, job, shard, PLAN_FORWARD);
    if (!e->status) emit_host_state(e, &v, shard);
}

/* Numbers the seats: staged states of a host's devices follow each other. */
static void number_seats(struct emit_context *e)
{
    uint32_t taken[HARDWARE_DEVICES_MAX] = {0};
    for (uint32_t d = 0; d < e->plan->hardware.device_count; d++)
        e->host_seat[d] = taken[e->plan->hardware.devices[d].host]++;
}

enum status emit_plan(struct plan_builder *builder, struct footprints *footprints,
                      const struct partition *partition, const struct schedule *schedule,
                      struct error *err)
{
    const struct plan *plan = plan_builder_plan(builder);
    struct emit_context e = {.builder = builder,
                        .plan = plan,
                        .footprints = footprints,
                        .partition = partition,
                        .err = err};
    size_t ids = (size_t)partition->shard_count * 3 * UNIT_VARIANTS;
    uint32_t devices = plan->hardware.device_count;
    struct emission on = {.schedule = schedule,
                          .continued = alloc_zeroed(schedule->count + 1u, sizeof *on.continued),
                          .last_device = alloc_zeroed(plan->jobs.count + 1u, sizeof *on.last_device)};
    struct emit_turns *kept = alloc_zeroed(devices, sizeof *kept);
    e.unit_ids = alloc_resize(NULL, (ids + 1) * sizeof *e.unit_ids);
    e.edge_turn = alloc_zeroed(devices, sizeof *e.edge_turn);
    e.weight_buffer_turn = alloc_zeroed(devices, sizeof *e.weight_buffer_turn);
    e.transient_turn = alloc_zeroed(devices, sizeof *e.transient_turn);
    e.held_turn = alloc_zeroed(devices, sizeof *e.held_turn);
    e.base_turn = alloc_zeroed(devices, sizeof *e.base_turn);
    e.host_seat = alloc_zeroed(devices, sizeof *e.host_seat);
    if (!on.continued || !on.last_device || !kept || !e.unit_ids || !e.edge_turn || !e.weight_buffer_turn ||
        !e.transient_turn || !e.held_turn || !e.base_turn || !e.host_seat) {
        e.status = error_memory(err, "the table of units", ids * sizeof *e.unit_ids);
    } else {
        number_seats(&e);
        for (size_t i = 0; i < ids; i++) e.unit_ids[i] = PLAN_NONE;
        for (uint32_t s = 0; s < partition->shard_count; s++)
            plan_builder_shard(builder, partition->shards[s].job,
                               partition->shards[s].first_layer,
                               partition->shards[s].layer_count, partition->shards[s].inputs_only);
        for (uint32_t s = 0; s < partition->shard_count; s++)
            if (partition->base.owner || is_recalled(&e, s)) add_home(&e, s);
        emit_schedule(&e, &on, kept);
        if (partition->apart) add_choices(&e, on.last_device);
    }
    free(on.continued);
    free(on.last_device);
    free(kept);
    free(e.unit_ids);
    free(e.slots);
    free(e.acquires);
    free(e.edge_turn);
    free(e.weight_buffer_turn);
    free(e.transient_turn);
    free(e.held_turn);
    free(e.base_turn);
    free(e.host_seat);
    free(e.slot_scratch);
    return e.status;
}
