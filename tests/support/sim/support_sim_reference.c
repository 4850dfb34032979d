#include "tests/support/sim/support_sim_reference.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "models/cost/cost.h"

/* --- operations -------------------------------------------------------------- */

static const struct plan_access *access_of(const struct reference *r, uint32_t op, uint32_t i)
{
    return &r->plan->accesses[r->ops[op].op->first_access + i];
}

static bool is_storage(const struct ref_op *op)
{
    return op->op->stream == STREAM_READ || op->op->stream == STREAM_WRITE;
}

static uint32_t live_lifetime(const struct reference *r, uint32_t device, uint32_t buffer)
{
    for (uint32_t l = r->lifetime_count; l-- > 1;)
        if (r->lifetimes[l].device == device && r->lifetimes[l].buffer == buffer) return l;
    fail();
    return 0;
}

static void expand_task(struct reference *r, const struct plan_task *task,
                        uint32_t position)
{
    const struct plan *plan = r->plan;
    const struct plan_unit *unit = &plan->units[task->unit];
    uint32_t acquired = 0;
    for (uint32_t o = 0; o < unit->op_count; o++) {
        uint32_t number = r->count++;
        assert_true(number < REF_OPS_MAX);
        struct ref_op *op = &r->ops[number];
        op->op = &plan->ops[unit->first_op + o];
        op->device = op->op->stream == STREAM_CPU || is_storage(op)
                         ? hardware_cpu(&plan->hardware) : task->device;
        op->stream = plan_stream(plan, task->device, op->op->stream);
        op->peer = task->peer;
        op->task = position;
        for (uint32_t i = 0; i < op->op->access_count; i++) {
            const struct plan_access *access = access_of(r, number, i);
            if (!plan->buffers[access->buffer].on_device) continue;
            if (access->flags & ACCESS_ACQUIRE) {
                const struct plan_slot *slot =
                    &plan->slots[plan->layouts[task->layout + acquired++]];
                assert_true(r->lifetime_count < REF_OPS_MAX);
                r->lifetimes[r->lifetime_count++] = (struct ref_lifetime){
                    task->device, access->buffer, slot->offset_bytes,
                    slot->offset_bytes + slot->bytes, number};
            }
            bool fetched = op->op->stream == STREAM_P2P && i == 0;
            op->lifetime[i] = live_lifetime(r, fetched ? task->peer : task->device,
                                            access->buffer);
        }
    }
}

static void expand(struct reference *r)
{
    const struct plan *plan = r->plan;
    uint32_t position = 0;
    r->lifetime_count = 1;
    for (uint32_t s = 0; s < plan->segment_count; s++)
        for (uint32_t k = 0; k < plan->segments[s].repeat_count; k++)
            for (uint32_t i = 0; i < plan->segments[s].task_count; i++)
                expand_task(r, &plan->tasks[plan->segments[s].first_task + i],
                            position++);
}

/* Returns true if accesses i of `a` and k of `b`, a < b, touch the same buffer. */
static bool same_thing(const struct reference *r, uint32_t a, uint32_t i, uint32_t b, uint32_t k)
{
    return access_of(r, a, i)->buffer == access_of(r, b, k)->buffer &&
           r->ops[a].lifetime[i] == r->ops[b].lifetime[k];
}

static bool writes(const struct reference *r, uint32_t a, uint32_t b, uint32_t k)
{
    for (uint32_t i = 0; i < r->ops[a].op->access_count; i++)
        if (same_thing(r, a, i, b, k) && (access_of(r, a, i)->flags & ACCESS_WRITE)) return true;
    return false;
}

static bool uses(const struct reference *r, uint32_t a, uint32_t b, uint32_t k)
{
    for (uint32_t i = 0; i < r->ops[a].op->access_count; i++)
        if (same_thing(r, a, i, b, k)) return true;
    return false;
}

static bool used_overlapping(const struct reference *r, uint32_t a, uint32_t lifetime)
{
    const struct ref_lifetime *mine = &r->lifetimes[lifetime];
    for (uint32_t i = 0; i < r->ops[a].op->access_count; i++) {
        uint32_t l = r->ops[a].lifetime[i];
        if (l == 0 || l >= lifetime) continue;
        const struct ref_lifetime *other = &r->lifetimes[l];
        if (other->device == mine->device && other->first < mine->end && mine->first < other->end)
            return true;
    }
    return false;
}

static void find_waits(struct reference *r)
{
    for (uint32_t b = 0; b < r->count; b++) {
        for (uint32_t k = 0; k < r->ops[b].op->access_count; k++) {
            uint32_t flags = access_of(r, b, k)->flags;
            for (uint32_t a = b; a-- > 0;) { /* back to the last writer */
                if (uses(r, a, b, k) && (flags & ACCESS_WRITE)) r->waits[b][a] = true;
                if (!writes(r, a, b, k)) continue;
                r->waits[b][a] = true;
                break;
            }
            for (uint32_t a = 0; a < b && (flags & ACCESS_ACQUIRE); a++)
                if (used_overlapping(r, a, r->ops[b].lifetime[k])) r->waits[b][a] = true;
        }
        for (uint32_t i = 0; i < r->ops[b].op->after_count; i++) {
            const struct plan_after *after = &r->plan->afters[r->ops[b].op->first_after + i];
            uint32_t first = b;
            while (r->ops[first].task != r->ops[b].task - after->tasks) first--;
            while (first > 0 && r->ops[first - 1].task == r->ops[first].task) first--;
            r->waits[b][first + after->op] = true;
        }
        for (uint32_t a = b; a-- > 0;)
            if (r->ops[a].stream == r->ops[b].stream) {
                r->waits[b][a] = true;
                break;
            }
    }
}

/* --- durations and rates ----------------------------------------------------- */

static struct sim_test_law law_of(const struct reference *r, uint32_t device)
{
    const struct compute_profile *profile = hardware_profile(&r->plan->hardware, device);
    struct sim_test_law law = {0};
    if (!profile) return law;
    law.compute_by_compute = profile->interference.compute_by_compute.value;
    law.compute_by_copy = profile->interference.compute_by_copy.value;
    law.copy_by_compute = profile->interference.copy_by_compute.value;
    law.copy_by_copy = profile->interference.copy_by_copy.value;
    law.reference = profile->interference.copy_reference_rate.value;
    return law;
}

static bool copies_capped(struct sim_test_law law)
{
    return law.copy_by_compute > 0 || law.copy_by_copy > 0;
}

uint32_t sim_reference_path(const struct ref_op *op)
{
    if (op->op->stream == STREAM_P2P) return REF_P2P + op->device * REF_DEVICES_MAX + op->peer;
    return op->device * 2 + (op->op->stream == STREAM_D2H || op->op->stream == STREAM_WRITE);
}

/* Adds the hops of one device's part of a direct path: link by link from the device to the first link that the other
 * part has as well. */
static void add_part(struct sim_path *path, const struct hardware_network *part,
                     const struct hardware_network *other, uint32_t direction)
{
    for (uint32_t i = part->path_count; i-- > 0;) {
        for (uint32_t k = 0; k < other->path_count; k++)
            if (other->path[k] == part->path[i]) return;
        path->hops[path->hop_count++] = (struct sim_hop){part->path[i], direction};
    }
}

static void find_p2p_paths(struct reference *r)
{
    const struct hardware *hardware = &r->plan->hardware;
    for (uint32_t d = 0; d < hardware->device_count; d++)
        for (uint32_t peer = 0; peer < hardware->device_count; peer++) {
            struct sim_path *path = &r->paths[REF_P2P + d * REF_DEVICES_MAX + peer];
            *path = (struct sim_path){.cap_bytes_per_s = 1e30};
            if (!hardware_p2p_pair(hardware, peer, d)) continue;
            const struct hardware_network *away = hardware_network_of(hardware, peer, d);
            const struct hardware_network *towards = hardware_network_of(hardware, d, peer);
            add_part(path, away, towards, 1);
            add_part(path, towards, away, 0);
            if (copies_capped(law_of(r, d))) path->cap_bytes_per_s = law_of(r, d).reference;
            for (uint32_t h = 0; h < path->hop_count; h++)
                path->cap_bytes_per_s =
                    fmin(path->cap_bytes_per_s, r->links[path->hops[h].link].bytes_per_s);
            if (path->hop_count == 0) /* one memory, which the copy reads and writes */
                path->cap_bytes_per_s =
                    fmin(path->cap_bytes_per_s,
                         hardware->types[hardware->devices[d].type].memory_bandwidth.value / 2);
        }
}

static void find_paths(struct reference *r)
{
    const struct hardware *hardware = &r->plan->hardware;
    for (uint32_t l = 0; l < hardware->link_count; l++)
        r->links[l] = (struct sim_link){hardware->links[l].bandwidth.value,
                                        hardware->links[l].duplex};
    for (uint32_t p = 0; p < 2 && hardware_has_storage(hardware); p++) {
        const struct hardware_storage *storage = &hardware->storage;
        double alone = p == 0 ? storage->read_rate.value : storage->write_rate.value;
        double both = storage->both_rate.value > 0
                          ? storage->both_rate.value
                          : fmax(storage->read_rate.value, storage->write_rate.value);
        r->links[hardware->link_count] = (struct sim_link){both, false};
        r->paths[hardware->device_count * 2 + p] =
            (struct sim_path){.hops = {{hardware->link_count, p}},
                              .hop_count = 1,
                              .cap_bytes_per_s = fmin(alone, both)};
    }
    for (uint32_t p = 0; p < hardware->device_count * 2; p++) {
        const struct hardware_device *device = &hardware->devices[p / 2];
        struct sim_path *path = &r->paths[p];
        *path = (struct sim_path){.hop_count = device->path_count};
        path->cap_bytes_per_s = copies_capped(law_of(r, p / 2)) ? law_of(r, p / 2).reference : 1e30;
        for (uint32_t h = 0; h < device->path_count; h++) {
            path->hops[h] = (struct sim_hop){device->path[h], p % 2};
            path->cap_bytes_per_s =
                fmin(path->cap_bytes_per_s, r->links[device->path[h]].bytes_per_s);
        }
    }
}

static void find_durations(struct reference *r)
{
    const struct hardware *hardware = &r->plan->hardware;
    for (uint32_t o = 0; o < r->count; o++) {
        struct ref_op *op = &r->ops[o];
        if (is_storage(op)) {
            double rate = r->paths[sim_reference_path(op)].cap_bytes_per_s;
            op->latency_s = hardware->storage.latency.value;
            op->volume = (double)op->op->bytes;
            op->alone_s = op->latency_s + op->volume / rate;
        } else if (op->op->stream == STREAM_P2P) {
            op->alone_s = cost_p2p_s(hardware, op->peer, op->device, op->op->bytes);
            op->latency_s = cost_p2p_latency_s(hardware, op->peer, op->device);
            op->volume = (op->alone_s - op->latency_s) *
                         r->paths[sim_reference_path(op)].cap_bytes_per_s;
        } else if (op->op->kind == OP_COPY) {
            enum copy_direction direction = op->op->stream == STREAM_H2D ? COPY_H2D : COPY_D2H;
            op->alone_s = cost_copy_s(hardware, op->device, direction, op->op->bytes);
            op->latency_s = cost_copy_latency_s(hardware, op->device, direction);
            op->volume = (op->alone_s - op->latency_s) *
                         r->paths[sim_reference_path(op)].cap_bytes_per_s;
        } else if (op->op->work != PLAN_NONE) {
            const struct plan_work *work = &r->plan->works[op->op->work];
            op->alone_s = cost_work_s(hardware, op->device, r->plan->items + work->first_item,
                                      work->item_count, NULL);
        }
    }
}

static bool same_domain(const struct reference *r, const struct ref_op *a, const struct ref_op *b)
{
    return a->device == b->device || r->plan->hardware.backend[0] == 'h';
}

/* Returns the number of other active operations of the kind that feel `op`. */
static uint32_t others(const struct reference *r, const struct ref_op *op, uint32_t kind)
{
    uint32_t count = 0;
    for (uint32_t o = 0; o < r->count; o++) {
        const struct ref_op *other = &r->ops[o];
        count += other != op && other->state == REF_ACTIVE && other->op->kind == kind &&
                 other->op->stream != STREAM_HOST && !is_storage(other) &&
                 same_domain(r, other, op);
    }
    return count;
}

static uint32_t link_count(const struct reference *r)
{
    return r->plan->hardware.link_count + hardware_has_storage(&r->plan->hardware);
}

static uint32_t rate_copies(struct reference *r, struct sim_test_flow *flows)
{
    struct ref_op *owners[REF_DEVICES_MAX * 3 + 2];
    uint32_t count = 0;
    for (uint32_t o = 0; o < r->count; o++) {
        struct ref_op *op = &r->ops[o];
        if (op->state != REF_ACTIVE || op->op->kind != OP_COPY) continue;
        const struct sim_path *path = &r->paths[sim_reference_path(op)];
        struct sim_test_law law = {0}; /* storage neither slows others nor is slowed */
        if (!is_storage(op)) law = law_of(r, op->device);
        double cap = path->cap_bytes_per_s;
        if (copies_capped(law))
            cap = fmin(cap, law.reference / (1 + law.copy_by_compute * others(r, op, OP_COMPUTE) +
                                             law.copy_by_copy * others(r, op, OP_COPY)));
        owners[count] = op;
        flows[count++] = (struct sim_test_flow){.path = path, .cap = cap};
    }
    sim_test_slow_share(r->links, link_count(r), flows, count);
    for (uint32_t f = 0; f < count; f++) owners[f]->rate = flows[f].rate;
    return count;
}

static void rate_computations(struct reference *r)
{
    for (uint32_t o = 0; o < r->count; o++) {
        struct ref_op *op = &r->ops[o];
        if (op->state != REF_ACTIVE || op->op->kind != OP_COMPUTE) continue;
        op->rate = 1;
        if (op->op->stream == STREAM_HOST) continue;
        struct sim_test_law law = law_of(r, op->device);
        double copying = 0;
        for (uint32_t c = 0; c < r->count; c++)
            if (r->ops[c].state == REF_ACTIVE && r->ops[c].op->kind == OP_COPY &&
                !is_storage(&r->ops[c]) && same_domain(r, &r->ops[c], op))
                copying += r->ops[c].rate;
        double slowed = 1 + law.compute_by_compute * others(r, op, OP_COMPUTE);
        if (law.reference > 0) slowed += law.compute_by_copy * copying / law.reference;
        op->rate = 1 / slowed;
    }
}

/* --- time -------------------------------------------------------------------- */

static bool may_start(const struct reference *r, uint32_t op)
{
    for (uint32_t a = 0; a < op; a++)
        if (r->waits[op][a] && r->ops[a].state != REF_DONE) return false;
    return true;
}

static void start_all(struct reference *r)
{
    for (uint32_t o = 0; o < r->count; o++) {
        struct ref_op *op = &r->ops[o];
        if (op->state != REF_WAITING || !may_start(r, o)) continue;
        op->start_s = r->now_s;
        op->state = op->latency_s > 0 ? REF_LATENCY : REF_ACTIVE;
        op->left = op->latency_s > 0 ? op->latency_s
                                     : (op->op->kind == OP_COPY ? op->volume : op->alone_s);
    }
}

static double rate_of(const struct ref_op *op)
{
    return op->state == REF_LATENCY ? 1 : op->rate;
}

static bool runs(const struct ref_op *op)
{
    return op->state == REF_LATENCY || op->state == REF_ACTIVE;
}

static void count_links(struct reference *r, const struct sim_test_flow *flows, uint32_t count,
                        double step_s)
{
    for (uint32_t l = 0; l < link_count(r); l++) {
        bool busy = false;
        for (uint32_t link_dir = 2 * l; link_dir < 2 * l + 2; link_dir++) {
            for (uint32_t f = 0; f < count; f++)
                busy |= sim_test_crosses(r->links, flows[f].path, link_dir);
            if (sim_test_load(r->links, flows, count, link_dir) >=
                r->links[l].bytes_per_s * (1 - 1e-9))
                r->link_dir_full_s[link_dir] += step_s;
        }
        if (busy) r->link_busy_s[l] += step_s;
    }
}

static void end_op(struct reference *r, struct ref_op *op)
{
    op->state = REF_DONE;
    op->end_s = r->now_s;
    r->stream_busy_s[op->stream] += op->end_s - op->start_s;
    if (op->op->kind != OP_COPY) return;
    const struct sim_path *path = &r->paths[sim_reference_path(op)];
    for (uint32_t h = 0; h < path->hop_count; h++)
        r->link_bytes[path->hops[h].link * 2 + path->hops[h].direction] += (double)op->op->bytes;
}

/* Advances to the next change. Returns false if nothing runs. */
static bool step(struct reference *r)
{
    static struct sim_test_flow flows[REF_DEVICES_MAX * 3 + 2];
    start_all(r);
    uint32_t count = rate_copies(r, flows);
    rate_computations(r);
    double step_s = INFINITY;
    for (uint32_t o = 0; o < r->count; o++)
        if (runs(&r->ops[o])) step_s = fmin(step_s, r->ops[o].left / rate_of(&r->ops[o]));
    if (isinf(step_s)) return false;
    count_links(r, flows, count, step_s);
    r->now_s += step_s;
    for (uint32_t o = 0; o < r->count; o++) {
        struct ref_op *op = &r->ops[o];
        if (!runs(op)) continue;
        double left_s = op->left / rate_of(op);
        op->left = fmax(op->left - step_s * rate_of(op), 0);
        if (left_s > step_s + 1e-15) continue;
        if (op->state == REF_LATENCY) {
            op->state = REF_ACTIVE;
            op->left = op->volume;
        } else {
            end_op(r, op);
        }
    }
    return true;
}

void sim_reference_run(const struct plan *plan, struct reference *r)
{
    memset(r, 0, sizeof *r);
    r->plan = plan;
    expand(r);
    find_waits(r);
    find_paths(r);
    find_p2p_paths(r);
    find_durations(r);
    while (step(r)) {}
    for (uint32_t o = 0; o < r->count; o++) assert_int_equal(r->ops[o].state, REF_DONE);
}

